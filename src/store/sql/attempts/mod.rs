//! The rows of attempts, and the end of one.

pub(crate) mod attempt_records;
pub(crate) mod end;
pub(crate) mod program_cache;
pub(crate) mod returns;
pub(crate) mod spent;
pub(crate) mod undelivered;
