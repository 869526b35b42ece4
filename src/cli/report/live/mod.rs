//! What is shown of chains while this process drives them.

pub(crate) mod display;
mod rows;
pub(crate) mod watcher;
