//! Hands results to agents, with what changed around them.

pub(crate) mod plans;
pub(crate) mod situation;
pub(crate) mod stale_files;
mod transcript_copies;
pub(crate) mod ways;
