//! What follows a question in the inbox.

use crate::cli::chain::answering::terminal_prompt::Line;
use crate::cli::chain::answering::typed::{self, Command, TypedLine};

/// How a person left the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli::chain::answering) enum Exit {
    /// After the last question.
    AtEnd,
    AtWill,
    /// With Ctrl-D, or by closing the terminal.
    Closed,
    /// With Ctrl-C.
    Interrupted,
}

/// The next step after a question.
pub(super) enum WalkStep {
    Next,
    /// To the same question, whose state was changed elsewhere before the person typed anything.
    Outdated,
    /// To the next question, because this one can no longer be answered here.
    Drop,
    Back,
    Leave(Exit),
}

impl WalkStep {
    /// The step for a line that is not an answer.
    pub(super) fn from_line(line: &Line) -> Self {
        match line {
            Line::Interrupted => Self::Leave(Exit::Interrupted),
            Line::Closed => Self::Leave(Exit::Closed),
            Line::Outdated => Self::Outdated,
            Line::Typed(text) => match typed::read(text) {
                TypedLine::Command(command) => Self::from_command(command),
                _ => Self::Next,
            },
        }
    }

    pub(super) fn from_command(command: Command) -> Self {
        match command {
            Command::Back => Self::Back,
            Command::Quit => Self::Leave(Exit::AtWill),
            Command::Skip | Command::All | Command::Edit | Command::Help => Self::Next,
        }
    }
}
