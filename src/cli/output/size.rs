//! The sizes of terminals, and what they can do.

use std::env;
use std::io::{self, IsTerminal};

/// The width of a stream, if it is a terminal.
pub(super) fn columns_of(stream: impl IsTerminal + std::os::fd::AsFd) -> Option<usize> {
    stream
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(stream).map_or(USUAL_WIDTH, |(width, _)| width.0.into()))
}

/// The width of the terminal that shows messages. `None` if they do not go to a terminal.
pub(crate) fn width_of_errors() -> Option<usize> {
    columns_of(io::stderr())
}

/// The columns and lines of the terminal that shows messages.
pub(crate) fn size_of_errors() -> (usize, usize) {
    columns_and_lines(io::stderr())
}

/// Whether the terminal of this process can move its cursor.
pub(crate) fn can_move_cursor() -> bool {
    env::var("TERM").is_ok_and(|terminal| !matches!(terminal.as_str(), "" | "dumb" | "unknown" | "cons25" | "emacs"))
}

/// The columns and lines of a terminal.
pub(super) fn columns_and_lines(stream: impl std::os::fd::AsFd) -> (usize, usize) {
    terminal_size::terminal_size_of(stream)
        .map_or((USUAL_WIDTH, 24), |(width, height)| (width.0.into(), height.0.into()))
}

/// The assumed width of a terminal that does not report it.
const USUAL_WIDTH: usize = 80;
