//! The events that `claude` prints: reading them, and what they amount to.

pub mod asking_hooks;
pub mod background;
pub(crate) mod cut_short;
pub mod denials;
pub mod digest;
pub mod event;
pub mod jobs;
pub mod reader;
pub mod result_event;
pub mod rights;
pub mod tasks;
pub mod tool_calls;
