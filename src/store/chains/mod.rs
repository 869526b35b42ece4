//! The rows of chains and their frames.

pub(crate) mod abandoned;
pub(crate) mod attach;
pub(crate) mod events;
pub(crate) mod frames;
pub(crate) mod groups;
pub(crate) mod limits;
pub(crate) mod lookup;
pub(crate) mod repair;
pub(crate) mod tree_rows;
pub(crate) mod trees;
pub(crate) mod worktrees;
