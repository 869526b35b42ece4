//! What agents wait for outside of their chain: its conditions, how far they are, and the result.

pub(crate) mod command_output;
pub(crate) mod conditions;
pub(crate) mod outlook;
pub(crate) mod scheduled;
pub(crate) mod wait_progress;
pub(crate) mod words;
