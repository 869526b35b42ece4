//! `agent-cli import`: imports an exported chain.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::housekeeping::import::{self, Outcome};
use crate::app::view::outcome::ImportView;
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print, print_json, print_line, tell};
use crate::core::housekeeping::inventory::Inventory;
use crate::core::housekeeping::relocation::Move;
use crate::core::text::shell::{quoted, shell_word};

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
        let store = context.store()?;
        let (app, name) = (context.app(&store), self.file.display().to_string());
        // Read the archive only once, for listing and for importing, because the file may change in between.
        let archive = if self.file == Path::new("-") {
            import::read(&app, &name, io::stdin().lock(), self.cwd.clone())?
        } else {
            // Checked before the file is opened.
            app.asker.may(PersonsTask::Import)?;
            let file = File::open(&self.file).map_err(|error| {
                CliError::usage(format!("cannot read {name}: {error}"))
                    .hint("agent-cli export ID > FILE writes such a file")
            })?;
            import::read(&app, &name, BufReader::new(file), self.cwd.clone())?
        };
        let archive = archive.adapt(context.settings(None)?.claude.as_deref(), context.launch()?)?;
        if self.trust.is_none() && !self.is_trusted(archive.inventory(), &archive.digest)? {
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let file = if is_plain { name } else { quoted(&name) };
            // Standard input cannot be read twice.
            let trust = if file == "-" { "--trust".to_owned() } else { format!("--trust={}", archive.digest) };
            // Elsewhere, it would run something else.
            let moves =
                self.cwd.iter().map(|one| format!(" --cwd {}", shell_word(&one.to_string()))).collect::<String>();
            return Err(CliError::usage("nothing was imported: the chain is not trusted yet")
                .hint(format!("if you would run all of this: agent-cli import {file}{moves} {trust}")));
        }
        let listed = self.trust.as_ref().and_then(Option::as_deref);
        let Outcome { chain, has_lost_its_name } = import::import(&app, &archive, listed)?;
        if has_lost_its_name {
            tell("it was imported without its name, which another chain has");
        }
        let next = format!("agent-cli resume {chain}");
        if self.json {
            print_json(&ImportView::Imported { id: chain, next })?;
        } else {
            tell(&format!("imported; resume with: {next}"));
            print_line(&chain.to_string())?;
        }
        Ok(ExitStatus::Ok)
    }

    /// Shows what the chain would run, and asks for confirmation if possible.
    fn is_trusted(&self, inventory: &Inventory, digest: &str) -> Result<bool, CliError> {
        let lines = inventory.lines().join("\n");
        let can_ask = self.file != Path::new("-") && confirm::is_at_a_terminal();
        match (self.json, can_ask) {
            (true, _) => print_json(&ImportView::NotTrusted { inventory, digest })?,
            (false, false) => print(&format!("{lines}\n"))?,
            (false, true) => {
                tell(&lines);
                return confirm::confirm("import this chain?");
            }
        }
        Ok(false)
    }
}
