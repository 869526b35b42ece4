//! Settings of Claude Code: the files that it reads, and the settings that it is given.

pub mod file;
pub mod merged;
pub mod permission_rules;
pub mod user_hooks;
