//! Chains: their frames and states, which frame runs next, and what keeps it from starting.

pub mod admission;
pub mod backoff;
pub mod frame;
pub mod group;
pub mod limits;
pub mod origin;
pub(crate) mod progress;
pub mod runnable;
pub mod state;
pub mod tree;
pub mod waiting_on;
