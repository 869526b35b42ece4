//! Git worktrees of agents.

pub mod git;
pub(crate) mod inspection;
pub(crate) mod remove;
#[cfg(test)]
pub(crate) mod testing;
pub mod worktree;
