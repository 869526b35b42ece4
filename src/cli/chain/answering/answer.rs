//! `agent-cli answer`: a person answers a question.

use std::io::{self, IsTerminal, Read};

use clap::Args;

use crate::claude::processes::marks;
use crate::cli::arguments::candidates;
use crate::cli::chain::answering::checked_answer::checked_answer;
use crate::cli::chain::answering::inbox::{Inbox, refuse_agents};
use crate::cli::chain::answering::prompt::LONGEST_LINE;
use crate::cli::chain::resume;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup;
use crate::cli::output::{self, print_json, print_line, tell};
use crate::cli::report::asked;
use crate::cli::report::chain_status::OutputOptions;
use crate::core::id::{FrameId, IdPrefix, RequestId};
use crate::core::requests::permit::{Permit, permit};
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;
use crate::core::text::shell::quoted;
use crate::store::{Driving, Question, Scope, Store, Target};

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
    #[arg(add = candidates::questions())]
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

    /// Print a JSON object: question, root, next, driven; with --resume, that of `resume --json`
    #[arg(long)]
    json: bool,
}

impl Answer {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        refuse_agents(context)?;
        let Some(name) = &self.id else { return self.walk(context) };
        let store = context.store()?;
        let id = named(&store, &lookup::id_of(context, &store, name)?)?;
        let asked = store.questions(id, false)?.pop();
        let (text, is_text) = self.given(&store, id, asked.as_ref())?;
        let text = self.with_mode(text, asked.as_ref())?;
        // The store refuses questions that cannot be answered.
        let text = match &asked {
            Some(asked) if asked.answered.is_none() || self.replace => checked_answer(asked, &text, is_text)?,
            _ => text,
        };
        if let (Some(asked), true) = (&asked, self.answer.is_some() || self.text.is_some()) {
            asked::confirm(&store, asked, &text)?;
        }
        let question = store.record_answer(id, &text, &marks::origin(), self.replace)?;
        if self.resume {
            tell("answer recorded");
            let output_options = OutputOptions { json: self.json, stream: false, exit_code: false };
            return resume::continued(context, &store, || context.settings(None), question.root, output_options);
        }
        let next = format!("agent-cli resume {}", question.root);
        let driven = Driving::is_marked(store.dir(), question.root)?;
        if self.json {
            print_json(&serde_json::json!({"question": id, "root": question.root, "next": next, "driven": driven}))?;
        } else if driven {
            tell("answer recorded; the chain continues by itself: another process drives it");
        } else {
            tell("answer recorded; resume the chain with:");
            print_line(&next)?;
        }
        Ok(ExitStatus::Ok)
    }

    /// What it is without a question.
    fn walk(&self, context: &Context) -> Result<ExitStatus, CliError> {
        if self.text.is_some() || self.mode.is_some() || self.replace || self.json || !asked::is_at_a_terminal() {
            return Err(CliError::usage("no question was named")
                .hint("agent-cli questions lists the open questions")
                .hint("agent-cli answer ID ANSWER answers one"));
        }
        Inbox::here(self.resume).run(context)
    }

    /// The answer, with the mode that belongs to it.
    fn with_mode(&self, text: String, asked: Option<&Question>) -> Result<String, CliError> {
        let Some(mode) = &self.mode else { return Ok(text) };
        let is_of_plan = asked.is_none_or(|asked| matches!(asked.kind, RequestKind::Plan(_)));
        if !is_of_plan || permit(&text) != Some(Permit::Allow) {
            let error = CliError::usage("--mode is for a plan that is allowed");
            return Err(match asked.filter(|_| is_of_plan) {
                Some(asked) => error.hint(format!("agent-cli answer {} allow --mode {mode}", asked.id.short())),
                None => error.hint("leave --mode out"),
            });
        }
        Ok(format!("allow {mode}"))
    }

    /// The answer, and whether to take it as text whatever it looks like.
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

/// The question that an id names: its own, or that of a chain or agent that waits for one answer.
fn named(store: &Store, prefix: &IdPrefix) -> Result<RequestId, CliError> {
    match store.lookup(Scope::QuestionsFirst, prefix)? {
        // What is no question is refused when it is answered.
        Target::Request(request) => Ok(request),
        Target::Frame(frame) => only_question_below(store, frame),
    }
}

fn only_question_below(store: &Store, frame: FrameId) -> Result<RequestId, CliError> {
    match store.questions(Some(frame), true)?.as_slice() {
        [only] => Ok(only.id),
        [] => {
            let message = format!("{} has no open question", frame.short());
            Err(CliError::new(ExitStatus::NoSuchFrame, message).hint("agent-cli questions lists the open questions"))
        }
        several => {
            let one = |asked: &Question| format!("{} ({})", asked.id.short(), shortened(&asked.question));
            let all = several.iter().map(one).collect::<Vec<_>>().join(", ");
            let message = format!("{} has {} open questions: {all}", frame.short(), several.len());
            Err(CliError::new(ExitStatus::NoSuchFrame, message)
                .hint(format!("name one: agent-cli answer {} ANSWER", several[0].id.short())))
        }
    }
}

fn from_standard_input(store: &Store, asked: Option<&Question>) -> Result<String, CliError> {
    if asked::is_at_a_terminal() {
        match asked {
            Some(asked) if matches!(asked.kind, RequestKind::Permission { .. } | RequestKind::Plan(_)) => {
                return asked::decide(store, asked);
            }
            Some(asked) => asked::show(store, asked)?,
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
