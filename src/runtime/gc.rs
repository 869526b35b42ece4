//! Removes trees that were finished long ago, with everything that was kept for them.
//!
//! The order makes a kill at any moment harmless. First go worktrees in which nothing would be lost, then the transcripts in Claude Code's folders, while the database
//! still says which of them are this program's; then the rows, in one transaction; then the files of the state directory,
//! which nothing refers to any more: whoever is killed before that leaves leftovers, and the next one removes them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::worktree::{self, Cleared};
use super::{RuntimeError, while_trying};
use crate::claude::command::config_dir;
use crate::claude::transcript;
use crate::core::id::FrameId;
use crate::core::retention::Retention;
use crate::core::worktree::Held;
use crate::store::{Lease, Leftover, Removable, Store, size};

/// What was removed, or would be.
#[derive(Debug, Default, Serialize)]
pub struct Collected {
    /// The trees, the oldest first.
    pub trees: Vec<Tree>,
    /// Trees that stay because a process of one of their frames still lives.
    pub busy: Vec<FrameId>,
    /// Worktrees of agents that were removed.
    pub worktrees: Vec<PathBuf>,
    /// Worktrees that stay, and their trees with them.
    pub held: Vec<Held>,
    /// Files and directories that nothing used any more.
    pub leftovers: Vec<PathBuf>,
    /// How many bytes the files held, those of trees and leftovers.
    pub bytes: u64,
    /// By how many bytes the database has shrunk.
    pub database_bytes: u64,
}

/// A tree that was removed, or would be.
#[derive(Debug, Serialize)]
pub struct Tree {
    /// Its root.
    pub id: FrameId,
    /// The root's task in a few words.
    pub task: String,
    /// The state of its root.
    pub status: &'static str,
    /// Since when nothing has changed in it.
    pub since: jiff::Timestamp,
    /// How many frames it had.
    pub agents: u64,
    /// Those frames.
    #[serde(skip)]
    pub frames: Vec<FrameId>,
    /// How many bytes its files held, here and in Claude Code's folders.
    pub bytes: u64,
}

/// Removes what `retention` does not keep, and what is left over. With `pretend`, only says what that would be.
///
/// # Errors
///
/// [`RuntimeError`] when the state directory or Claude Code's cannot be read or written. What was removed until then is
/// removed.
pub fn collect(store: &Store, retention: Retention, pretend: bool) -> Result<Collected, RuntimeError> {
    let mut collected = Collected::default();
    for tree in store.removable(retention)? {
        let root = tree.root;
        if is_run(store, root)? {
            collected.busy.push(root);
            continue;
        }
        let cleared = worktree::clear(store, store.worktrees(root)?, pretend)?;
        let holds_work = !cleared.held.is_empty();
        collected.take(cleared);
        if holds_work {
            continue;
        }
        match remove(store, tree, retention, pretend)? {
            Some(removed) => {
                collected.bytes += removed.bytes;
                collected.trees.push(removed);
            }
            None => collected.busy.push(root),
        }
    }
    collected.take(worktree::clear(store, store.handed_over_worktrees(retention.before)?, pretend)?);
    // What is in the directory of a tree that goes was counted with it.
    let counted: HashSet<FrameId> = collected.trees.iter().flat_map(|tree| tree.frames.iter().copied()).collect();
    for leftover in store.leftovers()? {
        if leftover.frame.is_some_and(|frame| counted.contains(&frame)) {
            continue;
        }
        if pretend || store.remove_leftover(&leftover)? {
            let Leftover { path, bytes, .. } = leftover;
            collected.bytes += bytes;
            collected.leftovers.push(path);
        }
    }
    if !collected.trees.is_empty() && !pretend {
        // The rows are gone in any case, and their space is used again.
        collected.database_bytes = store.shrink().unwrap_or_else(|error| {
            tracing::warn!("the database was not made smaller: {error}");
            0
        });
    }
    Ok(collected)
}

impl Collected {
    /// Adds worktrees that were not met before.
    fn take(&mut self, cleared: Cleared) {
        self.worktrees.extend(cleared.removed);
        self.held.extend(cleared.held);
        self.worktrees.sort();
        self.worktrees.dedup();
        self.held.sort_by(|one, other| one.path.cmp(&other.path));
        self.held.dedup();
    }
}

/// Whether a process of one of its frames lives.
fn is_run(store: &Store, root: FrameId) -> Result<bool, RuntimeError> {
    for node in store.tree(root)?.all() {
        if Lease::is_held(store.dir(), node.id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `None`: it stays, because a process of it lives or because somebody has carried on with it meanwhile.
fn remove(store: &Store, tree: Removable, retention: Retention, pretend: bool) -> Result<Option<Tree>, RuntimeError> {
    let frames: Vec<FrameId> = store.tree(tree.root)?.parents_first().into_iter().map(|node| node.id).collect();
    if is_run(store, tree.root)? {
        return Ok(None);
    }
    let transcripts = own_transcripts(store, &frames, retention)?;
    let beside = |path: &PathBuf| size(path) + size(&path.with_extension(""));
    let in_claude: u64 = transcripts.iter().map(beside).sum();
    let here: u64 = frames.iter().map(|frame| size(&store.dir().frame_path(*frame))).sum();
    if !pretend {
        for path in &transcripts {
            transcript::delete(path).map_err(while_trying("delete a transcript"))?;
        }
        if !store.remove_tree(tree.root, retention)? {
            return Ok(None);
        }
        for frame in &frames {
            store.remove_frame_dir(*frame)?;
        }
    }
    Ok(Some(Tree {
        id: tree.root,
        task: tree.title,
        status: tree.age.root.name(),
        since: tree.age.latest,
        agents: tree.frames,
        frames,
        bytes: in_claude + here,
    }))
}

/// The transcripts of sessions that this program has started for these frames. One that was written to since is left
/// alone: a person has carried on with that session.
fn own_transcripts(store: &Store, frames: &[FrameId], retention: Retention) -> Result<Vec<PathBuf>, RuntimeError> {
    let mut found = Vec::new();
    for id in frames {
        let Some(frame) = store.frame(*id)? else { continue };
        let Some(config) = config_dir(&frame.launch) else { continue };
        let sessions = store.attempts(*id)?.into_iter().map(|attempt| attempt.session);
        found.extend(sessions.filter_map(|session| transcript::find(&config, &frame.cwd, session)));
    }
    let old = |path: &Path| {
        let time = path.metadata().and_then(|found| found.modified()).ok();
        time.and_then(|time| jiff::Timestamp::try_from(time).ok()).is_some_and(|time| time <= retention.before)
    };
    found.retain(|path| old(path));
    Ok(found)
}
