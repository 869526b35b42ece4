//! The processes of a state directory, found by the mark that they all inherit, and killed.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A command of a person.
    Runner,
    /// `claude`, or the stand-in for it.
    Agent,
    /// What an agent has called: its shell, this program in it, a hook.
    Tool,
}

/// A process that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) kind: Kind,
}

impl Process {
    /// Kills it, if it still runs.
    pub(crate) fn kill(self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

/// The processes that carry the mark of a state directory. Only Linux shows the environment of a process as a file.
pub(crate) fn processes_of(state: &Path) -> Vec<Process> {
    let mark = format!("AGENT_CLI_STATE_DIR={}", state.display());
    let known = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let has =
            |start: &str| environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(start.as_bytes()));
        // Most processes are none of ours.
        has(&mark).then_some(())?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let kind = match has("AGENT_CLI_FRAME=") {
            false => Kind::Runner,
            true if command.contains("\0--session-id\0") => Kind::Agent,
            true => Kind::Tool,
        };
        Some(Process { pid, kind })
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(known).collect()
}
