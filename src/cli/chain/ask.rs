//! `agent-cli ask`: an agent asks a person.

use clap::Args;

use crate::cli::chain::request;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::runtime::requests::agent_request::AgentRequest;

/// Ask a person (for agents)
///
/// Records the question of the calling agent. The agent's call is suspended and returns the answer; nothing runs until
/// then. If calls cannot be suspended, this prints `SGN_PEND_STARTED (ID)` at once: the agent ends its turn, and the
/// answer arrives in a later prompt.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    question: String,
}

impl Ask {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let caller = context.caller.ok_or_else(|| {
            CliError::usage("only agents can ask: this shell was not started by agent-cli")
                .hint("agent-cli questions lists what agents have asked")
        })?;
        request::make(context, caller, false, |_| self.resolve())
    }

    pub(crate) fn resolve(self) -> Result<AgentRequest, CliError> {
        if self.question.trim().is_empty() {
            return Err(CliError::usage("the question is empty").hint("agent-cli ask \"When is your birthday?\""));
        }
        Ok(AgentRequest::Ask(self.question))
    }
}
