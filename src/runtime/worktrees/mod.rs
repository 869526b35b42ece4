//! Git worktrees of agents.

pub(crate) mod directory;
pub(crate) mod git;
pub(crate) mod inspection;
pub(crate) mod remote;
pub(crate) mod remote_repository;
pub(crate) mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod unpack;
pub(crate) mod worktree;
pub(crate) mod worktree_removal;
