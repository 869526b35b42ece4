//! Waits for the events of the dashboard: keys, changes of the records, signals, and time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc as threads;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEvent, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::runtime::run::unattended::change_watch::ChangeWatch;
use crate::store::{Store, StoreError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// There are keys to read.
    Keys,
    /// The records may have changed.
    Changed,
    /// It is time to look for changes.
    Look,
    /// The screen must be redrawn: the terminal has another size, or there is a new message.
    Draw,
    /// The process was suspended and has been continued.
    Continued,
    /// A signal asks the program to end.
    Stop,
    /// The terminal was closed.
    Closed,
    /// The watch that runs with the dashboard has ended.
    Over,
}

pub(super) struct Events {
    runtime: Runtime,
    keyboard: Keyboard,
    changes: ChangeWatch,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    resized: Signal,
    continued: Signal,
    said: Arc<Notify>,
    over: Arc<Notify>,
}

impl Events {
    /// `said` announces a new message. `over` announces the end of the watch that runs with the dashboard.
    pub(super) fn new(store: &Store, said: Arc<Notify>, over: Arc<Notify>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let listen = |kind| signal(kind);
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let (hang_up, resized) = (listen(SignalKind::hangup())?, listen(SignalKind::window_change())?);
        let continued = listen(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        drop(entered);
        let (keyboard, changes) = (Keyboard::start(), ChangeWatch::new(store));
        Ok(Self { runtime, keyboard, changes, interrupt, terminate, hang_up, resized, continued, said, over })
    }

    /// Waits for the next event, at most until `look`. `with_changes`: whether to report changes of the records.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the records no longer exist or cannot be read.
    pub(super) fn next(&mut self, store: &Store, look: Instant, with_changes: bool) -> Result<Event, StoreError> {
        let Self { runtime, keyboard, changes, interrupt, terminate, hang_up, resized, continued, said, over } = self;
        runtime.block_on(async {
            Ok(tokio::select! {
                biased;
                () = over.notified() => Event::Over,
                _ = interrupt.recv() => Event::Stop,
                _ = terminate.recv() => Event::Stop,
                _ = hang_up.recv() => Event::Stop,
                _ = continued.recv() => Event::Continued,
                is_open = keyboard.next() => if is_open { Event::Keys } else { Event::Closed },
                _ = resized.recv() => Event::Draw,
                () = said.notified() => Event::Draw,
                changed = changes.next(store), if with_changes => return changed.map(|()| Event::Changed),
                () = tokio::time::sleep_until(look) => Event::Look,
            })
        })
    }

    /// Forgets signals that were meant for the program that was using the terminal.
    pub(super) fn forget_interrupts(&mut self) {
        let Self { runtime, interrupt, continued, .. } = self;
        runtime.block_on(async {
            for signal in [interrupt, continued] {
                // A signal that has arrived is already pending.
                let _ = tokio::time::timeout(Duration::from_millis(1), signal.recv()).await;
            }
        });
    }
}

/// Waits for keys in a separate thread, because some systems do not report the readiness of terminals in any other way. The
/// thread never reads, so that dialogues and other programs get the input that is meant for them.
struct Keyboard {
    wait: threads::Sender<()>,
    ready: mpsc::UnboundedReceiver<bool>,
    is_waiting: bool,
}

impl Keyboard {
    fn start() -> Self {
        let (wait, waits) = threads::channel();
        let (tell, ready) = mpsc::unbounded_channel();
        thread::spawn(move || {
            while waits.recv().is_ok() {
                if tell.send(is_open(None)).is_err() {
                    return;
                }
            }
        });
        Self { wait, ready, is_waiting: false }
    }

    /// Waits for keys. `false` if the terminal was closed.
    async fn next(&mut self) -> bool {
        if !self.is_waiting {
            self.is_waiting = true;
            let _ = self.wait.send(());
        }
        let is_open = self.ready.recv().await;
        self.is_waiting = false;
        is_open.unwrap_or(false)
    }
}

/// How the system reports a closed terminal.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// Waits for input, at most this long. Returns whether the terminal is still there.
fn is_open(longest: Option<&Timespec>) -> bool {
    let input = io::stdin();
    loop {
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut polled, longest) {
            Ok(_) => return !polled[0].revents().intersects(GONE),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Returns the next key that has arrived. Pasted text does not count as keys. Fails if the terminal was closed: the library would
/// read its end forever.
pub(super) fn key() -> io::Result<Option<KeyEvent>> {
    loop {
        if !is_open(Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(None);
        }
        match event::read()? {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => return Ok(Some(key)),
            _ => {}
        }
    }
}
