//! What agents wait for outside of their chain: its conditions, how far they are, and the result.

pub(crate) mod conditions;
pub(crate) mod outlook;
pub(crate) mod output;
pub(crate) mod pattern;
pub(crate) mod progress;
pub(crate) mod words;
