//! What agents wait for outside their chain: conditions, progress and results.

pub(crate) mod command_output;
pub(crate) mod conditions;
pub(crate) mod outlook;
pub(crate) mod scheduled;
pub(crate) mod wait_progress;
pub(crate) mod words;
