//! The program's output. Only these functions write to standard output and standard error. They escape everything that a
//! terminal would interpret.

mod ascii;
pub(crate) mod format;
pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod pager;
pub(crate) mod screen;
mod size;
mod stderr;
mod stdout;

pub(crate) use size::{can_move_cursor, size_of_errors, width_of_errors};
pub(crate) use stderr::{
    ListCommand, Manner, ask, colour, error, hint, hint_at_error, is_quiet, is_read_by_a_person, tell, warn,
    write_errors,
};
pub(crate) use stdout::{
    PrintError, Tone, TonedLine, has_begun, has_no_reader, print, print_event, print_json, print_line, print_of_clap,
    print_quoted, print_toned, was_closed, was_unread, width,
};
