//! `agent-cli hook-result`: the command that a suspended call runs when its result is available.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::store::StateDir;

/// Print the result of a request: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct HookResult {
    /// It failed: print it as an error
    #[arg(long)]
    failed: bool,

    /// The file with the result
    file: PathBuf,
}

impl HookResult {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // The rules allow agents to call this with any arguments.
        let Some(frame) = StateDir::result_of(&self.file) else {
            return Err(CliError::usage(format!("{} is not the result of a request", self.file.display())));
        };
        if context.caller.is_some_and(|caller| caller.frame != frame) {
            return Err(CliError::usage(format!("{} is a result of another agent", self.file.display())));
        }
        let print = |mut to: Box<dyn Write>| {
            io::copy(&mut File::open(&self.file)?, &mut to)?;
            to.flush()
        };
        let printed = if self.failed { print(Box::new(io::stderr())) } else { print(Box::new(io::stdout())) };
        printed.map_err(|error| CliError::failed(format!("the result cannot be printed: {error}")))?;
        Ok(if self.failed { ExitStatus::Failed } else { ExitStatus::Ok })
    }
}
