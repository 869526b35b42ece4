//! Changing lines at the bottom of the terminal, and progress of slow commands, on standard error. Messages are written above
//! them.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is currently drawn.
static DRAWN: Mutex<Option<Drawn>> = Mutex::new(None);

struct Drawn {
    all: MultiProgress,
    lines: Vec<ProgressBar>,
}

/// Whether lines can be drawn: on a terminal that can move its cursor.
pub(crate) fn can_draw() -> bool {
    let can_move = env::var("TERM").is_ok_and(|terminal| !terminal.is_empty() && terminal != "dumb");
    io::stderr().is_terminal() && can_move
}

/// Draws these lines in place of the previous ones. They must be escaped, and fit.
pub(crate) fn draw(lines: &[String]) {
    if lines.is_empty() {
        // Removing a single line has no effect on the terminal until another is drawn.
        return clear();
    }
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let drawn = drawn.get_or_insert_with(|| {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        Drawn { all, lines: Vec::new() }
    });
    while drawn.lines.len() > lines.len() {
        if let Some(line) = drawn.lines.pop() {
            drawn.all.remove(&line);
        }
    }
    while drawn.lines.len() < lines.len() {
        // Only the text: no bar, no colour.
        let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        drawn.lines.push(drawn.all.add(ProgressBar::new_spinner().with_style(style)));
    }
    for (line, text) in drawn.lines.iter().zip(lines).filter(|(line, text)| line.message() != **text) {
        line.set_message(text.clone());
        line.tick();
    }
}

/// Removes the lines.
pub(crate) fn clear() {
    let drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(drawn) = drawn {
        // If standard error is closed, nothing is shown any more.
        let _ = drawn.all.clear();
    }
}

/// Writes to the terminal above what is drawn.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    match &*DRAWN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(drawn) => drawn.all.suspend(write),
        None => write(),
    }
}

/// A line on standard error that is overwritten as it changes. Only on a terminal, and only after a second.
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

    /// Removes the line, so that something else can be written there.
    pub(crate) fn clear(&mut self) {
        if self.is_shown {
            self.is_shown = false;
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}
