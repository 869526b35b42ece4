//! Where the work of the agents below the top of a chain is.

use std::collections::HashMap;

use serde::Serialize;

use crate::cli::output::tell;
use crate::core::agent::worktree::Worktree;
use crate::core::chain::progress;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::store::{Store, WorktreesOf};

/// The worktree of one of them.
#[derive(Debug, Serialize)]
pub(crate) struct WorktreeBelow {
    id: FrameId,
    task: String,
    #[serde(flatten)]
    worktree: Worktree,
}

/// More than a person reads on the way.
const MOST: usize = 20;

/// The worktrees of the agents below `top` that are over, parents first. Those that `gc` has removed are left out.
pub(crate) fn of(store: &Store, top: FrameId) -> Result<Vec<WorktreeBelow>, RuntimeError> {
    let mut worktrees: HashMap<FrameId, Worktree> = store.worktrees(WorktreesOf::Chain(top))?.into_iter().collect();
    worktrees.retain(|frame, worktree| *frame != top && worktree.path.exists());
    if worktrees.is_empty() {
        return Ok(Vec::new());
    }
    let tree = store.tree(top)?;
    let over = tree.parents_first().into_iter().filter(|node| node.state.is_over());
    let found = over.filter_map(|node| {
        let worktree = worktrees.remove(&node.id)?;
        Some(WorktreeBelow { id: node.id, task: node.title.clone(), worktree })
    });
    Ok(found.collect())
}

/// Prints those that the reply of the top does not name.
pub(crate) fn print(worktrees: &[WorktreeBelow], reply: &str) {
    let unnamed: Vec<_> = worktrees.iter().filter(|below| !reply.contains(&below.worktree.branch)).collect();
    for WorktreeBelow { id, task, worktree } in unnamed.iter().take(MOST) {
        tell(&progress::step(*id, task, &worktree.whereabouts()));
    }
    if unnamed.len() > MOST {
        tell(&format!("{} more agents have a branch: agent-cli show ID names it", unnamed.len() - MOST));
    }
}
