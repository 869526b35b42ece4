//! Shows chains while this process runs them.

pub(crate) mod display;
mod rows;
pub(crate) mod watcher;
