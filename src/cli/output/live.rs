//! Draws changing lines at the bottom of the terminal, and the progress of slow commands, on standard error. Messages are
//! written above these lines.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output::ascii::for_terminal;
use crate::cli::output::size::{can_move_cursor, size_of_errors};
use crate::core::text::wrap::columns;

/// The lines on the screen.
static DRAWN: Mutex<Drawn> = Mutex::new(Drawn { lines: Vec::new(), width: 0, echoing: None });

/// Lines of escaped text, and the terminal's width when they were drawn. The cursor is at the end of the last line.
struct Drawn {
    lines: Vec<String>,
    width: usize,
    /// The terminal's modes before it stopped to echo keys, which would break the lines.
    echoing: Option<Termios>,
}

/// Whether lines can be drawn: standard error is a terminal that can move its cursor.
pub(crate) fn can_draw() -> bool {
    io::stderr().is_terminal() && can_move_cursor()
}

/// Draws these lines in place of the previous ones. They must be escaped, and leave room for what a terminal in the
/// background echoes. The terminal echoes no keys as long as there are lines.
pub(crate) fn draw(lines: &[String]) {
    static ONCE: Once = Once::new();
    ONCE.call_once(clear_while_stopped);
    let (width, _) = size_of_errors();
    let mut drawn = drawn();
    if drawn.lines != lines || drawn.width != width {
        let text = drawn.to_top(width) + &painted(lines);
        (drawn.lines, drawn.width) = (lines.to_vec(), width);
        if lines.is_empty() {
            drawn.echo();
        } else {
            drawn.hide_keys();
        }
        send(&text);
    }
}

/// Removes the lines.
pub(crate) fn clear() {
    draw(&[]);
}

/// Writes text to standard error, above the drawn lines. A single write leaves no moment at which the terminal's echo of a
/// key, such as "^C", would stay in front of the text.
pub(super) fn send_above(text: &str) {
    let drawn = drawn();
    send(&format!("{}{text}{}", drawn.erased(), drawn.painted()));
}

/// Writes to the terminal above the drawn lines, to another stream.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    let drawn = drawn();
    send(&drawn.erased());
    let written = write();
    send(&drawn.painted());
    written
}

fn drawn() -> MutexGuard<'static, Drawn> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to standard error. If it is closed, the text is lost.
fn send(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Formats the lines so that they erase the previous content.
fn painted(lines: &[String]) -> String {
    format!("{}{ERASE_BELOW}", for_terminal(&lines.join("\u{1b}[K\r\n")))
}

const ERASE_BELOW: &str = "\u{1b}[J";

/// Whether this program may read from its terminal and change its modes. The system would suspend a program that a shell
/// has started in the background.
pub(crate) fn is_in_the_foreground() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

impl Drawn {
    fn hide_keys(&mut self) {
        if self.echoing.is_some() || !is_in_the_foreground() {
            return;
        }
        let Ok(before) = tcgetattr(io::stdin()) else { return };
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        if tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok() {
            self.echoing = Some(before);
        }
    }

    fn echo(&mut self) {
        if let Some(before) = self.echoing.take()
            && is_in_the_foreground()
        {
            // The modes of a closed terminal cannot be restored.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    /// What removes the lines from the terminal.
    fn erased(&self) -> String {
        if self.lines.is_empty() { String::new() } else { self.to_top(size_of_errors().0) + ERASE_BELOW }
    }

    /// What draws the lines again, below other text.
    fn painted(&self) -> String {
        if self.lines.is_empty() { String::new() } else { painted(&self.lines) }
    }

    /// Moves the cursor to the beginning of the lines. `width` is the terminal's current width.
    fn to_top(&self, width: usize) -> String {
        match self.height(width, breaks_lines_anew()).saturating_sub(1) {
            0 => "\r".to_owned(),
            up => format!("\r\u{1b}[{up}A"),
        }
    }

    /// How many lines of the terminal they take.
    fn height(&self, width: usize, breaks_anew: bool) -> usize {
        let of_line = |line: &String| match width {
            0 => 1,
            _ if !breaks_anew || width >= self.width => 1,
            _ => columns(line).div_ceil(width).max(1),
        };
        self.lines.iter().map(of_line).sum()
    }
}

/// Whether the terminal reflows its lines when it becomes narrower. A few terminals cut them.
fn breaks_lines_anew() -> bool {
    let terminal = env::var("TERM").unwrap_or_default();
    let is_in_screen = terminal.starts_with("screen") && env::var_os("TMUX").is_none();
    let cuts = env::var_os("XTERM_VERSION").is_some() || is_in_screen;
    !cuts && !["linux", "vt"].iter().any(|name| terminal.starts_with(name))
}

/// Removes the lines before Ctrl-Z stops the program. Once the program continues, draws them below the shell's output.
fn clear_while_stopped() {
    // If the signal cannot be handled, Ctrl-Z leaves the lines on the terminal.
    let listen = || -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let listener = |of: Signal| signal(SignalKind::from_raw(of.as_raw()));
        let mut asked = {
            let _entered = runtime.enter();
            listener(Signal::TSTP)?
        };
        thread::spawn(move || {
            let _entered = runtime.enter();
            while runtime.block_on(asked.recv()).is_some() {
                let mut drawn = drawn();
                // Other threads, including this one, may run a little longer.
                let Ok(mut continues) = listener(Signal::CONT) else { continue };
                send(&drawn.erased());
                drawn.echo();
                if kill_process(getpid(), Signal::STOP).is_ok() {
                    runtime.block_on(continues.recv());
                }
                if !drawn.lines.is_empty() {
                    drawn.hide_keys();
                }
                send(&drawn.painted());
            }
        });
        Ok(())
    };
    let _ = listen();
}

/// A progress line on standard error, which is overwritten as it changes. It appears only on a terminal, and only after a
/// second.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    next: Instant,
    is_terminal: bool,
    is_shown: bool,
}

const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);
/// Moves to the beginning of the line and deletes it.
const CLEAR: &str = "\r\u{1b}[K";

impl Default for ProgressLine {
    fn default() -> Self {
        Self { next: Instant::now() + PATIENCE, is_terminal: io::stderr().is_terminal(), is_shown: false }
    }
}

impl ProgressLine {
    /// Shows that `done` of `of` steps are complete.
    pub(crate) fn show(&mut self, what: &str, done: usize, of: usize) {
        let now = Instant::now();
        if self.is_terminal && now >= self.next {
            self.next = now + PAUSE;
            self.is_shown = true;
            let _ = write!(io::stderr(), "{CLEAR}{what}: {done} of {of}");
        }
    }

    /// Removes the line, so that other output can take its place.
    pub(crate) fn clear(&mut self) {
        if self.is_shown {
            self.is_shown = false;
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_narrower_terminal_has_broken_is_removed() {
        let drawn = Drawn { lines: vec!["x".repeat(70), "x".repeat(20)], width: 80, echoing: None };
        let heights = |breaks| [120, 80, 70, 69, 20, 0].map(|width| drawn.height(width, breaks));
        assert_eq!(heights(true), [2, 2, 2, 3, 5, 2]);
        assert_eq!(heights(false), [2; 6]);
    }
}
