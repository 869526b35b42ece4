//! Delivers results to agents, and tells them what has changed around them.

pub(crate) mod restored_situation;
pub(crate) mod stale_files;
mod transcript_copies;
pub(crate) mod ways;
