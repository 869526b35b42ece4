//! `agent-cli ask`: an agent asks a person.

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::print_line;
use crate::core::signal;
use crate::runtime::requests;

/// Ask a person, from inside an agent
///
/// Records the question for the calling agent and prints `SGN_PEND_STARTED (ID)` at once. The agent then ends its turn;
/// the answer comes when its chain is resumed.
#[derive(Debug, Args)]
pub(super) struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    question: String,
}

impl Ask {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let caller = context.caller.ok_or_else(|| {
            CliError::usage("only an agent can ask: this shell was not started by agent-cli")
                .hint("agent-cli questions shows what agents have asked")
        })?;
        if self.question.trim().is_empty() {
            return Err(CliError::usage("the question is empty").hint("agent-cli ask \"When is your birthday?\""));
        }
        let id = requests::ask(&context.store()?, caller, self.question)?;
        print_line(&format!("{} ({id})", signal::STARTED))?;
        Ok(Exit::Ok)
    }
}
