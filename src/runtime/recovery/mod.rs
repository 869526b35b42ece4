//! Determines what an agent can continue from after its process died, and restores it.

pub(crate) mod diverged_session;
pub(crate) mod foreign_session;
pub(crate) mod portable_worktree;
pub(crate) mod restore;
pub(crate) mod room;
