//! `agent-cli export`: writes a chain to one file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::lookup::frame_named;
use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, hint, tell};
use crate::core::housekeeping::inventory;
use crate::core::id::FrameId;
use crate::core::text::shell::shell_path;
use crate::store::Store;

/// Export a chain to a file, so that another machine can resume it
///
/// The file contains every conversation of the chain: keep it as private as the chain itself. The chain is not removed;
/// resume only one of the two. `agent-cli import` reads the file.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Id of an agent of the chain, or of one of its sessions
    #[arg(add = candidates::chains())]
    id: String,

    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::Export)?;
        let store = context.store()?;
        let root = store.chain_of(frame_named(&context.app(&store), &self.id)?)?.root;
        let secrets = secret_options(&store, root)?;
        if !secrets.is_empty() {
            let options = secrets.join(", ");
            tell(&format!("the archive contains arguments for claude that may be secret: {options}"));
            tell("hint: the archive does not contain files that arguments only name");
        }
        match &self.output {
            None if io::stdout().is_terminal() => {
                let hint = format!("agent-cli export {} -o FILE writes it to a file", root.short());
                return Err(CliError::usage("refusing to write an archive to a terminal").hint(hint));
            }
            None if output::was_closed() => {
                let error = CliError::failed("the archive cannot be written: standard output is closed or /dev/null");
                return Err(error.hint(format!("agent-cli export {} -o FILE writes it to a file", root.short())));
            }
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                store.housekeeping().export(root, &mut out)?;
                out.flush().map_err(|error| CliError::failed(format!("failed to write the archive: {error}")))?;
            }
            Some(path) => {
                write(&store, root, path)?;
                tell(&format!("exported {} to {}", root.short(), path.display()));
                hint(&format!("agent-cli import {} imports it", shell_path(path)));
            }
        }
        Ok(ExitStatus::Ok)
    }
}

/// The names of arguments of the chain's agents that may hold a secret.
fn secret_options(store: &Store, root: FrameId) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    for node in store.tree(root)?.all() {
        let Some(frame) = store.frame(node.id)? else { continue };
        names.extend(inventory::may_be_secret(&frame.launch.args).into_iter().map(str::to_owned));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Replaces an existing file only after everything is written. A temporary file is private, and stays so.
fn write(store: &Store, root: FrameId, path: &Path) -> Result<(), CliError> {
    let broken = |error: io::Error| CliError::failed(format!("cannot write {}: {error}", path.display()));
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".agent-cli-export-").tempfile_in(folder).map_err(broken)?;
    let mut file = BufWriter::new(file);
    store.housekeeping().export(root, &mut file)?;
    let file = file.into_inner().map_err(|error| broken(error.into_error()))?;
    file.as_file().sync_all().map_err(broken)?;
    file.persist(path).map_err(|error| broken(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(broken)
}
