//! What an agent is started with and what surrounds it: launch options, rights, mode, worktree.

pub(crate) mod claude_args;
pub(crate) mod denied;
pub(crate) mod launch;
pub(crate) mod option_rights;
pub(crate) mod overrides;
pub(crate) mod permission_mode;
pub(crate) mod repair;
pub(crate) mod session_files;
pub(crate) mod situation;
pub(crate) mod stale_files;
pub(crate) mod starting_mode;
pub(crate) mod worktree;
