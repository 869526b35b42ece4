//! Trees that can be removed, their sessions, and the agents that still need them.

use std::path::PathBuf;
use std::{fs, io, thread};

use jiff::Timestamp;

use crate::core::agent::launch::Launch;
use crate::core::housekeeping::retention::{Age, Retention};
use crate::core::id::{FrameId, SessionId};
use crate::store::error::{Result, StoreError};

/// A tree that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removable {
    /// Its root.
    pub root: FrameId,
    /// The root's task in a few words.
    pub title: String,
    /// Why it is old enough.
    pub age: Age,
    /// How many agents it has, groups not counted.
    pub agents: usize,
    /// How many attempts its agents have made. Starting one of them adds one.
    pub attempts: u64,
    /// Its frames, parents first, each with whether it is done.
    pub frames: Vec<(FrameId, bool)>,
}

/// A tree to remove, unless one of its agents has been started since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    pub root: FrameId,
    /// How many attempts its agents had made.
    pub attempts: u64,
}

/// Which trees are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovableOf {
    /// All trees that need not be kept.
    Retention(Retention),
    Root(FrameId),
}

impl From<Retention> for RemovableOf {
    fn from(retention: Retention) -> Self {
        Self::Retention(retention)
    }
}

impl From<FrameId> for RemovableOf {
    fn from(root: FrameId) -> Self {
        Self::Root(root)
    }
}

impl Removable {
    /// Whether the frames of the tree have changed, or one of them has been started since.
    pub(crate) fn is_other(&self, before: &Self) -> bool {
        self.attempts != before.attempts
            || !self.frames.iter().map(|(frame, _)| frame).eq(before.frames.iter().map(|(frame, _)| frame))
    }
}

/// Trees that were removed from the database.
#[derive(Debug)]
pub struct RemovedTrees {
    pub roots: Vec<FrameId>,
    /// Their files.
    pub trash: Trash,
}

/// Directories that no record refers to any more. If they are not deleted, they are orphans.
#[derive(Debug, Default)]
#[must_use]
pub struct Trash(Vec<PathBuf>);

/// How many threads delete directories: most of the time is spent in the file system, which handles several at once.
const DELETERS: usize = 4;

impl Trash {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    /// Deletes them. Returns how many there were.
    pub(crate) fn delete(self) -> Result<usize> {
        let delete_each = |paths: &[PathBuf]| {
            paths.iter().try_for_each(|path| match fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
                _ => Ok(()),
            })
        };
        thread::scope(|scope| {
            let mut parts = self.0.chunks(self.0.len().div_ceil(DELETERS).max(1));
            let first = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || delete_each(part))).collect();
            let deleted = delete_each(first);
            others.into_iter().fold(deleted, |deleted, other| {
                deleted.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })?;
        Ok(self.0.len())
    }
}

/// A session in which an agent has worked, for its transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkedSession {
    pub frame: FrameId,
    pub session: SessionId,
    /// Where the agent works.
    pub cwd: PathBuf,
    pub launch: Launch,
    /// When the last attempt in this session ended, if that is recorded.
    pub ended: Option<Timestamp>,
}

/// An agent that works in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its frame.
    pub frame: FrameId,
    /// Its root.
    pub root: FrameId,
    /// Whether it failed or was stopped and could be continued.
    pub is_over: bool,
}
