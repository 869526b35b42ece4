//! `agent-cli ask`: an agent asks a person.

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::print_line;
use super::resume;
use crate::core::id::RequestId;
use crate::core::request::Wish;
use crate::core::signal;
use crate::runtime::requests;
use crate::store::{Caller, Store};

/// Ask a person, from inside an agent
///
/// Records the question for the calling agent. Where the agent's call can be suspended, it returns the answer when there
/// is one, and nothing runs until then. Elsewhere this prints `SGN_PEND_STARTED (ID)` at once: the agent then ends its turn,
/// and a prompt brings the answer when the chain is resumed.
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
        let store = context.store()?;
        let is_this = |wish: &Wish| matches!(wish, Wish::Ask { question, .. } if *question == self.question);
        if let Some(progress) = requests::made_before(&store, caller, is_this)? {
            return resume::tell(progress);
        }
        let id = self.record(&store, caller, None)?;
        print_line(&format!("{} ({id})", signal::STARTED))?;
        Ok(Exit::Ok)
    }

    /// Records the request of an agent. `call` is the tool call that is suspended until the answer is there.
    pub(super) fn record(self, store: &Store, caller: Caller, call: Option<&str>) -> Result<RequestId, CliError> {
        if self.question.trim().is_empty() {
            return Err(CliError::usage("the question is empty").hint("agent-cli ask \"When is your birthday?\""));
        }
        Ok(requests::ask(store, caller, call, self.question)?)
    }
}
