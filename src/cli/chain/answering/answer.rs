//! `agent-cli answer`: a person answers a question.

use std::io::{self, IsTerminal};

use clap::Args;

use crate::app::answer::{self, Input, Outcome};
use crate::app::chains::run;
use crate::app::chains::unattended::{self, AfterAnswer};
use crate::app::view::outcome::AnsweredView;
use crate::cli::arguments::id_completion;
use crate::cli::chain::answering::inbox::Inbox;
use crate::cli::chain::answering::said_back::said_back;
use crate::cli::chain::answering::there_and_then::{self, for_people};
use crate::cli::chain::drive;
use crate::cli::chain::steering::tell::standard_input;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, print_json, print_line, tell};
use crate::cli::report::question_text;
use crate::cli::report::status_report::OutputOptions;
use crate::core::id::RequestId;
use crate::core::requests::request::RequestKind;
use crate::core::text::shell::{quoted, shell_word};
use crate::store::{Driving, Question};

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
/// On a terminal, without an answer, this is `agent-cli inbox ID`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli answer 4f2c1a90 \"Jan 1st\"
  agent-cli answer 4f2c1a90 1,3
  agent-cli answer 4f2c1a90 --text 7
  agent-cli answer 4f2c1a90 -- --force
  agent-cli answer 4f2c1a90 deny use the test server
  agent-cli answer 4f2c1a90 allow --mode acceptEdits
  agent-cli answer 4f2c1a90 --resume < plan.md")]
pub(crate) struct Answer {
    /// Id of the question, as shown by `agent-cli questions`, or of a chain or agent with one open question
    #[arg(add = id_completion::questions())]
    id: Option<String>,

    /// The answer [default: standard input, without its final newline]
    #[arg(add = id_completion::answers())]
    answer: Option<String>,

    // The rest of an answer that consists of several words.
    #[arg(hide = true)]
    more: Vec<String>,

    /// Take the answer as text even if it looks like the number of an option
    #[arg(long, conflicts_with = "answer")]
    text: Option<String>,

