//! Continues chains without a person: all of them once, or whenever something changes.

mod changes;
pub(crate) mod every_chain;
pub(crate) mod places;
pub(crate) mod watch;
