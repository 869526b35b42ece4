//! What an agent is started with and what it has around it: launch options, rights, mode, worktree.

pub mod claude_args;
pub(crate) mod claude_options;
pub mod denied;
pub mod launch;
pub mod permission_mode;
pub mod session_files;
pub mod situation;
pub mod starting_mode;
pub mod worktree;
