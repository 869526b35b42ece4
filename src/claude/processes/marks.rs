//! Which agent, or which person, started this process.
//!
//! An agent's commands inherit its mark. A command that clears its environment still runs below processes that have the mark, so
//! these are checked as well: all ancestors of this process, as far as the system shows them, and the leaders of its session and
//! group. A process that has escaped all of them, or that another user or a daemon started, cannot be recognised.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use nix::unistd::{self, Uid, User};
use rustix::process::Pid;
use rustix::termios::ttyname;

use crate::claude::invocation::{ATTEMPT, FRAME, SESSION, STATE_DIR};
use crate::claude::processes::process_table::{self, Environment};
use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::core::notifications::payload::NOTIFICATION;
use crate::core::steering::origin::Origin;

/// An agent's mark on a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub process: i32,
    pub frame: FrameId,
    pub attempt: AttemptId,
    pub state_dir: PathBuf,
}

impl Mark {
    /// Whether the agent belongs to this state directory, whichever path leads to it.
    pub(crate) fn is_of(&self, state_dir: &Path) -> bool {
        process_table::is_same_directory(&self.state_dir, state_dir)
    }

    fn on(pid: Pid) -> Option<Self> {
        let environment = Environment::read(pid);
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

/// Whether another process belongs to an agent of this state directory: it or a process above it has the mark of one, or runs
/// agents.
pub(crate) fn is_of_agent(pid: Pid, state_dir: &Path) -> bool {
    let line: Vec<Pid> = process_table::ancestors_of(pid).collect();
    let is_marked = |pid: Pid| Mark::on(pid).is_some_and(|mark| mark.is_of(state_dir));
    line.iter().copied().chain(process_table::leaders_of(pid)).any(is_marked) || runner_in(&line).is_some()
}

/// The sessions of Claude Code in whose tool calls this process or an ancestor was started.
pub(crate) fn sessions() -> impl Iterator<Item = SessionId> {
    let above = process_table::ancestors().skip(1).chain(process_table::leaders());
    let named = above.filter_map(|pid| Environment::read(pid).value(SESSION));
    env::var(SESSION).ok().into_iter().chain(named).filter_map(|session| session.parse().ok())
}

/// The same of another process.
pub(crate) fn sessions_of(pid: Pid) -> impl Iterator<Item = SessionId> {
    let line = process_table::ancestors_of(pid).chain(process_table::leaders_of(pid));
    line.filter_map(|pid| Environment::read(pid).value(SESSION)?.parse().ok())
}

/// An ancestor process that runs agents. Below it are processes that they have left behind, and the commands that it runs
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    pub process: i32,
    /// The notifications to whose commands the processes in between say they belong.
    pub notifications: Vec<String>,
}

/// The nearest ancestor process that runs agents.
pub(crate) fn runner() -> Option<Runner> {
    let above: Vec<Pid> = process_table::ancestors().skip(1).collect();
    let mut found = runner_in(&above)?;
    found.notifications.extend(env::var(NOTIFICATION));
    Some(found)
}

/// The first process of these that runs agents.
fn runner_in(line: &[Pid]) -> Option<Runner> {
    let own = env::current_exe().ok().and_then(|own| fs::metadata(own).ok())?;
    let is_own = |pid: Pid| {
        let found = fs::metadata(process_table::program(pid));
        found.is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()))
    };
    let is_runner = |pid: Pid| {
        let words = process_table::arguments(pid);
        let command = words.iter().skip(1).find(|word| !word.starts_with('-'));
        is_own(pid) && command.is_some_and(|command| RUNNERS.contains(&command.as_str()))
    };
    let at = line.iter().position(|pid| is_runner(*pid))?;
    let named = line[..at].iter().filter_map(|pid| Environment::read(*pid).value(NOTIFICATION));
    Some(Runner { process: line[at].as_raw_nonzero().get(), notifications: named.collect() })
}

/// The commands that run agents.
const RUNNERS: [&str; 5] = ["spawn", "resume", "watch", "answer", "inbox"];

/// Whether it is unknown who has started this process: it leads its session, or its starter does, and the system's first
/// process has adopted the starter.
fn is_orphaned() -> bool {
    let leader = unistd::getsid(None).ok().and_then(|leader| Pid::from_raw(leader.as_raw()));
    is_below_nobody(process_table::ancestors().take(3).map(|pid| pid.as_raw_nonzero().get()), leader)
}

/// `line`: the process and its ancestors.
fn is_below_nobody(line: impl Iterator<Item = i32>, leader: Option<Pid>) -> bool {
    const FIRST: i32 = 1;
    let line: Vec<i32> = line.collect();
    let at = line.iter().position(|pid| leader.is_some_and(|leader| leader.as_raw_nonzero().get() == *pid));
    at.is_some_and(|at| line.get(at + 1) == Some(&FIRST))
}

/// Who runs this process.
pub(crate) fn origin() -> Origin {
    let uid = Uid::current();
    Origin {
        uid: uid.as_raw(),
        user: User::from_uid(uid).ok().flatten().map(|user| user.name),
        process: process::id(),
        terminal: terminal(),
        agent: marks().next().map(|mark| mark.frame),
        claude_session: env::var(SESSION).ok(),
        orphaned: is_orphaned(),
        file: None,
        client: None,
        page: None,
        host: None,
    }
}

fn terminal() -> Option<String> {
    fn name(stream: impl AsFd + IsTerminal) -> Option<String> {
        let name = ttyname(stream, Vec::new()).ok()?;
        name.into_string().ok()
    }
    name(io::stdin()).or_else(|| name(io::stderr())).or_else(|| name(io::stdout()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_session_has_lost_who_started_it_is_an_orphan() {
        for (line, leader, expected) in [
            (&[9, 1][..], 9, true),
            (&[9, 8, 1], 8, true),
            (&[9, 8, 7], 8, false),
            (&[9, 8, 7], 7, false),
            (&[9, 1], 8, false),
            (&[9, 8, 1], 1, false),
            (&[9], 9, false),
        ] {
            assert_eq!(is_below_nobody(line.iter().copied(), Pid::from_raw(leader)), expected, "{line:?} {leader}");
        }
    }
}
