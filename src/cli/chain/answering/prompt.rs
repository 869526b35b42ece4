//! Reads lines that a person types, and shows them long texts page by page.

use std::env;
use std::io::{self, BufRead, Write};

use rustix::termios::{QueueSelector, tcflush};
use rustyline::Config;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;

use crate::cli::chain::answering::typed::{self, Command, Typed};
use crate::cli::error::CliError;
use crate::cli::output;

/// What came of asking for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It was completed with Enter.
    Typed(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    Closed,
}

pub(super) struct Prompt {
    /// `None`: the terminal cannot move its cursor.
    editor: Option<rustyline::Editor<(), MemHistory>>,
}

impl Prompt {
    pub(super) fn new() -> Result<Self, CliError> {
        // What was pasted stays one answer, whatever line breaks are in it.
        let config = Config::builder().bracketed_paste(true).auto_add_history(false).build();
        let editor = can_move_its_cursor()
            .then(|| rustyline::Editor::with_history(config, MemHistory::new()).map_err(|error| unreadable(&error)));
        Ok(Self { editor: editor.transpose()? })
    }

    /// Drops what was typed before something new is shown: nobody can have meant that.
    pub(super) fn forget_typed_ahead() {
        // Without a terminal there is nothing to drop.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }

    pub(super) fn line(&mut self, prompt: &str) -> Result<Line, CliError> {
        let Some(editor) = &mut self.editor else { return plain(prompt) };
        match editor.readline(prompt) {
            Ok(line) => Ok(Line::Typed(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            // A terminal that was closed fails.
            Err(ReadlineError::Eof | ReadlineError::Errno(_) | ReadlineError::Io(_)) => Ok(Line::Closed),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Shows a whole text, of which no line is wider than the terminal, with room for so many lines `below` it. Returns what the
    /// person typed instead of seeing all of it, if they did.
    pub(super) fn show(&mut self, text: &str, below: usize) -> Result<Option<Line>, CliError> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut shown, mut all) = (0, false);
        while shown < lines.len() {
            let (_, height) = output::size_of_errors();
            let fits = lines.len() - shown + below <= height;
            let page = if all || fits { usize::MAX } else { height.saturating_sub(2).max(1) };
            let until = shown.saturating_add(page).min(lines.len());
            output::ask(&lines[shown..until].concat());
            shown = until;
            while shown < lines.len() {
                let line = self.line(&format!("{shown}/{}, Enter: more ", lines.len()))?;
                let Line::Typed(text) = &line else { return Ok(Some(line)) };
                match typed::read(text) {
                    Typed::Nothing => break,
                    Typed::Command(Command::All) => {
                        all = true;
                        break;
                    }
                    Typed::Command(Command::Skip | Command::Back | Command::Quit) => return Ok(Some(line)),
                    _ => output::tell("Enter or :all shows the rest first"),
                }
            }
        }
        Ok(None)
    }
}

/// A line without any editing.
fn plain(prompt: &str) -> Result<Line, CliError> {
    let mut line = String::new();
    let cannot = |error| unreadable(&ReadlineError::Io(error));
    io::stdout().write_all(prompt.as_bytes()).and_then(|()| io::stdout().flush()).map_err(cannot)?;
    match io::stdin().lock().read_line(&mut line) {
        // An end in the middle of a line was not Enter.
        Ok(_) if !line.ends_with('\n') => Ok(Line::Closed),
        Ok(_) => Ok(Line::Typed(line.trim_end_matches(['\n', '\r']).to_owned())),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(cannot(error)),
        Err(_) => Ok(Line::Closed),
    }
}

fn can_move_its_cursor() -> bool {
    env::var("TERM").is_ok_and(|term| !matches!(term.as_str(), "" | "dumb" | "cons25" | "emacs"))
}

fn unreadable(error: &ReadlineError) -> CliError {
    CliError::failed(format!("cannot read from the terminal: {error}"))
        .hint("agent-cli answer ID ANSWER answers without a dialogue")
}
