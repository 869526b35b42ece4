//! Writes and reads the rows of each table. No decisions are made here.

pub(crate) mod attempt_rows;
pub(crate) mod below;
pub(crate) mod chains;
pub(crate) mod events;
pub(crate) mod frames;
pub(crate) mod notifications;
pub(crate) mod requests;
pub(crate) mod tree_rows;
