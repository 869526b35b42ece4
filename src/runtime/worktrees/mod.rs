//! Git worktrees of agents.

pub(crate) mod directory;
pub(crate) mod git;
pub(crate) mod inspection;
pub(crate) mod remove;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod worktree;
