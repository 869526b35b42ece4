//! The events of a chain on standard output while it runs, for `--stream`.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cli::error::CliError;
use crate::cli::output::{self, print_json};
use crate::core::id::FrameId;
use crate::runtime::activity::TEXT;
use crate::runtime::activity::chain_events::ChainEvents;
use crate::runtime::activity::watch::{Follower, Stopper};
use crate::store::Store;

/// Prints events in a thread of its own, so that neither a slow reader nor a closed one holds the chain up.
#[derive(Debug)]
pub(crate) struct Stream {
    stopper: Stopper,
    thread: JoinHandle<Result<(), CliError>>,
}

/// A notification comes earlier.
const LOOK: Duration = Duration::from_millis(500);

impl Stream {
    /// Prints what happens from now on in the chain of `top`.
    pub(crate) fn start(state_dir: &Path, top: FrameId) -> Result<Self, CliError> {
        let (sender, ready) = std::sync::mpsc::channel();
        let state_dir = state_dir.to_owned();
        let thread = std::thread::spawn(move || {
            let store = Store::open(&state_dir)?;
            let mut events = ChainEvents::new(&store, top, true, Some(TEXT))?;
            // What happened before was another command's to print.
            while events.next(None)?.is_some() {}
            let mut follower = Follower::new(&store, events);
            let _ = sender.send(follower.stopper());
            follow(&mut follower)
        });
        match ready.recv() {
            Ok(stopper) => Ok(Self { stopper, thread }),
            // It has ended, and says why.
            Err(_) => Err(joined(thread).err().unwrap_or_else(|| CliError::failed("failed to read events"))),
        }
    }

    /// Prints what is left. The chain has been driven, and whatever comes of it is reported whether or not this worked.
    pub(crate) fn finish(self) {
        self.stopper.stop();
        if let Err(error) = joined(self.thread) {
            output::warn(&format!("the events on standard output are incomplete: {error}"));
        }
    }
}

fn joined(thread: JoinHandle<Result<(), CliError>>) -> Result<(), CliError> {
    thread.join().unwrap_or_else(|_| Err(CliError::failed("failed to print events")))
}

fn follow(follower: &mut Follower<'_>) -> Result<(), CliError> {
    loop {
        let is_last = follower.is_stopped();
        while let Some(event) = follower.next()? {
            if !output::was_unread() {
                print_json(&event)?;
            }
        }
        if is_last {
            return Ok(());
        }
        follower.wait(LOOK)?;
    }
}
