//! Runs a command, to its end or in the background, and with its input.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::contract;
use crate::gate::{PATIENCE, wait_within};
use crate::outcome::Outcome;
use crate::programs;
use crate::pty::{LINES, Screen, collect_screen, terminal};
use crate::world::World;

/// A command that is not started yet.
pub(crate) struct Invocation<'a> {
    world: &'a World,
    command: Command,
    input: Vec<u8>,
}

/// A running command. It is killed if this is dropped before it has ended.
pub(crate) struct Running<'a> {
    world: &'a World,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    /// What it has written to standard error so far.
    said: Arc<Mutex<Vec<u8>>>,
    /// The person's side of its terminal, if it has one.
    keyboard: Option<File>,
}

impl<'a> Invocation<'a> {
    /// A command of `world`.
    pub(crate) fn new(world: &'a World, command: Command) -> Self {
        Self { world, command, input: Vec::new() }
    }

    /// The command, for a test that speaks to it.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// In another directory than the project.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// With another environment variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// With this on standard input, which is empty otherwise.
    pub(crate) fn reads(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// In a process group of its own, as a shell starts its jobs.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn in_its_own_group(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Outcome {
        let is_ours = Path::new(self.command.get_program()) == programs::agent_cli();
        let arguments: Vec<OsString> = self.command.get_args().map(OsStr::to_owned).collect();
        let outcome = self.start().ends();
        if is_ours {
            contract::check(&arguments, &outcome.stdout);
        }
        outcome
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running<'a> {
        let (world, mut child) = self.started();
        let stdout = child.stdout.take().map(collect);
        let said = Arc::default();
        let stderr = child.stderr.take().map(|stream| collect_into(stream, Arc::clone(&said)));
        Running { world, child, stdout, stderr, said, keyboard: None }
    }

    /// Starts it with a closed pipe as its standard output: every write fails.
    pub(crate) fn start_unread(self) -> Running<'a> {
        let (world, mut child) = self.started();
        drop(child.stdout.take());
        let stderr = child.stderr.take().map(collect);
        Running { world, child, stdout: None, stderr, said: Arc::default(), keyboard: None }
    }

    /// Runs it to its end on a terminal of so many columns, with its input typed in. All that the terminal is sent is its
    /// standard output.
    pub(crate) fn on_terminal(self, columns: u16) -> Outcome {
        self.on(columns, LINES, false).0.ends()
    }

    /// Starts it on a terminal of so many columns, with its input typed in.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn start_on_terminal(self, columns: u16) -> (Running<'a>, Screen) {
        self.on(columns, LINES, true)
    }

    /// Starts it on a terminal of this size, at which a person types.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn start_on_screen(self, columns: u16, rows: u16) -> (Running<'a>, Screen) {
        self.on(columns, rows, true)
    }

    /// Starts it with a terminal of the caller.
    pub(crate) fn start_on(&mut self, terminal: &File) -> Child {
        let copy = || Stdio::from(terminal.try_clone().expect("a file can be opened once more"));
        self.command.stdin(copy()).stdout(copy()).stderr(copy());
        self.command.spawn().expect("the program can be started")
    }

    /// `lines`: whether the terminal begins a line at the left, as it does for people.
    fn on(mut self, columns: u16, rows: u16, lines: bool) -> (Running<'a>, Screen) {
        let (screen, terminal) = terminal(columns, rows, lines).expect("there are terminals");
        let child = self.start_on(&terminal);
        // Anything left open here would keep the terminal from ending with the program.
        let (world, input) = (self.world, self.input);
        drop((self.command, terminal));
        let mut keyboard = screen.try_clone().expect("a file can be opened once more");
        keyboard.write_all(&input).expect("a terminal takes some lines");
        let shown = Screen::new(columns, rows);
        let stdout = Some(collect_screen(screen, shown.clone()));
        (Running { world, child, stdout, stderr: None, said: Arc::default(), keyboard: Some(keyboard) }, shown)
    }

    fn started(mut self) -> (&'a World, Child) {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program can be started");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = self.input;
        // In parallel with reading, so that neither waits for the other. A program may end without reading its input.
        thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        (self.world, child)
    }
}

impl Running<'_> {
    /// Waits for its end.
    pub(crate) fn ends(self) -> Outcome {
        self.ends_within(PATIENCE)
    }

    /// Waits so long for its end.
    pub(crate) fn ends_within(mut self, patience: Duration) -> Outcome {
        let mut status = None;
        wait_within(patience, "the command ends", || {
            status = self.child.try_wait().expect("it is a child");
            status.is_some()
        });
        let [stdout, stderr] = [self.stdout.take(), self.stderr.take()]
            .map(|reader| reader.map(|reader| reader.join().expect("text")).unwrap_or_default());
        Outcome::new(status.expect("it has ended"), stdout, stderr, |text| self.world.named(text))
    }

    /// Waits until it has written this so many times to standard error.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn says(&self, text: &str, times: usize) {
        wait_within(PATIENCE, text, || {
            String::from_utf8_lossy(&self.said.lock().expect("nobody panics")).matches(text).count() == times
        });
    }

    /// Types at its terminal.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn types(&self, keys: impl AsRef<[u8]>) {
        let mut keyboard = self.keyboard.as_ref().expect("it has a terminal");
        keyboard.write_all(keys.as_ref()).expect("a terminal takes some lines");
    }

    /// Changes the width of its terminal.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn resizes(&self, screen: &Screen, columns: u16) {
        screen.resize(self.keyboard.as_ref().expect("it has a terminal"), columns);
    }

    /// Waits until a signal has stopped it.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn is_stopped(&self) {
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED).expect("it is a child");
        assert!(stopped.is_some_and(|(_, status)| status.stopped()), "{stopped:?}");
    }

    /// Makes its terminal wider or narrower, as a person does.
    pub(crate) fn resizes_to(&self, screen: &Screen, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.keyboard.as_ref().expect("it has a terminal"), size).expect("a terminal has a size");
        screen.set_size(columns, rows);
        self.signal(Signal::WINCH);
    }

    /// Whether it has written this to standard error.
    #[allow(dead_code, reason = "the crash tests need it")]
    pub(crate) fn has_said(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.said.lock().expect("nobody panics")).contains(text)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_some()
    }

    /// Sends a signal to the process and to nothing else.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }
}

#[allow(dead_code, reason = "the tests that kill need more")]
impl Running<'_> {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// Kills it, if it still runs.
    pub(crate) fn kill(&self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: impl Read + Send + 'static) -> JoinHandle<String> {
    collect_into(stream, Arc::default())
}

fn collect_into(mut stream: impl Read + Send + 'static, read: Arc<Mutex<Vec<u8>>>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let length @ 1.. = stream.read(&mut part).expect("a readable pipe") {
            read.lock().expect("nobody panics").extend_from_slice(&part[..length]);
        }
        let bytes = read.lock().expect("nobody panics").clone();
        String::from_utf8(bytes).expect("the program prints UTF-8")
    })
}
