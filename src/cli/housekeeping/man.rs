//! `agent-cli man`: writes manual pages, for packages of the program.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;

/// Write a manual page for each command: for packages, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Man {
    /// The directory, which is created
    directory: PathBuf,
}

impl Man {
    /// `program` describes all commands.
    pub(crate) fn run(self, _: &Context, program: fn() -> Command) -> Result<ExitStatus, CliError> {
        let program = with_help_of_all(program().name("agent-cli"));
        let written =
            fs::create_dir_all(&self.directory).and_then(|()| clap_mangen::generate_to(program, &self.directory));
        let shown = self.directory.display();
        written.map_err(|error| CliError::failed(format!("the pages cannot be written into {shown}: {error}")))?;
        Ok(ExitStatus::Ok)
    }
}

/// The pages would leave out what the short help leaves out.
fn with_help_of_all(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(with_help_of_all)
}
