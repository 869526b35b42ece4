//! `agent-cli hook`: Claude Code asks it before and after each tool call of an agent that looks like a request.

use std::io::{self, Read};

use clap::Args;

use crate::claude::tools::hook_input::HookAnswer;
use crate::cli::agent::note;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_json;
use crate::runtime::protocol::{HookResponse, ProtocolError, Typed, hook, messages};

/// Answer a hook of Claude Code: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Hook {
    /// After calls: give the agent its messages
    #[arg(long)]
    messages: bool,
    /// Before commands: only refuse a request inside a larger one
    #[arg(long, conflicts_with = "messages")]
    embedded: bool,
}

impl Hook {
    /// `parse` reads the words of a command that an agent calls.
    pub(crate) fn run(self, context: &Context, parse: impl FnOnce(&[String]) -> Typed) -> Result<ExitStatus, CliError> {
        let Some(caller) = context.caller else { return Ok(ExitStatus::Ok) };
        let answered = self.answer(context, parse).unwrap_or_else(|error| {
            note(context, caller, "hook", &error);
            HookAnswer::Pass.into()
        });
        if let Some(answer) = answered.answer.to_json() {
            print_json(&answer)?;
        }
        answered.printed().unwrap_or_else(|error| note(context, caller, "hook", &error.into()));
        Ok(ExitStatus::Ok)
    }

    fn answer(&self, context: &Context, parse: impl FnOnce(&[String]) -> Typed) -> Result<HookResponse, CliError> {
        let Some(asking) = context.asking()? else { return Ok(HookAnswer::Pass.into()) };
        let mut input = Vec::new();
        let read = io::stdin().read_to_end(&mut input);
        read.map_err(|error| CliError::failed(format!("failed to read the hook's input: {error}")))?;
        let answered = match self {
            Self { messages: true, .. } => messages::answer(&asking, &input),
            Self { embedded: true, .. } => hook::refuse_embedded(&asking, &input),
            _ => hook::answer(&asking, &input, parse),
        };
        answered.map_err(|error| match error {
            ProtocolError::Runtime(error) => error.into(),
            ProtocolError::Request(error) => CliError::usage(error),
        })
    }
}
