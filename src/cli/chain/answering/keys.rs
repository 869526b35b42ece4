//! Key bindings of the inbox, in addition to the usual ones.

use std::cell::Cell;
use std::io;

use rustix::io::ioctl_fionread;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, ConditionalEventHandler, Context, Event, EventContext, Helper, RepeatCount};

use crate::cli::chain::answering::waiting::{PASTES_ARE_MARKED, PASTES_ARE_NOT_MARKED, write};

/// How a line of input arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Whole,
    /// More lines followed it, from a terminal that does not mark pasted text.
    WithMore,
    /// It may be truncated.
    Cut,
    /// It is not UTF-8.
    NotText,
}

/// Whether more input already follows a line. No person types that fast.
pub(super) fn has_more() -> bool {
    ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Ctrl-Z. The editor's own key only asks for a stop, and reads on if a handler of this program delays that.
#[derive(Debug)]
pub(super) struct Suspend {
    /// The terminal's modes outside the editor.
    pub(super) modes: Termios,
}

impl ConditionalEventHandler for Suspend {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        let of_editor = tcgetattr(io::stdin()).ok()?;
        write(PASTES_ARE_NOT_MARKED);
        tcsetattr(io::stdin(), OptionalActions::Drain, &self.modes).ok()?;
        let _ = kill_current_process_group(Signal::STOP);
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &of_editor);
        write(PASTES_ARE_MARKED);
        Some(Cmd::Repaint)
    }
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    has_more: Cell<bool>,
}

impl Keys {
    /// How the last line arrived.
    pub(super) fn arrived(&self) -> Arrived {
        if self.has_more.take() { Arrived::WithMore } else { Arrived::Whole }
    }
}

impl Completer for Keys {
    type Candidate = String;

    /// The Tab key inserts a tab, because answers have no completions.
    fn complete(&self, _: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((at, vec!["\t".to_owned()]))
    }
}

impl Validator for Keys {
    /// Enter ends the line, unless more input has already arrived.
    fn validate(&self, _: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if has_more() {
            self.has_more.set(true);
            return Ok(ValidationResult::Incomplete);
        }
        Ok(ValidationResult::Valid(None))
    }
}

impl Hinter for Keys {
    type Hint = String;
}

impl Highlighter for Keys {}

impl Helper for Keys {}
