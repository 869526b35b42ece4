//! `agent-cli ask`: an agent asks a person.

use clap::Args;

use crate::cli::chain::resume;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::print_line;
use crate::core::attempt::signal;
use crate::core::id::RequestId;
use crate::core::requests::request::Wish;
use crate::runtime::requests::record;
use crate::store::{Caller, Store};

/// Ask a person, from inside an agent
///
/// Records the question for the calling agent. Where the agent's call can be suspended, it returns the answer when there
/// is one, and nothing runs until then. Elsewhere this prints `SGN_PEND_STARTED (ID)` at once: the agent then ends its turn,
/// and a prompt brings the answer when the chain is resumed.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    question: String,
}

impl Ask {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let caller = context.caller.ok_or_else(|| {
            CliError::usage("only an agent can ask: this shell was not started by agent-cli")
                .hint("agent-cli questions shows what agents have asked")
        })?;
        let store = context.store()?;
        let is_this = |wish: &Wish| matches!(wish, Wish::Ask { question, .. } if *question == self.question);
        if let Some(progress) = record::made_before(&store, caller, is_this)? {
            return resume::tell(progress);
        }
        let id = self.record(&store, caller, None)?;
        print_line(&format!("{} ({id})", signal::STARTED))?;
        Ok(Exit::Ok)
    }

    /// Records the request of an agent. `call` is the tool call that is suspended until the answer is there.
    pub(crate) fn record(self, store: &Store, caller: Caller, call: Option<&str>) -> Result<RequestId, CliError> {
        if self.question.trim().is_empty() {
            return Err(CliError::usage("the question is empty").hint("agent-cli ask \"When is your birthday?\""));
        }
        Ok(record::ask(store, caller, call, self.question)?)
    }
}
