//! Programs that run while a test acts: this program in the background, and the `claude` that it started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::chain::{Chain, Said};

/// How long a test waits for something that always comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program, running in the background.
pub(crate) struct Background(Child);

impl Chain {
    /// Starts this program without waiting for it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Background {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Background(command.spawn().unwrap())
    }
}

impl Background {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn ends(self) -> Said {
        Said::from(self.0.wait_with_output().unwrap())
    }

    /// Kills it without warning, and nothing else.
    pub(crate) fn killed(self) {
        self.signal(Signal::KILL);
        assert_eq!(self.ends().code, None);
    }

    /// How many processes it has started that still live.
    pub(crate) fn children(&self) -> usize {
        let parent = Pid::from_child(&self.0).as_raw_nonzero().to_string();
        let listed = listed(&["-A", "-o", "ppid="]);
        listed.lines().filter(|line| line.trim() == parent).count()
    }

    /// The `claude` that it runs.
    pub(crate) fn claude(&self) -> Process {
        let parent = Pid::from_child(&self.0).as_raw_nonzero().to_string();
        let listed = listed(&["-A", "-o", "pid=,ppid="]);
        let is_child = |line: &&str| line.split_whitespace().nth(1) == Some(parent.as_str());
        let line = listed.lines().find(is_child).expect("a claude runs");
        Process(line.split_whitespace().next().unwrap().parse().unwrap())
    }
}

/// A process that a test did not start itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(i32);

impl Process {
    /// The process whose id a program has written to a file.
    pub(crate) fn named_in(file: &Path) -> Self {
        Self(fs::read_to_string(file).unwrap().trim().parse().unwrap())
    }

    /// Whether it runs. One that has ended may be left over where nobody cares for orphans.
    pub(crate) fn lives(self) -> bool {
        let state = listed(&["-o", "stat=", "-p", &self.0.to_string()]);
        // A process whose first thread is gone may still hold files open by its others (`l`).
        let is_left_over = state.starts_with('Z') && !state.contains('l');
        !state.trim().is_empty() && !is_left_over
    }

    pub(crate) fn kill(self) {
        kill_process(Pid::from_raw(self.0).unwrap(), Signal::KILL).unwrap();
    }

    pub(crate) fn has_ended(self) {
        wait_until("the process ends", || !self.lives());
    }
}

/// A fifo that blocks an agent's tool until the test lets it continue.
pub(crate) struct Gate {
    path: PathBuf,
    _open: fs::File,
}

impl Gate {
    pub(crate) fn new(path: PathBuf) -> Self {
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Open for both, so that nobody waits for another end.
        let open = fs::File::options().read(true).write(true).open(&path).unwrap();
        Self { path, _open: open }
    }

    /// A command that notes its process id and waits at the gate.
    pub(crate) fn wait_command(&self) -> String {
        let gate = self.path.display();
        format!("echo $$ > {gate}.new; mv {gate}.new {gate}.pid; read go < {gate}; echo \"$go\"")
    }

    /// Waits for the command, and returns its process.
    pub(crate) fn reached(&self) -> Process {
        let note = self.path.with_extension("pid");
        wait_until("a tool comes to the gate", || note.exists());
        Process::named_in(&note)
    }

    /// Lets one continue, now or when it arrives.
    pub(crate) fn open(&self) {
        fs::write(&self.path, "go\n").unwrap();
    }
}

/// Waits for what always happens.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn listed(arguments: &[&str]) -> String {
    let output = Command::new("ps").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
