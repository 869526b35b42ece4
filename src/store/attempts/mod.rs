//! The rows of attempts, and the end of one.

pub(crate) mod attempt;
pub(crate) mod program_cache;
pub(crate) mod settlement;
