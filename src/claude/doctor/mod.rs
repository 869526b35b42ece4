//! What `doctor` knows about Claude Code.

pub mod checks;
pub mod cron;
pub mod login;
pub mod surroundings;
