//! The errors of exports and imports.

use std::io;
use std::path::{Path, PathBuf};

use crate::core::agent::child_worktree::Worktree;
use crate::core::housekeeping::archive::BadArchive;
use crate::core::housekeeping::fsck_finding::FsckFinding;
use crate::core::id::FrameId;

/// Why a tree was not exported, or an archive not imported. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The archive cannot be written.
    #[error("the archive cannot be written")]
    Write(#[source] io::Error),
    /// The archive cannot be read.
    #[error("the archive cannot be read")]
    Read(#[source] io::Error),
    /// It is larger than an import accepts.
    #[error("{0} is too large for an archive")]
    TooLarge(String),
    /// An agent of the tree is running, or its runner died and its attempt has not been concluded yet.
    #[error("the agent {} is running", .0.short())]
    Running(FrameId),
    /// The frame waits, but no copy of its session exists.
    #[error("no copy of the session of {} was kept", .0.short())]
    NoCopy(FrameId),
    /// The archive is damaged.
    #[error("the archive cannot be imported")]
    Bad(#[from] BadArchive),
    /// The rows of the archive contradict each other.
    #[error("the archive cannot be imported: {0}")]
    Contradicts(FsckFinding),
    /// It was imported before, or was exported here.
    #[error("{0} already exists here")]
    Exists(String),
    /// A frame's working directory does not exist on this machine.
    #[error("{} worked in {}, {}", frame.short(), cwd.display(), missing(cwd, here))]
    NoDirectory {
        /// The frame.
        frame: FrameId,
        /// Its working directory on the other machine.
        cwd: PathBuf,
        /// What that is on this machine.
        here: PathBuf,
        /// The git worktree that was created for it, and that contains the directory.
        worktree: Option<Box<Worktree>>,
    },
}

fn missing(was: &Path, here: &Path) -> String {
    match was == here {
        true => "which does not exist here".to_owned(),
        false => format!("and {}, which --cwd names for it, does not exist", here.display()),
    }
}
