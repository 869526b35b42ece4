//! `agent-cli wait`: an agent waits for something outside.

use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::cli::arguments::duration::{duration, moment};
use crate::cli::chain::request;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::core::requests::request::External;
use crate::runtime::requests::agent_request::AgentRequest;

/// Wait for a file, a time or a command (for agents)
///
/// Records what the calling agent waits for. The agent's call is suspended, and returns at the first `agent-cli resume`
/// after the wait is over. If calls cannot be suspended, and always with --command, this prints `SGN_PEND_STARTED (ID)`
/// at once, and the agent ends its turn.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct WaitCommand {
    /// Wait until this file exists
    #[arg(long, value_name = "PATH", group = "what")]
    file: Option<PathBuf>,

    /// Wait until this time, for example 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME", group = "what", value_parser = moment)]
    until: Option<Timestamp>,

    /// Wait for this long, for example 90s, 2h or 3d
    #[arg(long = "for", value_name = "DURATION", group = "what", value_parser = duration)]
    duration: Option<SignedDuration>,

    /// Wait until this shell command exits with status 0
    #[arg(long, value_name = "COMMAND", group = "what")]
    command: Option<String>,
}

impl WaitCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let caller = context
            .caller
            .ok_or_else(|| CliError::usage("only agents can wait: this shell was not started by agent-cli"))?;
        request::make(context, caller, false, |_| self.resolve())
    }

    pub(crate) fn resolve(self) -> Result<AgentRequest, CliError> {
        self.external().map(AgentRequest::Wait)
    }

    /// Whether it would run a command, which needs a separate permission.
    pub(crate) fn runs_a_command(&self) -> bool {
        self.command.is_some()
    }

    fn external(self) -> Result<External, CliError> {
        if let Some(file) = self.file {
            let file = std::path::absolute(file)
                .map_err(|error| CliError::usage(format!("cannot wait for that file: {error}")))?;
            if file.to_str().is_none() {
                return Err(CliError::usage("cannot wait for that file: its path is not UTF-8"));
            }
            return Ok(External::File(file));
        }
        if let Some(command) = self.command {
            return Ok(External::Command(command));
        }
        let for_so_long = || self.duration.and_then(|duration| Timestamp::now().checked_add(duration).ok());
        let until = self.until.or_else(for_so_long);
        let until = until.ok_or_else(|| CliError::usage("cannot wait for that long").hint("give a shorter time"))?;
        Ok(External::Time(until))
    }
}
