//! `agent-cli rm`: removes one chain.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::lookup::frame_named;
use crate::app::view::outcome::RmView;
use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{bytes, one_line};
use crate::cli::output::{print_json, print_line, tell};
use crate::core::agent::child_worktree::Held;
use crate::runtime::housekeeping::removal::{self, Removal, RemovedChain};

/// Remove a chain that is not running
///
/// Removes the whole chain: agents, questions, replies and history, files in the state directory, and the transcripts
/// of sessions that agent-cli started. It does not matter whether the chain is done, waits or has failed. Refuses while
/// one of its processes is alive (`stop` ends them), another chain needs it, or a git worktree of its agents contains work
/// that is on no other branch.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// Id of the chain, or of one of its agents or questions; its first four characters are enough if unique
    #[arg(add = candidates::all_chains())]
    id: String,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,

    /// Also remove worktrees with ignored files other than build output and caches
    #[arg(long)]
    ignored: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::Remove)?;
        let store = context.store()?;
        let root = store.chain_of(frame_named(&context.app(&store), &self.id)?)?.root;
        if !self.yes {
            let frame = store.frame(root)?.map(|frame| (frame.task.title(), frame.state.name())).unwrap_or_default();
            let agents = store.tree(root)?.all().filter(|node| !node.is_group).count();
            let what = format!("{} ({}; {}, agents: {agents})", one_line(&frame.0), root.short(), frame.1);
            if !io::stdin().is_terminal() {
                return Err(CliError::usage(format!(
                    "cannot ask whether to remove {what}: standard input is not a terminal"
                ))
                .hint(format!("agent-cli rm {} --yes removes it without asking", root.short())));
            }
            tell(&format!("remove {what}? [y/N]"));
            let mut answer = String::new();
            let read = io::stdin().lock().read_line(&mut answer);
            read.map_err(|error| CliError::failed(format!("cannot read the answer: {error}")))?;
            if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
                return Err(CliError::usage("nothing was removed"));
            }
        }
        match removal::remove_tree(&store, root, self.ignored)? {
            Removal::Gone(tree) => self.gone(&tree),
            Removal::Busy => {
                Err(CliError::failed(format!("a process of {} is still alive", root.short())).hint(format!(
                    "agent-cli resume {} names the process: stop it with Ctrl-C, or wait for it to end",
                    root.short()
                )))
            }
            Removal::Needed => Err(CliError::failed(format!(
                "another chain waits for an agent of {}, or continues one of its sessions",
                root.short()
            ))
            .hint("remove that chain first; agent-cli tree shows all chains")),
            Removal::Held(held) => Err(held
                .iter()
                .fold(
                    CliError::failed(format!("worktrees of {} contain work", root.short())),
                    |error, Held { frame, path, branch, why }| {
                        error.also(format!("{} (branch {branch}, of {}): {why}", path.display(), frame.short()))
                    },
                )
                .hint("merge it or commit it to another branch, or discard it with git worktree remove --force")),
        }
    }

    fn gone(&self, tree: &RemovedChain) -> Result<ExitStatus, CliError> {
        if self.json {
            print_json(&RmView { removed: tree })?;
        } else {
            print_line(&format!("removed {}, agents: {}, {}", tree.id.short(), tree.agents, bytes(tree.bytes)))?;
        }
        Ok(ExitStatus::Ok)
    }
}
