//! Decides and drives: what an agent asks for is recorded here, and what can run is run until nothing can.
//!
//! ```text
//! run/scheduler ── which frame is next (core/chain/runnable) ──> run/attempt ──> claude ──> conclude ──> run/scheduler
//!       └───────── a frame whose runner died ───────────────────────────────────────────────^
//! ```
//!
//! An attempt is concluded by the same function whether its runner saw it end or a later one found it dead. While `claude` runs,
//! it asks [`protocol`] about the calls of its agent. [`housekeeping`] looks after whole chains.

mod conclude;
mod delivery;
pub(crate) mod housekeeping;
pub(crate) mod programs;
pub(crate) mod protocol;
mod recovery;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod worktrees;

use std::path::PathBuf;
use std::time::Duration;

use crate::claude::installation::program::ProgramError;
use crate::claude::transcript::ancestry::Broken;
use crate::core::agent::overrides::BadLaunch;
use crate::core::id::{FrameId, SessionId};
use crate::runtime::worktrees::worktree::WorktreeError;
use crate::store::StoreError;

/// What the runtime needs to know and no frame records.
#[derive(Clone, Debug)]
pub(crate) struct RunSettings {
    /// The `claude` that the user names for this run.
    pub claude: Option<PathBuf>,
    /// This program. Its folder is the first in the `PATH` of agents, and it is the hook of their `claude`.
    pub own_program: PathBuf,
    /// Whether agents are told what changed while they waited.
    pub stale_check: bool,
    /// How agents are stopped.
    pub stopping: Stopping,
}

/// How agents are stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopping {
    /// How long the running tool of an agent may take to finish.
    pub grace: Duration,
    /// Tells a person what is waited for.
    pub tell: fn(&str),
}

/// Why a command cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeError {
    /// The state directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No usable `claude`.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// `claude` does not take its arguments.
    #[error("{0}")]
    Refused(String),
    /// Launch options that cannot be.
    #[error(transparent)]
    Launch(#[from] BadLaunch),
    /// There is nothing to fork.
    #[error(transparent)]
    Fork(#[from] requests::fork::BadSource),
    /// There can be no worktree for an agent.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The frame's working directory is not there.
    #[error("the working directory of {} is gone: {}", frame.short(), cwd.display())]
    NoWorkingDirectory {
        /// The frame.
        frame: FrameId,
        /// Its working directory.
        cwd: PathBuf,
    },
    /// Files of the state directory, or Claude Code's, cannot be read or written.
    #[error("failed to {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// An agent names what it has not started, or what is not there at all.
    #[error("no frame or question matches `{0}`")]
    UnknownToAgent(String),
    /// A conversation of which Claude Code would take only the end.
    #[error("the conversation of {} is damaged: {broken}", frame.short())]
    BrokenConversation {
        /// The frame.
        frame: FrameId,
        /// The session.
        session: SessionId,
        /// What is wrong with it.
        broken: Broken,
    },
    /// The calling agent's frame is not in the database.
    #[error("the frame of the calling agent, {0}, is not in this state directory")]
    NoCaller(FrameId),
}

/// Says what was tried when it fails.
fn while_trying<'a>(what: &'a str) -> impl FnOnce(std::io::Error) -> RuntimeError + 'a {
    move |source| RuntimeError::Io { what: what.to_owned(), source }
}
