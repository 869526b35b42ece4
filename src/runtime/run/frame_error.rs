//! What goes wrong with a frame, in the kinds that need different help.

use crate::claude::installation::program::ProgramError;
use crate::core::agent::worktree::Worktree;
use crate::core::id::FrameId;
use crate::runtime::worktrees::worktree::WorktreeError;

/// What went wrong with a frame.
#[derive(Debug)]
pub struct FrameError {
    /// The frame.
    pub frame: FrameId,
    /// What went wrong.
    pub why: Why,
}

/// The kinds of errors that need different help.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// There is no usable `claude`.
    #[error(transparent)]
    Program(ProgramError),
    /// `claude` refused before any work.
    #[error("{0}")]
    Refused(String),
    /// There is nothing to go on from, or only the end of it.
    #[error("{said}")]
    NoConversation {
        /// What `claude` said, or what was found.
        said: String,
        /// The command that starts the chain anew.
        anew: String,
    },
    /// The working directory is not there.
    #[error("the working directory is gone: {}", .0.display())]
    NoWorkingDirectory(std::path::PathBuf),
    /// The worktree that was made for it is not there.
    #[error("its worktree is gone: {}", .0.path.display())]
    WorktreeGone(Worktree),
    /// No worktree could be made for it.
    #[error(transparent)]
    NoWorktree(WorktreeError),
    /// The attempt ended badly.
    #[error("{0}")]
    Ended(String),
}
