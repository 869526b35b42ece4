//! Waits for a person's input, and notices events in the meantime.

use std::io::{self, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::runtime::block_on;

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// There is input, or the terminal was closed.
    Input,
    /// A signal asks the program to end.
    Stopped,
    /// The screen is outdated.
    Outdated,
}

/// The signals that end a prompt. Once a command has run agents, these signals no longer end the program.
#[derive(Debug)]
pub(super) struct Stops([Signal; 3]);

/// How often to check whether the screen is outdated.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

impl Stops {
    pub(super) fn new() -> io::Result<Self> {
        let [one, two, three] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        block_on(async { Ok(Self([signal(one)?, signal(two)?, signal(three)?])) })?
    }

    /// Waits for input. If the terminal itself edits lines, input arrives once a line is complete.
    pub(super) fn input_unless(&mut self, is_outdated: &mut dyn FnMut() -> bool) -> io::Result<Waited> {
        block_on(async {
            loop {
                // Poll in another thread, because some systems do not report the readiness of terminals in any other way.
                let ready = spawn_blocking(|| {
                    let input = io::stdin();
                    poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&LOOK)).is_ok_and(|ready| ready > 0)
                });
                tokio::select! {
                    biased;
                    () = self.any() => return Waited::Stopped,
                    ready = ready => match ready {
                        Ok(false) if is_outdated() => return Waited::Outdated,
                        Ok(false) => {}
                        Ok(true) | Err(_) => return Waited::Input,
                    },
                }
            }
        })
    }

    /// Whether a signal has arrived.
    pub(super) fn have_arrived(&mut self) -> bool {
        let arrived = async {
            tokio::select! {
                biased;
                () = self.any() => true,
                () = sleep(Duration::from_millis(1)) => false,
            }
        };
        block_on(arrived).unwrap_or_default()
    }

    async fn any(&mut self) {
        let [one, two, three] = &mut self.0;
        tokio::select! {
            _ = one.recv() => {}
            _ = two.recv() => {}
            _ = three.recv() => {}
        }
    }
}

/// Passes every key of the terminal to the line editor, until this is dropped. The editor itself does so only while it reads.
/// Input that arrives earlier could be truncated, echoed twice or split into several lines.
pub(super) struct Untouched {
    _modes: Modes,
}

pub(super) const PASTES_ARE_MARKED: &str = "\u{1b}[?2004h";
pub(super) const PASTES_ARE_NOT_MARKED: &str = "\u{1b}[?2004l";

impl Untouched {
    /// `None`: standard input is not a terminal.
    pub(super) fn new() -> Option<Self> {
        // The modes that the editor uses.
        let modes = Modes::without(LocalModes::ISIG)?;
        write(PASTES_ARE_MARKED);
        Some(Self { _modes: modes })
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        write(PASTES_ARE_NOT_MARKED);
    }
}

/// Other modes of the terminal, until this is dropped: it edits no lines, and echoes nothing.
pub(super) struct Modes {
    before: Termios,
}

impl Modes {
    /// Lets Ctrl-C and Ctrl-Z still send signals. `None`: standard input is not a terminal.
    pub(super) fn with_signals() -> Option<Self> {
        Self::without(LocalModes::empty())
    }

    fn without(more: LocalModes) -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut modes = before.clone();
        let changed =
            InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON;
        modes.input_modes.remove(changed);
        modes.control_modes.insert(ControlModes::CS8);
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | more);
        (modes.special_codes[SpecialCodeIndex::VMIN], modes.special_codes[SpecialCodeIndex::VTIME]) = (1, 0);
        tcsetattr(io::stdin(), OptionalActions::Drain, &modes).ok()?;
        Some(Self { before })
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        // The modes of a closed terminal cannot be restored.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

/// Writes to the terminal as the editor does. If this fails, reading also fails.
pub(super) fn write(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
