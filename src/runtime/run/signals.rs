//! Counts Ctrl-C and similar signals; [`crate::core::attempt::stopping`] says what each of them means.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Listens from now on. Without a listener, a signal would end agent-cli and leave its agents running.
pub(crate) fn listen() -> io::Result<watch::Receiver<u32>> {
    let (sender, receiver) = watch::channel(0);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                // A closed terminal sends several hang-ups, by its shell and by the system: nobody has asked again.
                _ = hang_up.recv() => if *sender.borrow() > 0 { continue },
            }
            sender.send_modify(|signals| *signals += 1);
            if sender.is_closed() {
                return;
            }
        }
    });
    Ok(receiver)
}
