//! `agent-cli` runs chains of headless Claude Code agents that may pause for minutes or weeks.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod claude;
pub mod cli;
pub mod core;
pub mod runtime;
pub mod store;
