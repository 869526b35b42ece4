//! The rows of chains and their frames.

pub(crate) mod candidates;
pub(crate) mod exchanges;
pub(crate) mod limit_checks;
pub(crate) mod listing;
pub(crate) mod prefix_lookup;
pub(crate) mod repair;
pub(crate) mod trees;
pub(crate) mod worktrees;
