//! What can be removed, and who still needs it.

use crate::core::housekeeping::retention::{Age, Retention};
use crate::core::id::FrameId;

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
    /// All that need not be kept.
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
    /// Whether the tree has other frames than before, or one of them has been started since.
    pub(crate) fn is_other(&self, before: &Self) -> bool {
        self.attempts != before.attempts
            || !self.frames.iter().map(|(frame, _)| frame).eq(before.frames.iter().map(|(frame, _)| frame))
    }
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
