//! `agent-cli open`: opens an agent's conversation in an interactive `claude`.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::app::chains::open::{self, Outcome};
use crate::claude::environment::config_dir::CONFIG_DIR;
use crate::claude::invocation::STORE;
use crate::cli::arguments::id_completion;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_line;

/// Open a copy of an agent's conversation in Claude Code
///
/// The copy is a separate session: nothing that is said in it affects the agent or its chain. Works while the agent runs or
/// waits, and when it has ended. A call at which it is paused is closed in the copy. Without a terminal it prints the command
/// instead.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  agent-cli open last")]
pub(crate) struct OpenCommand {
    /// Id of an agent or chain, the name of a chain, or `last`
    #[arg(add = id_completion::all_agents())]
    id: String,

    /// Open the conversation before the agent started afresh
    #[arg(long)]
    earlier: bool,

    /// Only print the command
    #[arg(long)]
    print: bool,
}

impl OpenCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let Outcome { agent, opening } = open::open(&context.app(&store), &self.id, self.earlier)?;
        if self.print || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            print_line(&opening.command())?;
            return Ok(ExitStatus::Ok);
        }
        // This process must not keep any files open while `claude` runs.
        drop(store);
        let mut claude = Command::new(&opening.program);
        claude.args(opening.arguments()).current_dir(&opening.cwd);
        claude.env_remove(STORE);
        claude.envs(opening.config_dir.iter().map(|dir| (CONFIG_DIR, dir)));
        let error = claude.exec();
        Err(CliError::new(ExitStatus::Claude, format!("failed to start {}: {error}", opening.program.display()))
            .hint(format!("agent-cli open {} --print prints the command", agent.short())))
    }
}
