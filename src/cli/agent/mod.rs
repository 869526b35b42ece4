//! Commands that Claude Code calls.

pub(crate) mod hook;
pub(crate) mod hook_result;
pub(crate) mod native_waits;
pub(crate) mod permission;
