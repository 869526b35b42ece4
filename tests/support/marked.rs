//! Finds the processes of a state directory by the mark that they all inherit, and kills them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// The kinds of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A person's command.
    Runner,
    /// `claude`, or its stand-in.
    Agent,
    /// An agent's call: its shell, agent-cli in it, a hook.
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

/// The processes with the mark of a state directory. Only Linux provides the environment of a process as a file.
pub(crate) fn processes_of(state: &Path) -> Vec<Process> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter_map(|pid| seen(pid, state)).collect()
}

/// The processes that can be killed at any instant, and the chain continues: all but the server that answers permission prompts. An
/// agent whose server is gone is refused its next call, and says so.
pub(crate) fn victims(state: &Path) -> Vec<Process> {
    let mut found = processes_of(state);
    found.retain(|process| !command(&folder(process.pid)).contains("\0permission\0"));
    found
}

fn folder(pid: Pid) -> PathBuf {
    Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}

/// The words of a process, with a NUL behind each.
fn command(folder: &Path) -> String {
    let words = fs::read(folder.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).into_owned()
}

/// What a process is now, if it has the mark: a runner's child is a copy of the runner until it becomes `claude`.
pub(crate) fn seen(pid: Pid, state: &Path) -> Option<Process> {
    let folder = folder(pid);
    let environment = fs::read(folder.join("environ")).ok()?;
    let has = |start: &str| environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(start.as_bytes()));
    // Most processes are none of ours.
    has(&format!("AGENT_CLI_STATE_DIR={}", state.display())).then_some(())?;
    let is_agent = |folder: &Path| command(folder).contains("\0--session-id=");
    let kind = match has("AGENT_CLI_AGENT_ID=") {
        false => Kind::Runner,
        // An agent's child is a copy of the agent until it becomes a tool.
        true if is_agent(&folder) && !parent(&folder).is_some_and(|parent| is_agent(&parent)) => Kind::Agent,
        true => Kind::Tool,
    };
    Some(Process { pid, kind })
}

/// Where the system shows the parent of a process.
fn parent(folder: &Path) -> Option<PathBuf> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let id = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(Path::new("/proc").join(id.trim()))
}
