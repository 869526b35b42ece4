//! Records what agents ask for, and runs every agent that can run.
//!
//! ```text
//! run/scheduler ── which frame is next (core/chain/runnable) ──> run/attempt ──> claude ──> conclude ──> run/scheduler
//!       └───────── a frame whose runner died ───────────────────────────────────────────────^
//! ```
//!
//! The same function concludes an attempt whether its runner saw it end or a later runner found it dead. While `claude`
//! runs, it asks [`protocol`] about its agent's calls. [`housekeeping`] maintains whole chains.

pub(crate) mod activity;
pub(crate) mod conclude;
mod delivery;
pub(crate) mod housekeeping;
pub(crate) mod notifications;
pub(crate) mod programs;
pub(crate) mod protocol;
pub(crate) mod recovery;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod steering;
pub(crate) mod worktrees;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::claude::installation::program::ProgramError;
use crate::claude::transcript::ancestry::Broken;
use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::overrides::BadLaunch;
use crate::core::agent::usage::prices::Prices;
use crate::core::housekeeping::hosting::Offer;
use crate::core::id::{FrameId, RequestId, SessionId};
use crate::runtime::conclude::spans::Spans;
use crate::runtime::run::places::Places;
use crate::runtime::worktrees::directory::Elsewhere;
use crate::runtime::worktrees::worktree::WorktreeError;
use crate::store::StoreError;

/// Settings that the runtime needs and that no frame records.
#[derive(Clone, Debug)]
pub(crate) struct RunSettings {
    /// The config file of the person, an absolute path, whether it exists or not.
    pub config: Option<PathBuf>,
    /// The `claude` that the user names for this run.
    pub claude: Option<PathBuf>,
    /// The executable of agent-cli. Its folder comes first in agents' `PATH`, and it is the hook of their `claude`.
    pub own_program: PathBuf,
    /// Whether agents are told what changed while they waited.
    pub stale_check: bool,
    /// How agents are stopped.
    pub stopping: Stopping,
    /// How long an agent's `claude` stays in a call whose result is expected soon.
    pub linger: Duration,
    /// How many agents may run at once over all chains; `None`: only limited by their chains.
    pub places: Option<Places>,
    /// What models cost, where the person has set that.
    pub prices: Prices,
    /// How this host takes part if hosts share the database.
    pub host: HostTerms,
    /// Sends a span for each attempt.
    pub spans: Option<Arc<Spans>>,
}

/// How a host takes part in a shared database.
#[derive(Clone, Debug)]
pub(crate) struct HostTerms {
    /// How long its lease lasts.
    pub lease: Duration,
    pub offer: Offer,
}

impl Default for HostTerms {
    fn default() -> Self {
        Self { lease: Duration::from_secs(60), offer: Offer::default() }
    }
}

/// How agents are stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopping {
    /// How long an agent's running tool may take to finish.
    pub grace: Duration,
    /// Tells a person what agent-cli waits for.
    pub tell: fn(&str),
}

/// Why a command cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeError {
    /// The state directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// `claude` refuses its arguments.
    #[error("{0}")]
    Refused(String),
    /// Invalid launch options.
    #[error(transparent)]
    Launch(#[from] BadLaunch),
    /// There is nothing to fork.
    #[error(transparent)]
    Fork(#[from] requests::fork::BadSource),
    /// No worktree can be created for an agent.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The frame's working directory does not exist.
    #[error("the working directory of {} is gone: {}", frame.short(), cwd.display())]
    NoWorkingDirectory { frame: FrameId, cwd: PathBuf },
    /// What is in the place of the frame's worktree does not belong to its repository.
    #[error("{} is no longer a worktree of {}", worktree.path.display(), worktree.repository.display())]
    ReplacedWorktree { frame: FrameId, worktree: Box<Worktree> },
    /// Claude Code could not record the conversation.
    #[error("there is no room for a session of {} in {}", frame.short(), folder.display())]
    NoRoom { frame: FrameId, folder: PathBuf },
    /// The frame's working directory is now a link to another place.
    #[error("the working directory of {} has been replaced: {elsewhere}", frame.short())]
    Moved { frame: FrameId, elsewhere: Elsewhere },
    /// Files of the state directory, or Claude Code's, cannot be read or written.
    #[error("failed to {what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The folder in which Claude Code keeps sessions cannot be used.
    #[error("failed to {what} Claude Code's folder {}: {source}", folder.display())]
    ClaudeFolder {
        /// The failed operation.
        what: String,
        folder: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// An agent named something that it did not start, or that does not exist.
    #[error("no agent or question matches `{0}`")]
    UnknownToAgent(String),
    /// An agent named several others at once.
    #[error("{} agents have the task `{task}`: {}", ids.len(), ids.iter().take(10).map(|id| id.short()).collect::<Vec<_>>().join(", "))]
    SameTask { task: String, ids: Vec<FrameId> },
    /// An agent wants to wait for itself, or for one that waits for it.
    #[error("waiting for {} would never end: it is the agent that waits, or one that waits for it", id.short())]
    Deadlock { id: FrameId },
    /// An agent wants to hand off, and would lose the reply of this one.
    #[error("{id} works in your background, and a handoff would lose its reply: run `agent-cli wait --agent {id}` before", id = .0.short())]
    InBackground(FrameId),
    /// An id of a request was given where an agent is needed.
    #[error("{} is a request of an agent, not an agent", .0.short())]
    NotAnAgent(RequestId),
    /// A conversation of which Claude Code would use only the end.
    #[error("the conversation of {} is damaged: {broken}", frame.short())]
    BrokenConversation {
        frame: FrameId,
        session: SessionId,
        /// How it is damaged.
        broken: Broken,
    },
    /// The session of an agent would replace one that has nothing in common with it.
    #[error("the session of {} has the id of another one, which is not replaced: {}", frame.short(), transcript.display())]
    ForeignSession { frame: FrameId, transcript: PathBuf },
    /// An agent cannot ask with a file.
    #[error("{0}")]
    QuestionFile(String),
    /// The calling agent's frame is not in the database.
    #[error("the calling agent, {0}, is not in this state directory")]
    NoCaller(FrameId),
}

/// The span of all work on an agent, by which a log can follow it.
fn agent_span(agent: FrameId) -> tracing::Span {
    tracing::info_span!("agent", agent = %agent)
}

/// The operation that failed if an agent's output cannot be read.
const READ_PRINTED: &str = "read what claude printed";

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// Adds the failed operation to an error.
fn while_trying<'a>(what: &'a str) -> impl FnOnce(std::io::Error) -> RuntimeError + 'a {
    move |source| RuntimeError::Io { what: what.to_owned(), source }
}
