//! `agent-cli export`: writes a chain to one file.

use std::io::{self, BufWriter, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use crate::app::housekeeping::export;
use crate::cli::arguments::id_completion;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, hint, tell};
use crate::core::text::shell::shell_path;

/// Export a chain to a file, so that another machine can resume it
///
/// The file contains every conversation of the chain: keep it as private as the chain itself. The chain is not removed;
/// resume only one of the two. `agent-cli import` reads the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli export 4f2c1a90 -o chain.tar
  agent-cli export 4f2c1a90 | ssh server agent-cli import - --trust")]
pub(crate) struct ExportCommand {
    /// The chain: its id, name, or `last`, or an id of one of its agents or sessions
    #[arg(add = id_completion::chains())]
    id: String,

    /// Write to this file, or with - to standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let export = export::export(&context.app(&store), &self.id)?;
        let chain = export.chain.short();
        if !export.secrets.is_empty() {
            let options = export.secrets.join(", ");
            tell(&format!("the archive contains arguments for claude that may be secret: {options}"));
            tell("hint: the archive does not contain files that arguments only name");
        }
        let Some(path) = self.output.as_ref().filter(|path| path.as_os_str() != "-") else {
            let to_file = format!("agent-cli export {chain} -o FILE writes it to a file");
            if io::stdout().is_terminal() {
                return Err(CliError::usage("refusing to write an archive to a terminal").hint(to_file));
            }
            if output::was_closed() {
                let error = CliError::failed("the archive cannot be written: standard output is closed or /dev/null");
                return Err(error.hint(to_file));
            }
            export.write(&mut BufWriter::new(io::stdout().lock()))?;
            return Ok(ExitStatus::Ok);
        };
        export.write_file(path)?;
        tell(&format!("exported {chain} to {}", path.display()));
        hint(&format!("agent-cli import {} imports it", shell_path(path)));
        Ok(ExitStatus::Ok)
    }
}
