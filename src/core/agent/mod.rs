//! How an agent is started and what surrounds it: launch options, rights, mode, worktree.

pub(crate) mod child_worktree;
pub(crate) mod claude_args;
pub(crate) mod denied_call;
pub(crate) mod file_changes;
pub(crate) mod launch;
pub(crate) mod overrides;
pub(crate) mod permission_mode;
pub(crate) mod reply_schema;
pub(crate) mod session_file_names;
pub(crate) mod situation;
pub(crate) mod starting_mode;
pub(crate) mod usage;
