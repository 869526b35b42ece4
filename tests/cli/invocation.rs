//! Running a command: to its end or in the background, with what it reads.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::gate::{PATIENCE, wait_within};
use crate::outcome::Outcome;
use crate::world::World;

/// A command that is not started yet.
pub(crate) struct Invocation<'a> {
    world: &'a World,
    command: Command,
    input: Vec<u8>,
}

/// A command that runs. It is killed when this is dropped before it has ended.
pub(crate) struct Running<'a> {
    world: &'a World,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl<'a> Invocation<'a> {
    /// A command of `world`.
    pub(crate) fn new(world: &'a World, command: Command) -> Self {
        Self { world, command, input: Vec::new() }
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

    /// Runs it to its end.
    pub(crate) fn run(self) -> Outcome {
        self.start().ends()
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running<'a> {
        let (world, mut child) = self.started();
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Running { world, child, stdout, stderr }
    }

    /// Starts it with a standard output that nobody reads: whatever it writes there fails.
    pub(crate) fn start_unread(self) -> Running<'a> {
        let (world, mut child) = self.started();
        drop(child.stdout.take());
        let stderr = child.stderr.take().map(collect);
        Running { world, child, stdout: None, stderr }
    }

    /// Runs it to its end on a terminal of so many columns, with its input typed in. All that the terminal is sent is its
    /// standard output.
    pub(crate) fn on_terminal(self, columns: u16) -> Outcome {
        self.on(columns, false).0.ends()
    }

    /// Starts it on a terminal of so many columns, with its input typed in.
    #[allow(dead_code, reason = "the tests that kill need less")]
    pub(crate) fn start_on_terminal(self, columns: u16) -> (Running<'a>, Screen) {
        self.on(columns, true)
    }

    /// `lines`: whether the terminal begins a line at the left, as it does for people.
    fn on(mut self, columns: u16, lines: bool) -> (Running<'a>, Screen) {
        let (screen, terminal) = terminal(columns, lines).expect("there are terminals");
        let copy = || Stdio::from(terminal.try_clone().expect("a file can be opened once more"));
        self.command.stdin(copy()).stdout(copy()).stderr(copy());
        let child = self.command.spawn().expect("the program can be started");
        // What is open here would keep the terminal from ending with the program.
        let (world, input) = (self.world, self.input);
        drop((self.command, terminal));
        let mut keyboard = screen.try_clone().expect("a file can be opened once more");
        keyboard.write_all(&input).expect("a terminal takes some lines");
        let shown = Screen(Arc::new(Mutex::new(vt100::Parser::new(LINES, columns, 0))));
        let stdout = Some(collect_screen(screen, shown.clone()));
        (Running { world, child, stdout, stderr: None }, shown)
    }

    fn started(mut self) -> (&'a World, Child) {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program can be started");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = self.input;
        // Beside the reading, so that neither waits for the other. A program may end without reading its input.
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

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a readable pipe");
        String::from_utf8(bytes).expect("the program prints UTF-8")
    })
}

/// Both ends of a terminal: what is sent to it as it is, and nothing shown of what is typed.
fn terminal(columns: u16, lines: bool) -> rustix::io::Result<(File, File)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, Vec::new())?;
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let mut modes = tcgetattr(&terminal)?;
    modes.output_modes.set(OutputModes::OPOST, lines);
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    tcsetwinsize(&terminal, Winsize { ws_row: LINES, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((screen.into(), terminal.into()))
}

/// How many lines a terminal has.
const LINES: u16 = 24;

/// What a terminal shows.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<vt100::Parser>>);

#[allow(dead_code, reason = "the tests that kill need less")]
impl Screen {
    /// Its lines, without blanks at their ends.
    pub(crate) fn text(&self) -> String {
        let parser = self.0.lock().expect("nobody panics");
        let (_, columns) = parser.screen().size();
        let text: String = parser.screen().rows(0, columns).map(|line| format!("{}\n", line.trim_end())).collect();
        format!("{}\n", text.trim_end())
    }
}

/// The screen's end fails, instead of ending, once nobody has the terminal open.
fn collect_screen(mut screen: File, shown: Screen) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = screen.read(&mut part) {
            bytes.extend_from_slice(&part[..read]);
            shown.0.lock().expect("nobody panics").process(&part[..read]);
        }
        String::from_utf8(bytes).expect("the program prints UTF-8")
    })
}
