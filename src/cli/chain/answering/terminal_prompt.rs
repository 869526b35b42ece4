//! Reads lines from a person at the terminal, and shows long texts page by page.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush, tcgetattr};
use rustyline::config::CompletionType;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, EventHandler, KeyEvent};

use crate::cli::chain::answering::keys::{Arrived, Keys, Suspend, has_more};
use crate::cli::chain::answering::typed::{self, Command, TypedLine};
use crate::cli::chain::answering::waiting::{Modes, Stops, Untouched, Waited, write};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::core::text::wrap::{columns, wrapped_text};

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It was completed with Enter.
    Typed(String),
    /// Ctrl-C, or a signal that ends the program.
    Interrupted,
    /// Ctrl-D, or the terminal was closed.
    Closed,
    /// The question became outdated before the person typed anything.
    Outdated,
}

pub(super) struct Prompt {
    stops: Stops,
    /// `None`: the terminal cannot move its cursor.
    editor: Option<rustyline::Editor<Keys, MemHistory>>,
}

/// The longest line, in bytes and with its end, that a terminal can hold while it edits the line itself. It silently drops
/// longer input.
pub(super) const LONGEST_LINE: usize = if cfg!(target_os = "macos") { 1023 } else { 4095 };

impl Prompt {
    pub(super) fn new() -> Result<Self, CliError> {
        // Pasted text is a single answer, even with line breaks in it.
        let config = Config::builder()
            .bracketed_paste(true)
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .build();
        let editor = || {
            let mut editor = rustyline::Editor::with_history(config, MemHistory::new())?;
            editor.set_helper(Some(Keys::default()));
            let suspend = tcgetattr(io::stdin()).ok().map(|modes| Box::new(Suspend { modes }));
            let bound =
                suspend.map(|suspend| editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(suspend)));
            drop(bound);
            Ok(editor)
        };
        let editor = output::can_move_cursor().then(editor).transpose().map_err(|error| unreadable(&error))?;
        Ok(Self { stops: Stops::new().map_err(|error| unreadable(&error.into()))?, editor })
    }

    /// Drops typed input before something new is shown, because the input was meant for something else.
    pub(super) fn forget_typed_ahead() {
        // Without a terminal there is nothing to drop.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }

    /// Drops the rest of a line or a paste, until nothing has arrived for a while.
    pub(super) fn forget_the_rest() {
        const QUIET: Duration = Duration::from_millis(200);
        // Otherwise a line without its end would not count as input.
        let _keys = Modes::with_signals();
        loop {
            Self::forget_typed_ahead();
            thread::sleep(QUIET);
            if !has_more() {
                return;
            }
        }
    }

    /// Reads a line, and rejects a truncated one.
    pub(super) fn line(&mut self, prompt: &str) -> Result<Line, CliError> {
        self.line_unless(prompt, &mut || false)
    }

    /// Like [`Self::line`], but stops if the question becomes outdated before the person has typed anything.
    pub(super) fn line_unless(
        &mut self,
        prompt: &str,
        is_outdated: &mut dyn FnMut() -> bool,
    ) -> Result<Line, CliError> {
        loop {
            let (line, arrived) = self.read(prompt, is_outdated)?;
            let why = match arrived {
                Arrived::Whole => return Ok(line),
                Arrived::WithMore => "several lines arrived at once, so nothing was sent: use :edit for them",
                Arrived::Cut => "a long line may have been cut, so nothing was sent: use :edit for it",
                Arrived::NotText => "the input is not UTF-8, so it was not sent",
            };
            Self::forget_the_rest();
            output::tell(why);
        }
    }

    fn read(&mut self, prompt: &str, is_outdated: &mut dyn FnMut() -> bool) -> Result<(Line, Arrived), CliError> {
        // The editor draws the prompt again, over the existing one. This only works if the prompt has a single row.
        let (width, _) = output::size_of_errors();
        let untouched = self.editor.is_some().then(Untouched::new).flatten();
        if untouched.is_none() || columns(prompt) < width {
            write(prompt);
            let waited = self.stops.input_unless(is_outdated).map_err(|error| unreadable(&error.into()))?;
            if waited != Waited::Input {
                write("\n");
                return Ok((
                    if waited == Waited::Stopped { Line::Interrupted } else { Line::Outdated },
                    Arrived::Whole,
                ));
            }
            if untouched.is_some() {
                write("\r\u{1b}[K");
            }
        }
        let read = match &mut self.editor {
            Some(editor) => edited(editor, prompt)?,
            None => plain(),
        };
        if self.stops.have_arrived() { Ok((Line::Interrupted, Arrived::Whole)) } else { Ok(read) }
    }

    /// Shows a text page by page, with room for `below` lines after it. No line of the text may be wider than the terminal.
    /// Returns the person's input if they type something instead of reading on. `denies`: whether a line is an answer that
    /// may be given before everything was shown; `None` if there are no such answers.
    pub(super) fn show(
        &mut self,
        text: &str,
        below: usize,
        denies: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Option<Line>, CliError> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut shown, mut all) = (0, false);
        while shown < lines.len() {
            let (width, height) = output::size_of_errors();
            let more = |shown: usize| more(shown, lines.len(), width, denies.is_some());
            let fits = lines.len() - shown + below <= height;
            let room = height.saturating_sub(1 + more(lines.len()).lines().count());
            let page = if all || fits { usize::MAX } else { room.max(1) };
            let until = shown.saturating_add(page).min(lines.len());
            output::ask(&lines[shown..until].concat());
            shown = until;
            while shown < lines.len() {
                let line = self.line(&(more(shown) + " "))?;
                let Line::Typed(text) = &line else { return Ok(Some(line)) };
                match typed::read(text) {
                    TypedLine::Nothing => break,
                    TypedLine::Command(Command::All) => {
                        all = true;
                        break;
                    }
                    TypedLine::Command(Command::Skip | Command::Back | Command::Quit) => return Ok(Some(line)),
                    TypedLine::Answer(answer) if denies.is_some_and(|denies| denies(answer)) => return Ok(Some(line)),
                    TypedLine::Command(Command::Help) => output::ask(&wrapped_text(&typed::help(), width)),
                    _ => output::tell("Enter or :all shows the rest first"),
                }
            }
        }
        Ok(None)
    }
}

