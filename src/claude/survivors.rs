//! Processes that an agent's tools started and that outlived it.
//!
//! Claude Code runs a Bash tool in a session of its own, so neither the end of `claude` nor a signal to its process
//! group reaches it. Every process that a tool starts inherits the frame's mark in its environment, unless it clears
//! that on purpose.

use std::collections::HashSet;
use std::path::Path;
use std::process;

use rustix::process::{Pid, Signal};

use super::command::{FRAME, STATE_DIR};
use crate::core::id::FrameId;

/// Ends every process that still carries the marks of `frame` of this state directory, and returns how many there were.
///
/// The frame must not be running. This process and those above it are spared: they may carry the mark when a person
/// calls this program from a shell that an agent left behind.
pub fn end(state_dir: &Path, frame: FrameId) -> usize {
    // A copy of a state directory holds frames of the same ids.
    let marks = [format!("{FRAME}={frame}"), format!("{STATE_DIR}={}", state_dir.display())];
    let spared = ancestors();
    let marked = system::processes().into_iter().filter(|pid| system::carries(*pid, &marks));
    let survivors: Vec<Pid> = marked.filter(|pid| !spared.contains(pid)).collect();
    survivors.iter().for_each(|pid| system::kill(*pid, &marks));
    survivors.len()
}

fn ancestors() -> HashSet<Pid> {
    let own = i32::try_from(process::id()).ok().and_then(Pid::from_raw);
    std::iter::successors(own, |pid| system::parent(*pid)).collect()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{Pid, Signal};

    pub(super) fn processes() -> Vec<Pid> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter_map(Pid::from_raw).collect()
    }

    /// Other users' processes cannot be read, and are none of ours.
    pub(super) fn carries(pid: Pid, marks: &[String]) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        let variables: Vec<_> = environment.split(|byte| *byte == 0).collect();
        marks.iter().all(|mark| variables.contains(&mark.as_bytes()))
    }

    pub(super) fn parent(pid: Pid) -> Option<Pid> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name before the last parenthesis may hold anything.
        let fields = stat.rsplit_once(')')?.1;
        Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
    }

    /// The handle keeps the number from meaning another process between the look and the signal.
    pub(super) fn kill(pid: Pid, marks: &[String]) {
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && carries(pid, marks)
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    use rustix::process::kill_process;

    use super::{Pid, Signal};

    pub(super) fn processes() -> Vec<Pid> {
        ask(&["-axo", "pid="]).lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
    }

    pub(super) fn carries(pid: Pid, marks: &[String]) -> bool {
        let line = ask(&["-Ewwo", "command=", "-p", &pid.as_raw_nonzero().to_string()]);
        // `ps` parts variables with spaces, which a path may hold too.
        marks.iter().all(|mark| line.contains(mark.as_str()))
    }

    pub(super) fn parent(pid: Pid) -> Option<Pid> {
        Pid::from_raw(ask(&["-o", "ppid=", "-p", &pid.as_raw_nonzero().to_string()]).trim().parse().ok()?)
    }

    pub(super) fn kill(pid: Pid, marks: &[String]) {
        if carries(pid, marks) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn ask(arguments: &[&str]) -> String {
        let output = Command::new("ps").args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that runs until somebody ends it.
    fn process(state_dir: &Path, frame: FrameId) -> Child {
        let mut command = Command::new("cat");
        command
            .env(FRAME, frame.to_string())
            .env(STATE_DIR, state_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn only_processes_of_the_frame_are_ended() {
        let [ours, other] = [FrameId::random(), FrameId::random()];
        let [here, elsewhere] = ["/state", "/copy"].map(Path::new);
        let mut survivor = process(here, ours);
        let strangers = [process(here, other), process(elsewhere, ours)];
        assert_eq!(end(here, ours), 1);
        assert_eq!(survivor.wait().unwrap().signal(), Some(9));
        for mut stranger in strangers {
            drop(stranger.stdin.take());
            assert_eq!(stranger.wait().unwrap().code(), Some(0));
        }
        assert_eq!(end(here, ours), 0);
    }

    #[test]
    fn this_process_and_its_parents_are_spared() {
        assert!(ancestors().len() > 1);
    }
}
