//! The rows of each table: how they are written and read, and no decision.

pub(crate) mod below;
pub(crate) mod chains;
pub(crate) mod events;
pub(crate) mod frames;
pub(crate) mod notifications;
pub(crate) mod requests;
pub(crate) mod tree_rows;
