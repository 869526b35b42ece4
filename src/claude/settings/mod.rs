//! Claude Code's settings: the files that it reads, and the settings that agent-cli gives it.

pub(crate) mod mcp_policy;
pub(crate) mod merged;
pub(crate) mod of_project;
pub(crate) mod own_plugin;
pub(crate) mod permission_rules;
pub(crate) mod settings_file;
pub(crate) mod user_hooks;
