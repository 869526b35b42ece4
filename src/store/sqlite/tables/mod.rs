//! How the rows of each table are written and read. Nothing is decided here.

pub(crate) mod below;
pub(crate) mod chains;
pub(crate) mod events;
pub(crate) mod frames;
pub(crate) mod notifications;
pub(crate) mod requests;
pub(crate) mod tree_rows;
