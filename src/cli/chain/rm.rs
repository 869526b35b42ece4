//! `agent-cli rm`: removes one chain.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup::frame_named;
use crate::cli::output::format::{bytes, one_line};
use crate::cli::output::{print_json, print_line, tell};
use crate::core::agent::worktree::Held;
use crate::runtime::housekeeping::removal::{self, Removal, RemovedChain};

/// Remove a chain, whatever its state
///
/// A chain goes as a whole: its agents, questions, replies and log, its files in the state directory, and the transcripts of the
/// sessions that agent-cli has started. It stays as long as a process of it lives, another chain needs it, or a git worktree of its agents
/// holds work that is not on another branch.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// The chain: its id, or that of one of its agents or questions; four characters or more
    id: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Also worktrees that hold ignored files other than build output and caches
    #[arg(long)]
    ignored: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.only_for_people("an agent does not remove chains", "this is for the person")?;
        let store = context.store()?;
        let root = store.root_of(frame_named(context, &store, &self.id)?)?;
        if !self.yes {
            let frame = store.frame(root)?.map(|frame| (frame.task.title(), frame.state.name())).unwrap_or_default();
            let agents = store.tree(root)?.all().count();
            let what = format!("{} ({}): {}, agents: {agents}", one_line(&frame.0), root.short(), frame.1);
            if !io::stdin().is_terminal() {
                return Err(CliError::usage(format!("this removes {what}"))
                    .hint(format!("agent-cli rm {} --yes does it without asking", root.short())));
            }
            tell(&format!("remove {what}? (y or n)"));
            let mut answer = String::new();
            let read = io::stdin().lock().read_line(&mut answer);
            read.map_err(|error| CliError::failed(format!("cannot read the answer: {error}")))?;
            if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
                return Err(CliError::failed("nothing was removed"));
            }
        }
        match removal::remove_tree(&store, root, self.ignored)? {
            Removal::Gone(tree) => self.gone(&tree),
            Removal::Busy => Err(CliError::failed(format!("a process of {} still lives", root.short())).hint(format!(
                "agent-cli resume {} says which process drives it: stop that with Ctrl-C, or wait for it",
                root.short()
            ))),
            Removal::Needed => {
                Err(CliError::failed(format!("another chain waits for an agent of {}, or continues its session", root.short()))
                    .hint("agent-cli tree shows the chains: remove that one first"))
            }
            Removal::Held(held) => Err(held.iter().fold(
                CliError::failed(format!("worktrees of {} hold work", root.short())),
                |error, Held { frame, path, branch, why }| {
                    error.also(format!("{} (branch {branch}, of {}): {why}", path.display(), frame.short()))
                },
            )
            .hint("merge it or commit it to another branch; git worktree remove --force removes a worktree that is not needed")),
        }
    }

    fn gone(&self, tree: &RemovedChain) -> Result<ExitStatus, CliError> {
        if self.json {
            print_json(&json!({"removed": tree}))?;
        } else {
            print_line(&format!("removed {}, agents: {}, {}", tree.id.short(), tree.agents, bytes(tree.bytes)))?;
        }
        Ok(ExitStatus::Ok)
    }
}
