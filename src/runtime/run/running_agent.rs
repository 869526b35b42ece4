//! A running agent.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use crate::claude::doctor::{checks, surroundings};
use crate::claude::environment::variables::Variables;
use crate::claude::processes::process::ProcessExit;
use crate::claude::processes::process::Running;
use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::launch::Launch;
use crate::core::id::{AttemptId, FrameId};
use crate::runtime::recovery::portable_worktree::PortableWorktree;
use crate::runtime::steering::stop_notice::Timeout;
use crate::store::StateDir;

#[derive(Debug)]
pub(crate) struct RunningAgent {
    pub(crate) frame: FrameId,
    pub(crate) attempt: AttemptId,
    pub(crate) running: Box<Running>,
    pub(crate) dir: StateDir,
    /// Offset of its events in the frame's output.
    pub(crate) output_from: u64,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    /// Where its transcript is, or will be.
    pub(crate) transcript: Option<PathBuf>,
    /// How long its `claude` may stay alive with background work after its reply.
    pub(crate) background_grace: Duration,
    /// How long it may still run, if there is a limit.
    pub(crate) timeout: Option<Timeout>,
    /// Whether the budget of its chain is spent.
    pub(crate) budget_spent: watch::Receiver<bool>,
    /// The worktree in which it works, to be pushed when it has ended.
    pub(crate) portable: Option<PortableWorktree>,
    /// Whether it has a hook that stops it when its running tool has finished.
    pub(crate) has_stop_hook: bool,
}

/// The end of an agent's turn.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) exit: ProcessExit,
    /// How much of its worktree is on the remote now, and the frame to which that worktree belongs. `None`: the worktree has no remote.
    pub(crate) pushed: Option<(FrameId, Pushed)>,
}

impl RunningAgent {
    /// Whether agent-cli waits for its running tool. Without a hook, the agent would continue to the next tool.
    pub(crate) fn can_finish(&self) -> bool {
        let around = || surroundings::look(&self.cwd, &Variables::of_process(), &Launch::default());
        self.has_stop_hook && checks::hooks_switched_off(&around()).is_none()
    }
}
