//! Continues chains without a person: all of them once, or whenever something changes.

pub(crate) mod changes;
pub(crate) mod continuing;
