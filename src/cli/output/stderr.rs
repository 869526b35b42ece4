//! Writes to standard error, which is for people.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use jiff::Timestamp;

use crate::cli::output::ascii::for_stream;
use crate::cli::output::screen::{self, Stream};
use crate::cli::output::size::width_of_errors;
use crate::cli::output::stdout::coloured;
use crate::cli::output::{live, pager};
use crate::core::text::escape;
use crate::core::text::wrap::{columns, wrapped};

/// The options for standard error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Whether to print only errors.
    pub(crate) quiet: bool,
    /// Whether each line begins with a timestamp.
    pub(crate) times: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Sets the options for standard error, for the whole process. Only the first call has an effect.
pub(crate) fn write_errors(manner: Manner) {
    let _ = MANNER.set(manner);
}

/// Sets the use of colours, for the whole process and for clap.
pub(crate) fn colour(choice: ColorChoice) {
    match choice {
        ColorChoice::Auto => colorchoice::ColorChoice::Auto,
        ColorChoice::Always => colorchoice::ColorChoice::AlwaysAnsi,
        ColorChoice::Never => colorchoice::ColorChoice::Never,
    }
    .write_global();
}

/// Prints a message for people. It is not part of the result.
pub(crate) fn tell(text: &str) {
    if !is_quiet() {
        line("", Style::new(), text);
    }
}

/// A list command with its selecting options, for use in suggested commands.
pub(crate) struct ListCommand {
    name: &'static str,
    noun: &'static str,
    options: String,
}

impl ListCommand {
    /// `noun` names one entry of the list. Each of `options` comes with whether it was given.
    pub(crate) fn new(name: &'static str, noun: &'static str, options: &[(bool, &str)]) -> Self {
        let given = options.iter().filter(|(is_given, _)| *is_given);
        Self { name, noun, options: given.map(|(_, option)| format!(" {option}")).collect() }
    }

    /// Reports how many entries of other projects were left out, and the command that lists them.
    pub(crate) fn tell_of_elsewhere(&self, count: u64) {
        let (noun, more) = (self.noun, self.with("--all-projects"));
        match count {
            0 => {}
            1 => tell(&format!("1 {noun} of another project: {more}")),
            several => tell(&format!("{several} {noun}s of other projects: {more}")),
        }
    }

    /// Formats the same command with one more option.
    pub(crate) fn with(&self, option: &str) -> String {
        format!("agent-cli {}{} {option}", self.name, self.options)
    }
}

/// Prints a hint, although nothing is wrong.
pub(crate) fn hint(text: &str) {
    if !is_quiet() {
        hint_at_error(text);
    }
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    if !is_quiet() {
        line("warning", Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())), text);
    }
}

/// Prints an error: the failure and its cause.
pub(crate) fn error(text: &str) {
    line("error", Style::new().bold().fg_color(Some(AnsiColor::Red.into())), text);
}

/// Prints a hint about an error.
pub(crate) fn hint_at_error(text: &str) {
    line("hint", Style::new().fg_color(Some(AnsiColor::Green.into())), text);
}

/// Prints a question for a person, even with `--quiet`. Changed lines are in colour.
pub(crate) fn ask(text: &str) {
    let text = for_stream(&io::stderr(), if has_colours() { coloured(text) } else { escape::block(text) });
    if screen::keeps(Stream::Err, &text, "") {
        return;
    }
    // If standard error is closed, no person sees the question, so no answer is read.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether results and messages both go to a terminal. Then a result needs no word for programs.
pub(crate) fn is_read_by_a_person() -> bool {
    !is_quiet() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Whether `--quiet` was given.
pub(crate) fn is_quiet() -> bool {
    MANNER.get().is_some_and(|manner| manner.quiet)
}

/// Breaks the lines of an escaped text between words, where a terminal of this width would break them anywhere. `mark` is the
/// number of columns before the first line.
fn in_width(text: &str, mark: usize, width: usize) -> String {
    let mut lines = Vec::new();
    for (at, line) in text.split('\n').enumerate() {
        let before = "x".repeat(if at == 0 { mark } else { 0 });
        let indent = line.len() - line.trim_start().len();
        let wrapped = wrapped(&format!("{before}{line}"), width, indent.max(2)).join("\n");
        lines.push(wrapped[before.len()..].to_owned());
    }
    lines.join("\n")
}

fn has_colours() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Prints a message. Later lines of its text cannot pass for other messages of the program.
fn line(kind: &str, style: Style, text: &str) {
    let escaped = escape::block(text.trim_end());
    let plain = if kind.is_empty() { escaped.clone() } else { format!("{kind}: {escaped}") };
    let (text, mark) = match kind {
        "" => (escaped, String::new()),
        kind => {
            let style = if has_colours() { style } else { Style::new() };
            (escaped.replace('\n', "\n  "), format!("{style}{kind}{style:#}: "))
        }
    };
    let text = match width_of_errors() {
        Some(width) => in_width(&text, columns(kind) + if kind.is_empty() { 0 } else { 2 }, width),
        None => text,
    };
    let time = MANNER.get().filter(|manner| manner.times).map(|_| format!("{:.0} ", Timestamp::now()));
    let line = for_stream(&io::stderr(), format!("{}{mark}{text}\n", time.unwrap_or_default()));
    if screen::keeps(Stream::Err, &line, &plain) {
        return;
    }
    if io::stderr().is_terminal() && pager::take_message(&line) {
        return;
    }
    // If standard error is closed, the message is lost.
    live::send_above(&line);
}
