//! `agent-cli answer`: a person answers a question.

use std::io::{self, IsTerminal, Read};

use clap::Args;

use crate::app::answer::{self, Input, Outcome};
use crate::app::chains::run;
use crate::app::lookup;
use crate::app::view::outcome::AnsweredView;
use crate::cli::arguments::id_completion;
use crate::cli::chain::answering::inbox::{Inbox, for_people};
use crate::cli::chain::answering::terminal_prompt::LONGEST_LINE;
use crate::cli::chain::drive;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, print_json, print_line, tell};
use crate::cli::report::question_text;
use crate::cli::report::status_report::OutputOptions;
use crate::core::id::RequestId;
use crate::core::requests::request::RequestKind;
use crate::core::text::shell::quoted;
use crate::store::{Question, Store};

/// Answer a question, or allow or deny a tool call or a plan
///
/// Records the answer and prints the command that resumes the chain. The agent gets the answer exactly as given. Until
/// it has been delivered, --replace changes it.
///
/// If the question has options, answer with the key or the number of one. If several can be chosen, separate them by
/// commas. If the question allows it, any other text is an answer, too. To approve a tool call, answer `allow`. To
/// refuse it, answer `deny`, followed by a reason for the agent if you like. The same goes for a plan; --mode sets the
/// permission mode in which the agent continues.
///
/// On a terminal, without an id, this is `agent-cli inbox`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli answer 4f2c1a90 \"Jan 1st\"
  agent-cli answer 4f2c1a90 1,3
  agent-cli answer 4f2c1a90 --text 7
  agent-cli answer 4f2c1a90 -- --force
  agent-cli answer 4f2c1a90 \"deny use the test server\"
  agent-cli answer 4f2c1a90 allow --mode acceptEdits
  agent-cli answer 4f2c1a90 --resume < plan.md")]
pub(crate) struct Answer {
    /// Id of the question, as shown by `agent-cli questions`, or of a chain or agent with one open question
    #[arg(add = id_completion::questions())]
    id: Option<String>,

    /// The answer [default: standard input, without its final newline]
    answer: Option<String>,

    // The rest of an answer that the shell split because it was not quoted.
    #[arg(hide = true)]
    more: Vec<String>,

    /// Take the answer as text even if it looks like the number of an option
    #[arg(long, conflicts_with = "answer")]
    text: Option<String>,

    /// With `allow` for a plan: the permission mode to continue in [default: the mode it was started with]
    #[arg(long, value_name = "MODE", conflicts_with = "text")]
    mode: Option<String>,

    /// Replace an earlier answer that has not been delivered yet
    #[arg(long)]
    replace: bool,

    /// Continue the chain at once, as `agent-cli resume` would
    #[arg(long)]
    resume: bool,

    /// Print a JSON object; with --resume, that of `resume --json`
    #[arg(long)]
    json: bool,
}

impl Answer {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Some(name) = &self.id else { return self.walk(context) };
        let store = context.store()?;
        let app = for_people(context, &store)?;
        let id = answer::question_named(&app, &lookup::id_of(&app, name)?)?;
        let asked = store.questions(id, false)?.pop();
        let (text, is_verbatim) = self.given(&store, id, asked.as_ref())?;
        let input = Input { question: id, text, is_verbatim, mode: self.mode.clone(), replace: self.replace };
        let text = answer::check(&app, &input)?;
        if let (Some(asked), true) = (&asked, self.answer.is_some() || self.text.is_some()) {
            question_text::confirm(&store, asked, &text)?;
        }
        let Outcome { chain, running_elsewhere } = answer::answer(&app, &input)?;
        if self.resume {
            tell("answer recorded");
            let output_options = OutputOptions { json: self.json, stream: false, exit_code: false };
            let next = run::next(&store, chain, || context.settings(None))?;
            return drive::go_on(context, &store, next, chain, output_options);
        }
        let next = format!("agent-cli resume {chain}");
        if self.json {
            print_json(&AnsweredView { question: id, chain, next, running_elsewhere })?;
        } else if running_elsewhere {
            tell("answer recorded; another process is already running the chain");
        } else {
            tell("answer recorded; resume the chain with:");
            print_line(&next)?;
        }
        Ok(ExitStatus::Ok)
    }

    /// What the command is without a question.
    fn walk(&self, context: &Context) -> Result<ExitStatus, CliError> {
        for_people(context, &context.store()?)?;
        if self.text.is_some() || self.mode.is_some() || self.replace || self.json || !confirm::is_at_a_terminal() {
            return Err(CliError::usage("no question was named")
                .hint("agent-cli questions lists the open questions")
                .hint("agent-cli answer ID ANSWER answers one"));
        }
        Inbox::here(self.resume).run(context)
    }

    /// The answer, and whether to take it literally.
    fn given(&self, store: &Store, id: RequestId, asked: Option<&Question>) -> Result<(String, bool), CliError> {
        match (&self.text, &self.answer) {
            (Some(text), _) => Ok((text.clone(), true)),
            (None, None) => Ok((from_standard_input(store, asked)?, false)),
            (None, Some(text)) if self.more.is_empty() => Ok((text.clone(), false)),
            (None, Some(first)) => {
                let words: Vec<&str> = std::iter::once(first).chain(&self.more).map(String::as_str).collect();
                let error = CliError::usage(format!("an answer is one argument, but {} were given", words.len()));
                let whole = quoted(&words.join(" "));
                Err(error.hint(format!("quote it: agent-cli answer {} {whole}", id.short())))
            }
        }
    }
}

fn from_standard_input(store: &Store, asked: Option<&Question>) -> Result<String, CliError> {
    if confirm::is_at_a_terminal() {
        match asked {
            Some(asked) if matches!(asked.kind, RequestKind::Permission { .. } | RequestKind::Plan(_)) => {
                return question_text::decide(store, asked);
            }
            Some(asked) => question_text::show(store, asked)?,
            None => {}
        }
        output::ask("type the answer, then press Ctrl-D on an empty line\n");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| CliError::usage(format!("cannot read the answer from standard input: {error}")))?;
    if io::stdin().is_terminal() && text.split_inclusive('\n').any(|line| line.len() > LONGEST_LINE) {
        return Err(CliError::usage("the terminal may have cut a long line, so nothing was recorded")
            .hint("agent-cli inbox takes long lines, and :edit there opens an editor"));
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
