//! What an agent is started with and what it has around it: launch options, rights, mode, worktree.

pub mod claude_args;
pub mod denied;
pub mod launch;
pub(crate) mod option_rights;
pub mod overrides;
pub mod permission_mode;
pub mod repair;
pub mod session_files;
pub mod situation;
pub mod stale_files;
pub mod starting_mode;
pub mod worktree;
