//! `agent-cli mcp`: serves chains to an MCP client.

use std::io::{self, IsTerminal};

use clap::Args;

use crate::app::App;
use crate::app::error::AppError;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::mcp::{self, Host};

/// Serve chains to Claude Code and other MCP hosts
///
/// Speaks the Model Context Protocol on standard input and output. A chain that a session starts is a task of that session: it
/// works in the background, its questions appear in the session's own dialog, and its reply arrives when it is done, even if the
/// session was closed in the meantime. A host without tasks gets the state of the chain, and can ask for it again.
///
/// Agents of a chain get no tools from it: they use the command line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  claude mcp add agent-cli -- agent-cli mcp")]
pub(crate) struct Mcp {}

impl Mcp {
    pub(crate) fn run(self, _: &Context) -> Result<ExitStatus, CliError> {
        if io::stdin().is_terminal() {
            return Err(CliError::usage("mcp speaks to a program, not to a person")
                .hint("claude mcp add agent-cli -- agent-cli mcp makes Claude Code start it"));
        }
        mcp::serve(OwnProcess).map_err(CliError::failed)?;
        Ok(ExitStatus::Ok)
    }
}

/// This process. It reads everything again for each call, because files and the environment of ancestors change.
#[derive(Clone)]
struct OwnProcess;

impl Host for OwnProcess {
    type Surroundings = Context;

    fn is_of_agent(&self) -> bool {
        // If this cannot be determined, the process counts as an agent. So does a process that an agent has left running.
        Context::from_environment(false)
            .map_or(true, |context| context.caller.is_some() || context.asker().runner.is_some())
    }

    fn run<T>(
        &self,
        client: Option<String>,
        work: impl FnOnce(&App<'_>, &Context) -> Result<T, AppError>,
    ) -> Result<T, String> {
        let work = || {
            let context = Context::from_environment(false)?;
            let store = context.store()?;
            let mut app = context.app_to_decide(&store);
            app.asker.origin.client = client;
            Ok::<T, CliError>(work(&app, &context)?)
        };
        work().map_err(|error| error.in_words())
    }
}
