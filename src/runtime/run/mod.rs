//! Drives a chain: the scheduler, attempts and their conclusion.

pub(crate) mod attempt;
pub(crate) mod background;
pub mod driven;
pub(crate) mod external_waits;
pub mod frame_error;
pub(crate) mod running_agent;
pub mod scheduler;
pub mod signals;
pub mod status;
pub(crate) mod stopping;
