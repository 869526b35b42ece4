//! Transcripts: where they are, what they say, and how copies of them are made.

pub mod ancestry;
pub mod insert_results;
pub mod locate;
pub(crate) mod others;
pub mod reopen;
pub mod rewrite;
pub mod salvage;
pub mod session_files;
pub mod turn;
pub mod whereabouts;
