//! Asks a person at a terminal for confirmation.

use std::io::{self, IsTerminal};

use crate::cli::error::CliError;
use crate::cli::output;

/// Why this process cannot show and ask a question. `None` if it can.
pub(crate) fn obstacle() -> Option<&'static str> {
    if !io::stdin().is_terminal() {
        Some("standard input is not a terminal")
    } else if !io::stderr().is_terminal() {
        Some("standard error is not a terminal")
    } else {
        None
    }
}

/// Whether this process can show and ask a question.
pub(crate) fn is_at_a_terminal() -> bool {
    obstacle().is_none()
}

/// Asks a question, such as `remove it?`. Only a clear yes counts as yes.
pub(crate) fn confirm(question: &str) -> Result<bool, CliError> {
    let line = read_line(&format!("{question} [y/N] "))?;
    Ok(is_yes(&line))
}

/// Shows a prompt, and returns the trimmed line that the person types.
pub(crate) fn read_line(prompt: &str) -> Result<String, CliError> {
    output::ask(prompt);
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|error| CliError::usage(format!("cannot read the answer: {error}")))?;
    Ok(line.trim().to_owned())
}

pub(crate) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
