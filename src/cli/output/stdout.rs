//! Standard output, which is for results only.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::cli::output::stderr::columns_of;
use crate::core::text::escape;
use crate::failpoint::{self, Step};

/// Why a result was not printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrintError {
    #[error("failed to write the result: {0}")]
    Write(#[from] io::Error),
    #[error("failed to write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Whether something was written to standard output, or failed to be.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether the reader of standard output had gone away.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether something was written to standard output, or failed to be.
pub(crate) fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Whether the reader of standard output had gone away before it had read everything.
pub(crate) fn was_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Prints a result: escaped on a terminal, exact to the byte elsewhere. If the reader has gone away, as in `| head -1`,
/// that is not an error.
pub(crate) fn print(text: &str) -> Result<(), PrintError> {
    let mut out = io::stdout().lock();
    BEGUN.store(true, Ordering::Relaxed);
    let text = if out.is_terminal() { Cow::from(escape::block(text)) } else { Cow::from(text) };
    match failpoint::around(Step::Print, || out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => Ok(written?),
    }
}

/// The width of the terminal that shows results. `None`: they go elsewhere.
pub(crate) fn width() -> Option<usize> {
    columns_of(io::stdout())
}

/// Prints a result that is a complete text, adding a final line break if it has none.
pub(crate) fn print_line(text: &str) -> Result<(), PrintError> {
    print(&if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })
}

/// Prints a result as one line of JSON, unchanged on a terminal.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), PrintError> {
    print_line(&escape::json(&serde_json::to_string(value)?))
}
