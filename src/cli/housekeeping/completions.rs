//! `agent-cli completions`: completions for shells.

use std::ffi::OsString;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print;

/// A script asks for completions by setting this variable.
const VARIABLE: &str = "AGENT_CLI_COMPLETE";
const PROGRAM: &str = "agent-cli";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example, for ~/.bashrc:
  eval \"$(agent-cli completions bash)\"")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<ExitStatus, CliError> {
        let name = self.shell.to_string();
        let unknown = || CliError::usage(format!("no completions for {name}"));
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(unknown)?;
        let mut script = Vec::new();
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(|error| CliError::failed(format!("the script cannot be written: {error}")))?;
        print(&String::from_utf8_lossy(&script))?;
        Ok(ExitStatus::Ok)
    }
}

/// Prints completions if a script asks for them. `program`: the whole command line. Returns whether it did.
pub(crate) fn complete(program: impl Fn() -> Command, arguments: &[OsString]) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    // A shell shows nothing of an error.
    CompleteEnv::with_factory(program)
        .var(VARIABLE)
        .bin(PROGRAM)
        .try_complete(arguments, here.as_deref())
        .unwrap_or(true)
}
