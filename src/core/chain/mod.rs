//! Chains: their frames and states, which frame runs next, and what keeps it from starting.

pub(crate) mod admission;
pub(crate) mod backoff;
pub(crate) mod check_schedule;
pub(crate) mod frame;
pub(crate) mod frame_state;
pub(crate) mod group;
pub(crate) mod handoff;
pub(crate) mod limits;
pub(crate) mod progress_lines;
pub(crate) mod runnable;
pub(crate) mod tree;
pub(crate) mod waiting_on;
