//! Ctrl-C and its relatives, counted: what each of them means, [`crate::core::attempt::stopping`] says.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Listens from now on. Without a listener, the signal would end this program and leave its agents running.
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
                // A terminal that is closed hangs up more than once, by its shell and by the system: nobody has asked again.
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
