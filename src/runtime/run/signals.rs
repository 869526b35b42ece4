//! Counts Ctrl-C and similar signals; [`crate::core::attempt::stop_steps`] says what each of them means.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::process::Signal;
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The signals that have asked this program to stop so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signals {
    /// How many signals arrived.
    pub(crate) sent: u32,
    /// Whether the first came from the system, which wants the program to end, and not from a person.
    pub(crate) is_shutdown: bool,
}

impl Signals {
    pub(crate) fn any(self) -> bool {
        self.sent > 0
    }
}

/// How many other programs currently use the terminal of this process.
static LENT: AtomicU32 = AtomicU32::new(0);

/// As long as this lives, Ctrl-C is meant for another program, which uses the terminal.
#[derive(Debug)]
pub(crate) struct LentTerminal(());

impl LentTerminal {
    pub(crate) fn new() -> Self {
        LENT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From now on, writing to a file that may not grow is an error, as on a full disk, and does not end this program (`ulimit
/// -f`). The programs that it starts keep the default behaviour.
pub(crate) fn outlive_full_files() {
    // Nobody reads the flag: a signal that is handled is no reason to die.
    let _ = flag::register(Signal::XFSZ.as_raw(), Arc::default());
}

/// Whether a signal has arrived that no listener has seen yet.
static UNSEEN: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether this program listens for signals.
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Whether a signal has asked this program to stop.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Whether a signal has asked this program to stop.
pub(crate) fn is_stopping() -> bool {
    STOPPING.load(Ordering::Relaxed)
}

/// Whether a signal no longer ends this program by itself.
pub(crate) fn are_handled() -> bool {
    LISTENS.load(Ordering::Relaxed)
}

/// Whether a signal has arrived that no listener has seen, because its thread is busy.
pub(crate) fn is_one_unseen() -> bool {
    UNSEEN.load(Ordering::Relaxed)
}

/// Listens from now on. Without a listener, a signal would end agent-cli and leave its agents running.
pub(crate) fn listen() -> io::Result<watch::Receiver<Signals>> {
    STOPPING.store(false, Ordering::Relaxed);
    let (sender, receiver) = watch::channel(Signals::default());
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    if !LISTENS.swap(true, Ordering::Relaxed) {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            flag::register(signal.as_raw(), Arc::clone(&UNSEEN))?;
        }
    }
    tokio::spawn(async move {
        loop {
            let arrived = tokio::select! {
                _ = interrupt.recv() => Signal::INT,
                _ = terminate.recv() => Signal::TERM,
                _ = hang_up.recv() => Signal::HUP,
            };
            UNSEEN.store(false, Ordering::Relaxed);
            match arrived {
                Signal::INT if LENT.load(Ordering::Relaxed) > 0 => continue,
                Signal::TERM => sender.send_modify(|signals| signals.is_shutdown |= signals.sent == 0),
                // A closed terminal sends several hang-ups, from its shell and from the system: this is not a second request.
                Signal::HUP if sender.borrow().any() => continue,
                _ => {}
            }
            STOPPING.store(true, Ordering::Relaxed);
            sender.send_modify(|signals| signals.sent += 1);
            if sender.is_closed() {
                return;
            }
        }
    });
    Ok(receiver)
}
