//! The events that `claude` prints: how to read them, and what they mean together.

pub(crate) mod background_work;
pub(crate) mod denials;
pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod hooks;
pub(crate) mod lifetime;
pub(crate) mod line_cutter;
pub(crate) mod output_reader;
pub(crate) mod rights;
pub(crate) mod tokens;
pub(crate) mod tool_calls;
pub(crate) mod translate;
