//! Runs a chain: the scheduler, attempts, and waits for things outside.

pub(crate) mod attempt_start;
pub(crate) mod background;
pub(crate) mod driven;
pub(crate) mod external_waits;
pub(crate) mod frame_error;
pub(crate) mod places;
pub(crate) mod running_agent;
pub(crate) mod scheduler;
pub(crate) mod signals;
pub(crate) mod status;
pub(crate) mod stopping;
pub(crate) mod unattended;
