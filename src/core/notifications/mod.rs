//! What a person wants to be told of, and in which form: the rules, without a process.

pub(crate) mod event_commands;
pub(crate) mod occasion;
pub(crate) mod payload;
