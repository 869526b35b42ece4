//! The events that `claude` prints: how to read them, and what they mean together.

pub(crate) mod asking_hooks;
pub(crate) mod background;
pub(crate) mod cut_short;
pub(crate) mod denials;
pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod jobs;
pub(crate) mod reader;
pub(crate) mod result_event;
pub(crate) mod rights;
pub(crate) mod tasks;
pub(crate) mod tool_calls;
