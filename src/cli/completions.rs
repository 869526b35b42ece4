//! `agent-cli completions`: completions for shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::error::CliError;
use super::exit::Exit;
use super::output::print;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  agent-cli completions bash > ~/.local/share/bash-completion/completions/agent-cli")]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "agent-cli", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Ok)
    }
}
