//! Standard output, which is for results only.

use std::io::{self, Write};

use serde::Serialize;

use super::error::CliError;
use crate::crash::{self, Step};

/// Prints a result. A reader that has gone away, as in `| head -1`, is no error.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match crash::around(Step::Print, || out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("failed to write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a result that is a text of its own, with a line break where it has none.
pub(super) fn print_line(text: &str) -> Result<(), CliError> {
    print(&if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })
}

/// Prints a result as one JSON value on one line.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CliError::failed(format!("failed to write the result as JSON: {error}")))?;
    print_line(&text)
}

/// Tells a person something beside the result.
pub(super) fn tell(text: &str) {
    // Nobody can be told that standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}
