//! The events that a person can be notified about, and the form of a notification: the rules, without a process.

pub(crate) mod event_commands;
pub(crate) mod occasion;
pub(crate) mod payload;
