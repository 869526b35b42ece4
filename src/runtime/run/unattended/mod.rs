//! Continues chains without a person: all of them once, or whenever something changes.

mod changes;
pub(crate) mod continuing;
pub(crate) mod places;
