//! Processes that an agent's tools started and that outlived it.
//!
//! Claude Code runs a Bash tool in a session of its own, so neither the end of `claude` nor a signal to its process
//! group reaches it. Every process that a tool starts inherits the frame's mark in its environment, unless it clears
//! that on purpose.

use std::collections::HashSet;
use std::process;

use rustix::process::{Pid, Signal};

use super::command::FRAME;
use crate::core::id::FrameId;

/// Ends every process that still carries the mark of `frame`, and returns how many there were.
///
/// The frame must not be running. This process and those above it are spared: they may carry the mark when a person
/// calls this program from a shell that an agent left behind.
pub fn end(frame: FrameId) -> usize {
    let mark = format!("{FRAME}={frame}");
    let spared = ancestors();
    let marked = system::processes().into_iter().filter(|pid| system::carries(*pid, &mark));
    let survivors: Vec<Pid> = marked.filter(|pid| !spared.contains(pid)).collect();
    survivors.iter().for_each(|pid| system::kill(*pid, &mark));
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
    pub(super) fn carries(pid: Pid, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }

    pub(super) fn parent(pid: Pid) -> Option<Pid> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name before the last parenthesis may hold anything.
        let fields = stat.rsplit_once(')')?.1;
        Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
    }

    /// The handle keeps the number from meaning another process between the look and the signal.
    pub(super) fn kill(pid: Pid, mark: &str) {
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && carries(pid, mark)
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

    pub(super) fn carries(pid: Pid, mark: &str) -> bool {
        let line = ask(&["-Ewwo", "command=", "-p", &pid.as_raw_nonzero().to_string()]);
        line.split_whitespace().any(|word| word == mark)
    }

    pub(super) fn parent(pid: Pid) -> Option<Pid> {
        Pid::from_raw(ask(&["-o", "ppid=", "-p", &pid.as_raw_nonzero().to_string()]).trim().parse().ok()?)
    }

    pub(super) fn kill(pid: Pid, mark: &str) {
        if carries(pid, mark) {
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
    fn process(frame: FrameId) -> Child {
        let mut command = Command::new("cat");
        command.env(FRAME, frame.to_string()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn only_processes_of_the_frame_are_ended() {
        let [ours, other] = [FrameId::random(), FrameId::random()];
        let (mut survivor, mut stranger) = (process(ours), process(other));
        assert_eq!(end(ours), 1);
        assert_eq!(survivor.wait().unwrap().signal(), Some(9));
        drop(stranger.stdin.take());
        assert_eq!(stranger.wait().unwrap().code(), Some(0));
        assert_eq!(end(ours), 0);
    }

    #[test]
    fn this_process_and_its_parents_are_spared() {
        assert!(ancestors().len() > 1);
    }
}
