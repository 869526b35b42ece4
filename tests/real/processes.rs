//! Programs that run while a test acts: this program in the background, and the `claude` that it started.

use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::chain::{Chain, Said};

/// How long a test waits for something that always comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program, running in the background. A test that fails leaves nothing of it behind.
pub(crate) struct Background(Option<Child>);

impl Drop for Background {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        Process::from_child(&child).kill_with_all_below();
        let _ = child.wait();
    }
}

impl Chain {
    /// Starts this program without waiting for it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Background {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Background(Some(command.spawn().unwrap()))
    }
}

impl Background {
    fn pid(&self) -> Pid {
        Pid::from_child(self.0.as_ref().expect("its end was not waited for"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn ends(mut self) -> Said {
        Said::from(output_in_time(self.0.take().expect("nobody else waits"), "the command"))
    }

    /// Kills it without warning, and nothing else.
    pub(crate) fn killed(self) {
        self.signal(Signal::KILL);
        assert_eq!(self.ends().code, None);
    }

    /// How many processes it has started that still live.
    pub(crate) fn children(&self) -> usize {
        Process(self.pid().as_raw_nonzero().get()).children().len()
    }

    /// The only `claude` that it runs. Where an agent above could linger, a test starts its chain without lingering.
    pub(crate) fn claude(&self) -> Process {
        let children = Process(self.pid().as_raw_nonzero().get()).children();
        let [claude] = children[..] else { panic!("one claude runs, not {children:?}") };
        claude
    }
}

/// A command that takes longer hangs: the test fails and names it, instead of keeping the run from ending.
const LONGEST: Duration = Duration::from_secs(900);

/// The output of a command, which is killed and fails the test if it hangs.
pub(crate) fn output_in_time(child: Child, what: &str) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let hangs = end.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout);
        if hangs {
            kill_process(pid, Signal::KILL).unwrap();
        }
        hangs
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    assert!(!watchdog.join().unwrap(), "{what} has not ended: {:?}", Said::from(output));
    output
}

/// A process that a test did not start itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(i32);

impl Process {
    fn children(self) -> Vec<Self> {
        let listed = listed(&["-A", "-o", "pid=,ppid="]);
        let numbers = listed.lines().map(|line| line.split_whitespace().map(|number| number.parse().unwrap()));
        let pairs = numbers.map(|mut numbers| (numbers.next().unwrap(), numbers.next().unwrap()));
        pairs.filter(|(_, parent): &(i32, i32)| *parent == self.0).map(|(child, _)| Self(child)).collect()
    }

    pub(crate) fn from_child(child: &Child) -> Self {
        Self(Pid::from_child(child).as_raw_nonzero().get())
    }

    /// Kills it together with everything that it has started, and returns what was killed.
    pub(crate) fn kill_with_all_below(self) -> Vec<Self> {
        let killed = self.with_all_below();
        for process in &killed {
            // It may have ended by itself, for example because another one of these has.
            let _ = Pid::from_raw(process.0).map(|process| kill_process(process, Signal::KILL));
        }
        killed
    }

    fn with_all_below(self) -> Vec<Self> {
        let below = self.children().into_iter().flat_map(Self::with_all_below);
        iter::once(self).chain(below).collect()
    }

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
