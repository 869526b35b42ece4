//! Git worktrees of agents.

pub(crate) mod git;
pub(crate) mod inspection;
pub(crate) mod place;
pub(crate) mod project;
pub(crate) mod remove;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod worktree;
