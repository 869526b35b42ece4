//! What the events of `claude` amount to.

pub mod asking_hooks;
pub mod background;
pub(crate) mod cut_short;
pub mod digest;
pub mod event;
pub mod jobs;
pub(crate) mod lenient;
pub mod result_event;
pub(crate) mod unfinished;
