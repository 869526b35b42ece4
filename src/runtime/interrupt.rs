//! Ctrl-C and its relatives: the first asks the agents to stop, the second stops them at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::claude::process::Stop;

/// Listens from now on. Without a listener, the signal would end this program and leave its agents running.
///
/// # Errors
///
/// Those of the system.
pub fn listen() -> io::Result<watch::Receiver<Stop>> {
    let (sender, receiver) = watch::channel(Stop::No);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        for level in [Stop::Soon, Stop::Now] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            if sender.send(level).is_err() {
                return;
            }
        }
        // Dropping the sender would tell the receivers that nobody can stop them any more.
        sender.closed().await;
    });
    Ok(receiver)
}
