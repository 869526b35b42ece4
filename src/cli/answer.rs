//! `agent-cli answer`: a person answers a question.

use std::io::{self, IsTerminal, Read};

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::{print_json, print_line, tell};
use crate::core::id::IdPrefix;
use crate::core::question;
use crate::core::request::Wish;
use crate::store::Target;

/// Answer a question
///
/// Records the answer and prints the command that carries the chain on. The agent gets the answer exactly as given. A
/// question can be answered once.
///
/// Where a question offers choices, the answer may be the number or the label of one, of several with commas between them
/// where several may be chosen, or any other text. Where it is a permission for a call that is asked for, the answer is
/// `allow`, or `deny`, perhaps with a reason for the agent after it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli answer 4f2c1a90 \"Jan 1st\"
  agent-cli answer 4f2c1a90 1,3
  agent-cli answer 4f2c1a90 \"deny use the test server\"
  agent-cli answer 4f2c1a90 < plan.md")]
pub(super) struct Answer {
    /// The question's id, as `agent-cli questions` shows it
    id: String,

    /// The answer, or the numbers of choices [default: standard input, without its last line break]
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,

    /// Print a JSON object: question, root, next
    #[arg(long)]
    json: bool,
}

impl Answer {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        if context.caller.is_some() {
            return Err(CliError::usage("an agent cannot answer in a person's place")
                .hint("end your turn: the answer comes when the chain is resumed"));
        }
        let store = context.store()?;
        let id = match store.lookup(&self.id.parse::<IdPrefix>()?)? {
            Target::Request(id) => id,
            Target::Frame(frame) => {
                let message = format!("{} is a frame, not a question", frame.short());
                return Err(CliError::new(Exit::NoSuchFrame, message).hint("agent-cli questions shows the questions"));
            }
        };
        let text = match self.text {
            Some(text) => text,
            None => from_standard_input()?,
        };
        // A request that is no question is for the store to refuse.
        let text = match store.question(id)? {
            Some(asked) if asked.answered.is_none() => question::answer(&asked.wish, &text).map_err(|error| {
                let example = if matches!(asked.wish, Wish::Permission { .. }) { "allow" } else { "TEXT" };
                CliError::usage(error.to_string()).hint(format!("agent-cli answer {} {example}", id.short()))
            })?,
            _ => text,
        };
        let question = store.answer(id, &text)?;
        let next = format!("agent-cli resume {}", question.root);
        if self.json {
            print_json(&serde_json::json!({"question": id, "root": question.root, "next": next}))?;
        } else {
            tell("the answer is recorded; this carries the chain on:");
            print_line(&next)?;
        }
        Ok(Exit::Ok)
    }
}

fn from_standard_input() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        tell("type the answer, then Ctrl-D on a line of its own");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| CliError::usage(format!("cannot read the answer from standard input: {error}")))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
