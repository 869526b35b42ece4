//! Progress of operations that take longer than a person likes to wait in silence.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

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