    /// With `allow` for a plan: the permission mode to continue in [default: the mode it was started with]
    #[arg(long, value_name = "MODE", conflicts_with = "text", add = id_completion::permission_modes())]
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
        let given = self.text.is_some() || self.answer.is_some();
        let Some(name) = self.id.clone().filter(|_| given || !io::stdin().is_terminal()) else {
            return self.prompt(context);
        };
        let store = context.store()?;
        let app = for_people(context, &store)?;
        let id = answer::question_named(&app, &name, self.replace)?;
        let asked = store.questions(id, false)?.pop();
        let (text, is_verbatim) = self.given(id, asked.as_ref())?;
        let input =
            Input { question: id, text, is_verbatim, mode: self.mode.clone(), replace: self.replace, shown: None };
        let text = answer::check(&app, &input)?;
        if let (Some(asked), true) = (&asked, given) {
            question_text::confirm(&store, asked, &text)?;
        }
        // Otherwise, a process that continues all chains could take it with the answer.
        let continued = asked.as_ref().filter(|_| self.resume).map(|asked| asked.root);
        let driving = continued.map(|root| Driving::mark(store.dir(), root)).transpose()?;
        let Outcome { chain, text, running_elsewhere } = answer::answer(&app, &input)?;
        let said = match asked.filter(|_| output::is_read_by_a_person()) {
            Some(asked) => said_back(&asked.kind, &input.text, &text),
            None => "answer recorded".to_owned(),
        };
        let after = unattended::after_answer(&store, chain)?;
        if self.resume && !matches!(after, AfterAnswer::OnAnotherHost(_)) {
            tell(&said);
            let output_options = OutputOptions { json: self.json, ..OutputOptions::default() };
            let again = || context.settings(None);
            let status = drive::go_on(context, &store, run::next(&store, chain, again)?, chain, output_options)?;
            drop(driving);
            return there_and_then::finish(context, &store, chain, status, again, output_options);
        }
        let next = match &after {
            AfterAnswer::LeftToPeople { next, .. } => next.clone(),
            AfterAnswer::Done => format!("agent-cli show {chain} --reply"),
            _ => format!("agent-cli resume {chain}"),
        };
        if self.json {
            let continued_by = after.continuer();
            let can_continue = matches!(after, AfterAnswer::Continues(_) | AfterAnswer::CanContinue);
            print_json(&AnsweredView { question: id, chain, next, can_continue, running_elsewhere, continued_by })?;
            return Ok(ExitStatus::Ok);
        }
        match after {
            AfterAnswer::Continues(by) => tell(&format!("{said}; {}", by.words())),
            AfterAnswer::OnAnotherHost(elsewhere) => {
                tell(&format!("{said}; the agents of the chain {elsewhere}, where it continues"));
            }
            AfterAnswer::Waits(Some(by)) => {
                tell(&format!("{said}; the chain still waits for something else, and then {}", by.words()));
            }
            AfterAnswer::Done => tell(&format!("{said}; the chain is done")),
            _ if running_elsewhere => tell(&format!("{said}; another process is already running the chain")),
            AfterAnswer::Waits(None) => {
                tell(&format!("{said}; the chain still waits for something else, and then continues with:"));
                print_line(&next)?;
            }
            AfterAnswer::LeftToPeople { why, .. } => {
                tell(&format!("{said}; the chain {why}, and continues with:"));
                print_line(&next)?;
            }
            AfterAnswer::RunsElsewhere | AfterAnswer::CanContinue | AfterAnswer::Removed => {
                tell(&format!("{said}; resume the chain with:"));
                print_line(&next)?;
            }
        }
        Ok(ExitStatus::Ok)
    }

    /// Runs the inbox, because no answer was given.
    fn prompt(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = for_people(context, &store)?;
        let has_options = self.text.is_some() || self.mode.is_some() || self.json || self.id.is_none() && self.replace;
        if has_options || !confirm::is_at_a_terminal() {
            let (what, id) = match &self.id {
                Some(id) => ("no answer was given", shell_word(id)),
                None => ("no question was named", "ID".to_owned()),
            };
            return Err(CliError::usage(what)
                .hint("agent-cli questions lists the open questions")
                .hint(format!("agent-cli answer {id} ANSWER answers one")));
        }
        let id = match self.id {
            Some(id) if self.replace => Some(answer::question_named(&app, &id, true)?.to_string()),
            id => id,
        };
        Inbox::of(id, self.resume, self.replace).run(context)
    }

    /// Returns the answer, and whether to take it literally.
    fn given(&self, id: RequestId, asked: Option<&Question>) -> Result<(String, bool), CliError> {
        let is_decision =
            asked.is_some_and(|asked| matches!(asked.kind, RequestKind::Permission { .. } | RequestKind::Plan(_)));
        match (&self.text, &self.answer) {
            (Some(text), _) => Ok((text.clone(), true)),
            (None, None) => Ok((from_standard_input()?, false)),
            (None, Some(first)) => {
                let words: Vec<&str> = std::iter::once(first).chain(&self.more).map(String::as_str).collect();
                let whole = words.join(" ");
                // A reason is for people and models, so repeated blanks in it do not matter.
                if self.more.is_empty() || is_decision {
                    return Ok((whole, false));
                }
                let error = CliError::usage(format!("an answer is one argument, but {} were given", words.len()));
                let replace = if self.replace { "--replace " } else { "" };
                let separator = if whole.starts_with('-') { "-- " } else { "" };
                let command = format!("agent-cli answer {} {replace}{separator}{}", id.short(), quoted(&whole));
                Err(error.hint(format!("quote it: {command}")))
            }
        }
    }
}

fn from_standard_input() -> Result<String, CliError> {
    let mut text = standard_input()
        .map_err(|error| CliError::usage(format!("cannot read the answer from standard input: {error}")))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
