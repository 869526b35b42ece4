//! The installed Claude Code: its program, its version, and whether it accepts its arguments.

pub(crate) mod plugin_command;
pub(crate) mod program;
pub(crate) mod start_refusal;
pub(crate) mod version;
