//! The rows of chains and their frames.

pub(crate) mod candidates;
pub(crate) mod exchanges;
pub(crate) mod limits;
pub(crate) mod listing;
pub(crate) mod lookup;
pub(crate) mod repair;
pub(crate) mod trees;
pub(crate) mod worktrees;
