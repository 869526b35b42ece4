//! What `doctor` knows about Claude Code.

pub(crate) mod checks;
pub(crate) mod crontab;
pub(crate) mod login;
pub(crate) mod plugin;
pub(crate) mod surroundings;
