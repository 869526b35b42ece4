//! Pseudo-terminals, and what they show.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

/// Both ends of a terminal: what is sent to it as it is, and nothing shown of what is typed.
pub(crate) fn terminal(columns: u16, rows: u16, lines: bool) -> rustix::io::Result<(File, File)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, Vec::new())?;
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    // A process that outlives the program would keep the terminal open.
    [&screen, &terminal].into_iter().try_for_each(|end| fcntl_setfd(end, FdFlags::CLOEXEC))?;
    let mut modes = tcgetattr(&terminal)?;
    modes.output_modes.set(OutputModes::OPOST, lines);
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    tcsetwinsize(&terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((screen.into(), terminal.into()))
}

/// How many lines a terminal has, unless a test says otherwise.
#[allow(dead_code, reason = "the tests with the real Claude Code say it")]
pub(crate) const LINES: u16 = 24;

/// What a terminal shows.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<vt100::Parser>>);

#[allow(dead_code, reason = "the tests that kill need less")]
impl Screen {
    /// An empty one.
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        Self(Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0))))
    }

    /// Its lines, without blanks at their ends.
    pub(crate) fn text(&self) -> String {
        let parser = self.0.lock().expect("nobody panics");
        let (_, columns) = parser.screen().size();
        let text: String = parser.screen().rows(0, columns).map(|line| format!("{}\n", line.trim_end())).collect();
        format!("{}\n", text.trim_end())
    }

    /// What it shows now, with its colours.
    pub(crate) fn now(&self) -> vt100::Screen {
        self.0.lock().expect("nobody panics").screen().clone()
    }

    /// Shows what somebody else prints there: the terminal itself, or a shell.
    pub(crate) fn shows(&self, text: &str) {
        self.0.lock().expect("nobody panics").process(text.as_bytes());
    }

    /// Changes its width. Like xterm, it does not break its lines anew.
    pub(crate) fn resize(&self, terminal: &File, columns: u16) {
        let mut parser = self.0.lock().expect("nobody panics");
        let (rows, _) = parser.screen().size();
        parser.screen_mut().set_size(rows, columns);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(terminal, size).expect("a terminal has a size");
    }

    /// Whether a program has all of it, and what was there before returns later.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.lock().expect("nobody panics").screen().alternate_screen()
    }

    /// Gives it another size, after the terminal.
    pub(crate) fn set_size(&self, columns: u16, rows: u16) {
        self.0.lock().expect("nobody panics").screen_mut().set_size(rows, columns);
    }
}

/// The screen's end fails, instead of ending, once nobody has the terminal open.
pub(crate) fn collect_screen(mut screen: File, shown: Screen) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = screen.read(&mut part) {
            bytes.extend_from_slice(&part[..read]);
            shown.0.lock().expect("nobody panics").process(&part[..read]);
        }
        String::from_utf8(bytes).expect("the program prints UTF-8")
    })
}
