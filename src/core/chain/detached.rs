//! Chains that agents start as chains of their own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::agent::child_worktree::Worktree;
use crate::core::id::FrameId;

/// What a detached chain keeps of the chain that it comes from, so that its agents get no more rights than a child would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The agent that has started it.
    pub by: FrameId,
    /// Where that agent worked.
    pub cwd: PathBuf,
    /// Where the uppermost agent above it worked: the directory that a person named.
    pub base: PathBuf,
    /// The worktrees of that agent and of those above it.
    pub worktrees: Vec<Worktree>,
}
