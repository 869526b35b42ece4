//! `agent-cli import`: takes up a chain that was exported.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::{print_json, print_line, tell};
use crate::core::moves::{Move, Moves};

/// Take up a chain that `agent-cli export` wrote
///
/// Prints the id of its root. All of the chain is taken up, or nothing. Its agents work where they worked before; where
/// that is another directory here, say so with --cwd. Import only what you would run: the chain brings its instructions,
/// its permissions and the arguments for claude with it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ssh old agent-cli export 4f2c1a90 | agent-cli import - --cwd /home/ann/work=/home/bob/work")]
pub(super) struct Import {
    /// The file; - is standard input
    file: PathBuf,

    /// A directory and those below it that have another path here; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    cwd: Vec<Move>,

    /// Print a JSON object: id, next
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        if context.caller.is_some() {
            return Err(CliError::usage("an agent does not import chains").hint("this is for the person"));
        }
        let moves = Moves::new(self.cwd);
        let store = context.store()?;
        let root = if self.file == Path::new("-") {
            store.import(&mut io::stdin().lock(), &moves)?
        } else {
            let file = File::open(&self.file).map_err(|error| {
                CliError::usage(format!("cannot read {}: {error}", self.file.display()))
                    .hint("agent-cli export ID > FILE writes such a file")
            })?;
            store.import(&mut BufReader::new(file), &moves)?
        };
        let next = format!("agent-cli resume {root}");
        if self.json {
            print_json(&serde_json::json!({"id": root, "next": next}))?;
        } else {
            tell(&format!("the chain is here; this carries it on: {next}"));
            print_line(&root.to_string())?;
        }
        Ok(Exit::Ok)
    }
}
