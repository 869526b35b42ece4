//! Processes that an agent's tools started and that outlived the agent.
//!
//! Claude Code runs a Bash tool in a session of its own, so neither the end of `claude` nor a signal to its process group reaches
//! it. Every process that a tool starts inherits the frame's mark in its environment, unless it clears it on purpose.

use std::collections::HashSet;
use std::path::Path;

use rustix::process::{Pid, Signal};

use crate::claude::invocation::{ATTEMPT, FRAME, NO_ATTEMPT, STATE_DIR};
use crate::claude::processes::process_table::{self, Environment};
use crate::core::id::FrameId;

/// How often the table of processes is read while it still has orphans: one may start another before it is killed.
const PASSES: usize = 100;

/// Ends every process that still has the marks of `frame` in this state directory, and returns how many there were.
///
/// The frame must not be running. This process and its ancestors are spared: they may have the mark if a person calls agent-cli
/// from a shell that an agent left behind.
pub(crate) fn end(state_dir: &Path, frame: FrameId) -> usize {
    let mark = Mark { frame: format!("{FRAME}={frame}"), state_dir };
    let spared: HashSet<Pid> = process_table::ancestors().collect();
    let mut ended = HashSet::new();
    for _ in 0..PASSES {
        let before = ended.len();
        let marked = process_table::all().into_iter().filter(|pid| mark.is_on(*pid));
        for pid in marked.filter(|pid| !spared.contains(pid)) {
            system::kill(pid, &mark);
            ended.insert(pid);
        }
        if ended.len() == before {
            break;
        }
    }
    ended.len()
}

/// What distinguishes a frame's processes from others.
struct Mark<'a> {
    frame: String,
    /// A copy of a state directory contains frames with the same ids.
    state_dir: &'a Path,
}

impl Mark<'_> {
    fn is_on(&self, pid: Pid) -> bool {
        let environment = Environment::of(pid);
        // The mark of a command that an agent waits for. It belongs to agent-cli, not to the agent, and ends with its runner.
        let is_no_attempt = || environment.has(&format!("{ATTEMPT}={NO_ATTEMPT}"));
        let is_here = || {
            environment
                .value(STATE_DIR)
                .is_some_and(|dir| process_table::is_same_directory(Path::new(&dir), self.state_dir))
        };
        environment.has(&self.frame) && is_here() && !is_no_attempt()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{Mark, Pid, Signal};

    /// The handle prevents the process id from being reused between the check and the signal.
    pub(crate) fn kill(pid: Pid, mark: &Mark<'_>) {
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && mark.is_on(pid)
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use rustix::process::kill_process;

    use super::{Mark, Pid, Signal};

    pub(crate) fn kill(pid: Pid, mark: &Mark<'_>) {
        if mark.is_on(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that runs until it is ended.
    fn process(state_dir: &Path, frame: FrameId) -> Child {
        let mut command = Command::new("cat");
        let mark = format!("{FRAME}={frame}");
        command.env(FRAME, frame.to_string()).env(STATE_DIR, state_dir);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // For an instant after it was started, a process has no environment.
        while !Environment::of(Pid::from_child(&child)).has(&mark) {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn only_processes_of_the_frame_are_ended() {
        let [ours, other] = [FrameId::random(), FrameId::random()];
        let [here, elsewhere] = ["/state", "/copy"].map(Path::new);
        let mut orphan = process(here, ours);
        let strangers = [process(here, other), process(elsewhere, ours)];
        assert_eq!(end(here, ours), 1);
        assert_eq!(orphan.wait().unwrap().signal(), Some(9));
        for mut stranger in strangers {
            drop(stranger.stdin.take());
            assert_eq!(stranger.wait().unwrap().code(), Some(0));
        }
        assert_eq!(end(here, ours), 0);
    }

    #[test]
    fn a_state_directory_may_have_several_names() {
        let temp = tempfile::tempdir().unwrap();
        let [here, link, copy] = ["here", "link", "copy"].map(|name| temp.path().join(name));
        [&here, &copy].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::os::unix::fs::symlink(&here, &link).unwrap();
        for (one, other) in [(&here, &link), (&link, &here)] {
            let frame = FrameId::random();
            let (mut orphan, mut stranger) = (process(one, frame), process(&copy, frame));
            assert_eq!(end(other, frame), 1);
            assert_eq!(orphan.wait().unwrap().signal(), Some(9));
            drop(stranger.stdin.take());
            assert_eq!(stranger.wait().unwrap().code(), Some(0));
        }
    }

    #[test]
    fn this_process_and_its_parents_are_spared() {
        assert!(process_table::ancestors().count() > 1);
    }
}
