//! Settings of Claude Code: the files that it reads, and the settings that it is given.

pub(crate) mod file;
pub(crate) mod merged;
pub(crate) mod permission_rules;
pub(crate) mod user_hooks;
