//! Gives the whole terminal to a full-screen display. Until the display returns it, the output of other threads is kept, and
//! the display gets the last message.

use std::collections::VecDeque;
use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::layout::Rect;
use ratatui::prelude::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::cli::output::ascii::ForTerminal;
use crate::failpoint;

/// The terminal, in full-screen mode.
#[derive(Debug)]
pub(crate) struct FullScreen {
    /// Never dropped: dropping it would show the cursor, which `hide` does already, and panic if the terminal is closed.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<ForTerminal<Stdout>>>>,
}

/// The stream to which a text belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The state while a display has the terminal.
struct Taken {
    owner: ThreadId,
    /// Whether the owner has lent the terminal to a dialogue or another program.
    is_lent: bool,
    kept: VecDeque<(Stream, String)>,
    last: Option<String>,
    /// Tells the display that there is a new message.
    wake: Box<dyn Fn() + Send>,
}

static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// The most texts to keep. More would be too many to read afterwards.
const MOST: usize = 200;

impl FullScreen {
    /// Takes the terminal for this thread. `wake` is called whenever another thread writes a message.
    pub(crate) fn take(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        static RESTORES: Once = Once::new();
        RESTORES.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                // Restore the terminal first, so that the message is readable.
                restore_after_panic();
                usual(panic);
            }));
        });
        show()?;
        let terminal = Terminal::new(CrosstermBackend::new(ForTerminal(io::stdout()))).inspect_err(|_| hide())?;
        let (owner, kept) = (thread::current().id(), VecDeque::new());
        *taken() = Some(Taken { owner, is_lent: false, kept, last: None, wake: Box::new(wake) });
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    pub(crate) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        // After a panic in another thread, this display no longer has the terminal.
        if taken().is_some() {
            failpoint::panic_at("draw");
            self.terminal.draw(render)?;
        }
        Ok(())
    }

    /// Returns the terminal for a while, to a dialogue of this thread, another program, or the shell.
    pub(crate) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        let set = |is_lent: bool| taken().iter_mut().for_each(|taken| taken.is_lent = is_lent);
        hide();
        set(true);
        let result = work();
        set(false);
        self.retake()?;
        Ok(result)
    }

    /// Draws everything again, on a terminal that another program may have changed.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        show()?;
        // Unlike `clear`, this does not query the cursor's position. A slow terminal may not answer in time.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        let Some(Taken { kept, .. }) = taken().take() else { return };
        hide();
        for (stream, text) in kept {
            // If the terminal was closed, the text is lost.
            let _ = match stream {
                Stream::Out => io::stdout().write_all(text.as_bytes()),
                Stream::Err => io::stderr().write_all(text.as_bytes()),
            };
        }
        let _ = io::stdout().flush();
    }
}

/// Returns the last message, and forgets it.
pub(crate) fn last_said() -> Option<String> {
    taken().as_mut().and_then(|taken| taken.last.take())
}

/// Keeps a text while a display has the terminal. Returns whether it did. `plain` is the text for the display, without
/// terminal sequences.
pub(super) fn keeps(stream: Stream, text: &str, plain: &str) -> bool {
    let mut taken = taken();
    let Some(taken) = taken.as_mut() else { return false };
    if !plain.is_empty() {
        taken.last = Some(plain.to_owned());
    }
    if taken.is_lent && taken.owner == thread::current().id() {
        return false;
    }
    if taken.kept.len() >= MOST {
        taken.kept.pop_front();
    }
    taken.kept.push_back((stream, text.to_owned()));
    (taken.wake)();
    true
}

fn taken() -> MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show() -> io::Result<()> {
    enable_raw_mode()?;
    // Pasted text must not be mistaken for keys.
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Restores the terminal. This fails if the terminal is closed.
fn hide() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

fn restore_after_panic() {
    // The panic may have happened while this mutex was locked.
    let is_taken = match TAKEN.try_lock() {
        Ok(mut taken) => taken.take().is_some_and(|taken| !taken.is_lent),
        Err(_) => true,
    };
    if is_taken {
        hide();
    }
}
