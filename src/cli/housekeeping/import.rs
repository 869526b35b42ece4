//! `agent-cli import`: imports an exported chain.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use sha2::{Digest as _, Sha256};

use crate::app::asker::PersonsTask;
use crate::app::view::outcome::ImportView;
use crate::claude::installation::program;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print, print_json, print_line, tell};
use crate::core::agent::launch::Launch;
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::inventory::Inventory;
use crate::core::housekeeping::relocation::{Move, Relocation};
use crate::core::text::shell::quoted;
use crate::runtime::recovery::foreign_session;
use crate::store::{Here, Store, Unpacked};

/// Import a chain written by `agent-cli export`
///
/// Prints the id of the chain. Imports all of it or nothing. Its agents work in the same directories as before; use
/// --cwd if a directory has another path here. They run this machine's claude, with the PATH of this shell.
///
/// A chain brings its own instructions, permissions, arguments for claude and commands. They are listed first, and the
/// chain is imported only with --trust, or after you confirm at a terminal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli import chain.tar --cwd /home/ann/work=/home/bob/work
  ssh laptop agent-cli export 4f2c1a90 | agent-cli import - --trust")]
pub(crate) struct Import {
    /// The file, or - for standard input
    file: PathBuf,

    /// Replace the directory OLD, and directories below it, with NEW; can be repeated
    #[arg(long, value_name = "OLD=NEW")]
    cwd: Vec<Move>,

    /// Import the chain: you would run everything that it would run; with DIGEST only if the file is the one that was listed
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true)]
    trust: Option<Option<String>>,

    /// Print a JSON object: id and next, or without --trust what the chain would run
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::Import)?;
        let (store, relocation) = (context.store()?, Relocation::new(self.cwd.clone()));
        // What is listed and what is imported is read once: a file may change.
        let (archive, digest) = if self.file == Path::new("-") {
            read(&store, io::stdin().lock(), &relocation)?
        } else {
            let file = File::open(&self.file).map_err(|error| {
                CliError::usage(format!("cannot read {}: {error}", self.file.display()))
                    .hint("agent-cli export ID > FILE writes such a file")
            })?;
            read(&store, BufReader::new(file), &relocation)?
        };
        let (claude, Launch { path, environment, .. }) = (context.settings(None)?.claude, context.launch()?);
        let claude = program::locate(claude.as_deref(), None, path.as_ref().map(AsRef::as_ref))?;
        let archive = archive.adapt(&Here { claude, path, environment })?;
        if let Some(Some(trusted)) = &self.trust
            && *trusted != digest
        {
            let message = format!("nothing was imported: {} is not the file that was listed", self.file.display());
            return Err(CliError::usage(message).hint("without --trust, import lists what the chain would run"));
        }
        if self.trust.is_none() && !self.is_trusted(archive.inventory())? {
            let file = self.file.display().to_string();
            let is_plain = file.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let file = if is_plain { file } else { quoted(&file) };
            // Nobody can read standard input twice.
            let trust = if file == "-" { "--trust".to_owned() } else { format!("--trust={digest}") };
            return Err(CliError::usage("nothing was imported: the chain is not trusted yet")
                .hint(format!("if you would run all of this: agent-cli import {file} {trust}")));
        }
        foreign_session::refuse_import(&archive.sessions(store.dir())?)?;
        let root = store.housekeeping().import(&archive)?;
        if store.events(root, 0)?.last().is_some_and(|event| matches!(event.entry, LogEntry::NameLost { .. })) {
            tell("it was imported without its name, which another chain has");
        }
        let next = format!("agent-cli resume {root}");
        if self.json {
            print_json(&ImportView::Imported { id: root, next })?;
        } else {
            tell(&format!("imported; resume with: {next}"));
            print_line(&root.to_string())?;
        }
        Ok(ExitStatus::Ok)
    }

    /// Shows what the chain would run, and asks for confirmation if possible.
    fn is_trusted(&self, inventory: &Inventory) -> Result<bool, CliError> {
        let lines = inventory.lines().join("\n");
        let can_ask = self.file != Path::new("-") && io::stdin().is_terminal() && io::stderr().is_terminal();
        match (self.json, can_ask) {
            (true, _) => print_json(&ImportView::NotTrusted(inventory))?,
            (false, false) => print(&format!("{lines}\n"))?,
            (false, true) => {
                tell(&lines);
                tell("import this chain? [y/N]");
                let mut answer = String::new();
                let read = io::stdin().read_line(&mut answer);
                read.map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))?;
                return Ok(["yes", "y"].contains(&answer.trim().to_lowercase().as_str()));
            }
        }
        Ok(false)
    }
}

/// The archive, and a digest of all that was read.
fn read(store: &Store, from: impl Read, relocation: &Relocation) -> Result<(Unpacked, String), CliError> {
    let mut from = Digested { from, digest: Sha256::new() };
    let archive = Unpacked::read(store.dir(), &mut from, relocation)?;
    io::copy(&mut from, &mut io::sink())
        .map_err(|error| CliError::failed(format!("cannot read the archive to its end: {error}")))?;
    Ok((archive, from.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

struct Digested<R> {
    from: R,
    digest: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.digest.update(&into[..length]);
        Ok(length)
    }
}
