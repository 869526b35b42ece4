//! Which agent, or which person, started this process.
//!
//! An agent's commands inherit its mark. A command that clears its environment still runs below processes that have the mark, so
//! these are checked as well: all ancestors of this process, as far as the system shows them, and the leaders of its session and
//! group. A process that has escaped all of them, or that another user or a daemon started, cannot be recognised.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use nix::unistd::{self, Uid, User};
use rustix::process::Pid;
use rustix::termios::ttyname;

use crate::claude::invocation::{ATTEMPT, FRAME, SESSION, STATE_DIR};
use crate::claude::processes::process_table::{self, Environment};
use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::core::notifications::payload::NOTIFICATION;
use crate::core::requests::agent_command::verb::{self, global_options};
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
pub(crate) fn is_of_agent(pid: Pid, state_dir: &Path, is_lock: IsLock) -> bool {
    let line: Vec<Pid> = process_table::ancestors_of(pid).collect();
    let is_marked = |pid: Pid| Mark::on(pid).is_some_and(|mark| mark.is_of(state_dir));
    line.iter().copied().chain(process_table::leaders_of(pid)).any(is_marked) || runner_in(&line, is_lock).is_some()
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

/// Whether a file of this path is locked by processes that run agents. The only others are those that remove agents, below which
/// nothing but git runs.
pub(crate) type IsLock = fn(&Path) -> bool;

/// The nearest ancestor process that runs agents.
pub(crate) fn runner(is_lock: IsLock) -> Option<Runner> {
    let above: Vec<Pid> = process_table::ancestors().skip(1).collect();
    let mut found = runner_in(&above, is_lock)?;
    found.notifications.extend(env::var(NOTIFICATION));
    Some(found)
}

/// The first process of these that runs agents.
fn runner_in(line: &[Pid], is_lock: IsLock) -> Option<Runner> {
    let own = env::current_exe().ok();
    let is_runner = |pid: Pid| {
        let is_called_so = || is_agent_cli(&process_table::program(pid), own.as_deref());
        // The lock tells it even if the program has another name.
        is_called_so() && runs_agents(&process_table::arguments(pid)) || process_table::holds_lock(pid, is_lock)
    };
    let at = line.iter().position(|pid| is_runner(*pid))?;
    let named = line[..at].iter().filter_map(|pid| Environment::read(*pid).value(NOTIFICATION));
    Some(Runner { process: line[at].as_raw_nonzero().get(), notifications: named.collect() })
}

/// Whether a process that executes this file executes agent-cli, of whatever version: the caller may be a copy. `program` may be a
/// link that leads to the file.
fn is_agent_cli(program: &Path, own: Option<&Path>) -> bool {
    let file = fs::read_link(program).unwrap_or_else(|_| program.to_owned());
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    // Linux marks the name of a file that an upgrade has removed.
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name == verb::NAME.as_bytes() || own.is_some_and(|own| process_table::is_same_file(program, own))
}

/// Whether agent-cli runs agents if it is called like this.
fn runs_agents(words: &[String]) -> bool {
    /// The commands that run agents.
    const RUNNERS: [&str; 6] = ["spawn", "resume", "watch", "work", "answer", "inbox"];
    let arguments = words.get(1..).unwrap_or_default();
    // Without a command it shows the dashboard, which runs agents.
    arguments.get(global_options(arguments)).is_none_or(|command| RUNNERS.contains(&command.as_str()))
}

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
    fn what_runs_agents_is_recognised_by_its_command_line() {
        for (line, expected) in [
            ("agent-cli spawn x.md", true),
            ("/opt/agent-cli resume last", true),
            ("agent-cli --color never spawn x.md", true),
            ("agent-cli --color=never -q watch", true),
            ("agent-cli --store postgres://x spawn x.md", true),
            ("agent-cli --store=postgres://x -v work", true),
            ("agent-cli", true),
            ("agent-cli --quiet", true),
            ("agent-cli config edit", false),
            ("agent-cli -q open last", false),
            ("agent-cli --color spawn open last", false),
            ("agent-cli mcp", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(runs_agents(&words), expected, "{line}");
        }
    }

    #[test]
    fn another_copy_of_the_program_is_the_program() {
        let temp = tempfile::tempdir().unwrap();
        let [own, renamed, other] = ["own", "renamed", "other"].map(|name| temp.path().join(name));
        fs::write(&own, "").unwrap();
        fs::hard_link(&own, &renamed).unwrap();
        fs::write(&other, "").unwrap();
        let is_one = |program: &Path| is_agent_cli(program, Some(&own));
        assert_eq!([&renamed, &other].map(|program| is_one(program)), [true, false]);
        assert!(is_one(Path::new("/elsewhere/agent-cli")));
        for (target, expected) in
            [("/gone/agent-cli (deleted)", true), ("/gone/my-agent-cli", false), ("/bin/sh", false)]
        {
            let link = temp.path().join("exe");
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert_eq!(is_one(&link), expected, "{target}");
            fs::remove_file(link).unwrap();
        }
    }

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
