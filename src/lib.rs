//! `agent-cli` runs chains of headless Claude Code agents that may pause for minutes or weeks.

pub mod claude;
pub mod core;
pub mod store;
