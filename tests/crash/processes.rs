//! The processes of a world, found by the mark that they all inherit, and killed.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A command of a person.
    Runner,
    /// The stand-in for `claude`.
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
    /// Kills it, if it still runs. The log is told before.
    pub(crate) fn kill(self, world: &World) {
        let path = world.state().with_file_name("stand-in.log");
        let mut log = OpenOptions::new().create(true).append(true).open(path).expect("the log can be written");
        let event = serde_json::json!({"event": "killed", "pid": self.pid.as_raw_nonzero().get()});
        log.write_all(format!("{event}\n").as_bytes()).expect("the log can be written");
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
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let kind = match has("AGENT_CLI_FRAME=") {
            false => Kind::Runner,
            true if command.contains("stand-in\0-p\0") => Kind::Agent,
            true => Kind::Tool,
        };
        has(&mark).then_some(Process { pid, kind })
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(known).collect()
}
