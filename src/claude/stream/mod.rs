//! The events that `claude` prints.

pub mod reader;
