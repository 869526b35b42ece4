//! Hands results to agents, with what changed around them.

pub(crate) mod plans;
pub(crate) mod situation;
pub(crate) mod stale_files;
pub(crate) mod ways;
