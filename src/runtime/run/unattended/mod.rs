//! Continues chains without a person: all of them once, or whenever something changes.

pub(crate) mod change_watch;
pub(crate) mod continuing;
