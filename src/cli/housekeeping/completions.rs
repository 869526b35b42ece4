//! `agent-cli completions`: completions for shells.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example, for ~/.bashrc:
  eval \"$(agent-cli completions bash)\"")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// `program`: the whole command line.
    pub(crate) fn run(self, mut program: Command) -> Result<ExitStatus, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "agent-cli", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(ExitStatus::Ok)
    }
}