/// The line below a page. It says how much was shown, and what a person can type.
fn more(shown: usize, lines: usize, width: usize, can_deny: bool) -> String {
    let room = width.saturating_sub(1);
    let [long, short] = if can_deny { [" deny and why,", " deny"] } else { [""; 2] };
    let texts = [
        format!("{shown}/{lines}, Enter: more,{long} :all :skip :back :quit"),
        format!("{shown}/{lines}, Enter{short} :all :skip :back :quit"),
        format!("{shown}/{lines} Enter :a :s :q"),
    ];
    let fits = |text: &&String| columns(text) <= room;
    wrapped_text(texts.iter().find(fits).unwrap_or(&texts[2]), room)
}

fn edited(editor: &mut rustyline::Editor<Keys, MemHistory>, prompt: &str) -> Result<(Line, Arrived), CliError> {
    let read = editor.readline(prompt);
    let arrived = editor.helper().map_or(Arrived::Whole, Keys::arrived);
    match read {
        Ok(line) => Ok((Line::Typed(line), arrived)),
        Err(ReadlineError::Interrupted) => Ok((Line::Interrupted, Arrived::Whole)),
        Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Ok((Line::Closed, Arrived::NotText))
        }
        // Reading from a closed terminal fails.
        Err(ReadlineError::Eof | ReadlineError::Errno(_) | ReadlineError::Io(_)) => Ok((Line::Closed, Arrived::Whole)),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Reads a line that only the terminal edits.
fn plain() -> (Line, Arrived) {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let arrived = match &read {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Arrived::NotText,
        _ if line.len() > LONGEST_LINE => Arrived::Cut,
        Ok(_) if line.ends_with('\n') && has_more() => Arrived::WithMore,
        _ => Arrived::Whole,
    };
    // If the input ended in the middle of a line, the person did not press Enter. Reading from a closed terminal fails.
    let line = read.ok().and_then(|_| line.strip_suffix('\n'));
    (line.map_or(Line::Closed, |line| Line::Typed(line.to_owned())), arrived)
}

fn unreadable(error: &ReadlineError) -> CliError {
    CliError::failed(format!("cannot read from the terminal: {error}"))
        .hint("agent-cli answer ID ANSWER answers without a dialogue")
}
