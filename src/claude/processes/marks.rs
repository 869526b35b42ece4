//! Which agent, or which person, started this process.
//!
//! An agent's commands inherit its mark. A command that clears its environment still runs below processes that have the mark, so
//! these are checked as well: all ancestors of this process, as far as the system shows them, and the leaders of its session and
//! group. A process that has escaped all of them, or that another user or a daemon started, cannot be recognised.

use std::env;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process;

use nix::unistd::{Uid, User};
use rustix::process::Pid;
use rustix::termios::ttyname;

use crate::claude::invocation::{ATTEMPT, FRAME, SESSION, STATE_DIR};
use crate::claude::processes::process_table::{self, Environment};
use crate::core::chain::origin::Origin;
use crate::core::id::{AttemptId, FrameId};

/// An agent's mark on a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub process: i32,
    /// The agent's frame.
    pub frame: FrameId,
    /// The agent's attempt.
    pub attempt: AttemptId,
    state_dir: PathBuf,
}

impl Mark {
    /// Whether the agent belongs to this state directory, whichever path leads to it.
    #[must_use]
    pub(crate) fn is_of(&self, state_dir: &Path) -> bool {
        process_table::is_same_directory(&self.state_dir, state_dir)
    }

    fn on(pid: Pid) -> Option<Self> {
        let environment = Environment::of(pid);
        let process = pid.as_raw_nonzero().get();
        let frame = environment.value(FRAME)?.parse().ok()?;
        let attempt = environment.value(ATTEMPT)?.parse().ok()?;
        Some(Self { process, frame, attempt, state_dir: environment.value(STATE_DIR)?.into() })
    }
}

/// The marks on the ancestors of this process, the nearest first.
pub(crate) fn marks() -> impl Iterator<Item = Mark> {
    let above: Vec<Pid> = process_table::ancestors().skip(1).collect();
    let leaders: Vec<Pid> = process_table::leaders().filter(|leader| !above.contains(leader)).collect();
    above.into_iter().chain(leaders).filter_map(Mark::on)
}

/// Who runs this process.
#[must_use]
pub(crate) fn origin() -> Origin {
    let uid = Uid::current();
    Origin {
        uid: uid.as_raw(),
        user: User::from_uid(uid).ok().flatten().map(|user| user.name),
        process: process::id(),
        terminal: terminal(),
        agent: marks().next().map(|mark| mark.frame),
        claude_session: env::var(SESSION).ok(),
        file: None,
    }
}

fn terminal() -> Option<String> {
    fn name(stream: impl AsFd + IsTerminal) -> Option<String> {
        let name = ttyname(stream, Vec::new()).ok()?;
        name.into_string().ok()
    }
    name(io::stdin()).or_else(|| name(io::stderr())).or_else(|| name(io::stdout()))
}
