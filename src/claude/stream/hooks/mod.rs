//! What the events of an attempt say about the user's hooks.

pub(crate) mod asking_hooks;
pub(crate) mod deciding_hooks;
