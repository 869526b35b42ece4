//! Writes to standard output, which is only for results.

use std::io::{self, IsTerminal, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;

use crate::cli::output::ascii::{for_stream, for_terminal};
use crate::cli::output::screen::{self, Stream};
use crate::cli::output::size::columns_of;
use crate::cli::output::{live, pager};
use crate::core::text::bars::Changed;
use crate::core::text::escape;
use crate::failpoint::{self, Step};
use crate::runtime::run::signals;

/// Why a result was not printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrintError {
    #[error("failed to write the result: {0}")]
    Write(#[from] io::Error),
    #[error("failed to write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Whether the program has written a result to standard output, or has failed to.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether the reader of standard output has disappeared.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether the program has written a result to standard output, or has failed to.
pub(crate) fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Whether the reader of standard output disappeared before it had read everything.
pub(crate) fn was_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Whether standard output was closed when the program started. In that case, the system has opened `/dev/null` in its place,
/// for reading and writing. A caller may also have done this on purpose.
pub(crate) fn was_closed() -> bool {
    let out = io::stdout();
    let is_null = match (rustix::fs::fstat(&out), rustix::fs::stat("/dev/null")) {
        (Ok(out), Ok(null)) => (out.st_dev, out.st_ino) == (null.st_dev, null.st_ino),
        _ => false,
    };
    is_null && rustix::fs::fcntl_getfl(&out).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

/// Whether the reader of standard output has disappeared. Checks this without writing.
pub(crate) fn has_no_reader() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let is_told = poll(&mut polled, Some(&Timespec::default())).is_ok();
    is_told && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Prints a result: escaped on a terminal, unchanged elsewhere. It is not an error if the reader has disappeared, as in `|
/// head -1`.
pub(crate) fn print(text: &str) -> Result<(), PrintError> {
    if io::stdout().is_terminal() { write(&for_terminal(&escape::block(text))) } else { write(text) }
}

/// Prints a result in which lines of others are behind bars. Changed lines are in colour.
pub(crate) fn print_quoted(text: &str) -> Result<(), PrintError> {
    if anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never {
        return print(text);
    }
    write(&for_stream(&io::stdout(), coloured(text)))
}

/// Escapes a text with bars, and colours its changed lines.
pub(super) fn coloured(text: &str) -> String {
    let coloured = |line: &str| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let colour = match Changed::of_line(line) {
            None => return format!("{line}{end}"),
            Some(Changed::Added) => AnsiColor::Green,
            Some(Changed::Removed) => AnsiColor::Red,
        };
        let style = Style::new().fg_color(Some(colour.into()));
        format!("{style}{line}{style:#}{end}")
    };
    escape::block(text).split_inclusive('\n').map(coloured).collect()
}

/// The meaning of a part of a line. Its colour shows the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// The chain or agent asks a person.
    Asks,
    /// A person can continue the chain or agent.
    Continues,
    /// A person must fix the chain or agent.
    Bad,
    /// The chain or agent is running.
    Good,
    /// The chain or agent waits for something else.
    Waiting,
    /// No action is needed.
    Quiet,
}

/// A line of escaped text. One part of it has a tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TonedLine {
    pub(crate) text: String,
    pub(crate) part: Range<usize>,
    pub(crate) tone: Tone,
}

/// Prints lines, in colour if requested.
pub(crate) fn print_toned(lines: &[TonedLine]) -> Result<(), PrintError> {
    let has_colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let toned = |TonedLine { text, part, tone }: &TonedLine| {
        let style = if has_colours { tone.style() } else { Style::new() };
        let parts = [0..part.start, part.clone(), part.end..text.len()];
        let [before, part, after] = parts.map(|at| escape::block(text.get(at).unwrap_or_default()));
        format!("{before}{style}{part}{style:#}{after}\n")
    };
    let text = lines.iter().map(toned).collect::<String>();
    write(&for_stream(&io::stdout(), text))
}

impl Tone {
    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Good => colour(AnsiColor::Green),
            Self::Asks => colour(AnsiColor::Yellow).bold(),
            Self::Continues => colour(AnsiColor::Yellow),
            Self::Waiting => colour(AnsiColor::Cyan),
            Self::Bad => colour(AnsiColor::Red),
            Self::Quiet => Style::new().dimmed(),
        }
    }
}

fn write(text: &str) -> Result<(), PrintError> {
    BEGUN.store(true, Ordering::Relaxed);
    write_out(text)
}

fn write_out(text: &str) -> Result<(), PrintError> {
    if screen::keeps(Stream::Out, text, text.trim_end()) {
        return Ok(());
    }
    if let Some(taken) = pager::take(text) {
        return as_read(taken);
    }
    let mut out = io::stdout().lock();
    let mut print = || failpoint::around(Step::Print, || write_all(&mut out, text.as_bytes()));
    as_read(if io::stdout().is_terminal() { live::above(print) } else { print() })
}

/// Writes everything. If signals do not end this program by themselves, one of them ends the wait for a reader.
fn write_all(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    /// A pipe that has room takes as much at once.
    const PIECE: usize = 4096;
    if !signals::are_handled() {
        return out.write_all(bytes).and_then(|()| out.flush());
    }
    bytes.chunks(PIECE).try_for_each(|piece| {
        wait_for_reader()?;
        out.write_all(piece).and_then(|()| out.flush())
    })
}

fn wait_for_reader() -> io::Result<()> {
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
    let stdout = io::stdout();
    loop {
        match poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) if signals::is_one_unseen() => {
                return Err(io::Error::other("a signal came while nothing was reading it"));
            }
            Ok(0) | Err(Errno::INTR) => {}
            // Writing says what is wrong.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}

/// Prints clap's help, or an error in a command line.
pub(crate) fn print_of_clap(error: &clap::Error) -> Result<(), PrintError> {
    as_read(error.print())
}

fn as_read(written: io::Result<()>) -> Result<(), PrintError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => Ok(written?),
    }
}

/// The width of the terminal that shows results. `None` if they do not go to a terminal.
pub(crate) fn width() -> Option<usize> {
    columns_of(io::stdout())
}

/// Prints a complete text, with a final line break.
pub(crate) fn print_line(text: &str) -> Result<(), PrintError> {
    print(&if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })
}

/// Prints an event, before the result.
pub(crate) fn print_event(value: &impl Serialize) -> Result<(), PrintError> {
    write_out(&json_line(value)?)
}

fn json_line(value: &impl Serialize) -> Result<String, PrintError> {
    Ok(format!("{}\n", escape::json(&serde_json::to_string(value)?)))
}

/// Prints a result as one line of JSON, unchanged on a terminal.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), PrintError> {
    write(&json_line(value)?)
}
