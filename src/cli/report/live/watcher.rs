//! Watches a chain in a separate thread while this process drives it: neither a slow reader nor a closed terminal delays it.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cli::error::CliError;
use crate::cli::output::{self, print_event};
use crate::core::chain::tree::Tree;
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::runtime::activity::TEXT;
use crate::runtime::activity::chain_events::ChainEvents;
use crate::runtime::activity::follower::{Follower, Stopper};
use crate::store::Store;

/// What a watcher is shown.
#[derive(Debug)]
pub(crate) enum WatchUpdate<'a> {
    /// An event that happened before it began to watch.
    Before(&'a AgentEvent),
    Event(&'a AgentEvent),
    /// The chain, after the events above and from time to time.
    Chain(&'a Tree),
    /// There is nothing more to see.
    Last,
}

/// A watcher that runs.
#[derive(Debug)]
pub(crate) struct ChainWatcher {
    stopper: Stopper,
    thread: JoinHandle<Result<(), CliError>>,
}

impl ChainWatcher {
    /// Watches the chain of `top`. `look`: how often `see` is shown the chain if nothing happens.
    pub(crate) fn start(
        state_dir: &Path,
        top: FrameId,
        look: Duration,
        mut see: impl FnMut(WatchUpdate<'_>) -> Result<(), CliError> + Send + 'static,
    ) -> Result<Self, CliError> {
        let (sender, ready) = std::sync::mpsc::channel();
        let state_dir = state_dir.to_owned();
        let thread = std::thread::spawn(move || {
            let store = Store::open(&state_dir)?;
            let mut events = ChainEvents::new(&store, top, true, Some(TEXT))?;
            while let Some(event) = events.next(None)? {
                see(WatchUpdate::Before(&event))?;
            }
            let mut follower = Follower::new(&store, events);
            let _ = sender.send(follower.stopper());
            follow(&mut follower, look, see)
        });
        match ready.recv() {
            Ok(stopper) => Ok(Self { stopper, thread }),
            // It has ended, and reports why.
            Err(_) => Err(joined(thread).err().unwrap_or_else(|| CliError::failed("failed to watch the chain"))),
        }
    }

    /// Shows the remaining events. The chain has been driven, and its status is reported whether or not this works.
    pub(crate) fn finish(self) {
        self.stopper.stop();
        if let Err(error) = joined(self.thread) {
            output::warn(&format!("not every event was shown: {error}"));
        }
    }
}

fn joined(thread: JoinHandle<Result<(), CliError>>) -> Result<(), CliError> {
    thread.join().unwrap_or_else(|_| Err(CliError::failed("failed to watch the chain")))
}

fn follow(
    follower: &mut Follower<'_>,
    look: Duration,
    mut see: impl FnMut(WatchUpdate<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let is_last = follower.is_stopped();
        while let Some(event) = follower.next()? {
            see(WatchUpdate::Event(&event))?;
        }
        if is_last {
            return see(WatchUpdate::Last);
        }
        see(WatchUpdate::Chain(follower.tree()))?;
        follower.wait(look)?;
    }
}

/// Notifications arrive earlier.
const LOOK: Duration = Duration::from_millis(500);

/// Prints events in the chain of `top` from now on. If the reader disappears, the chain continues.
pub(crate) fn start(state_dir: &Path, top: FrameId) -> Result<ChainWatcher, CliError> {
    ChainWatcher::start(state_dir, top, LOOK, |seen| match seen {
        WatchUpdate::Event(event) if !output::was_unread() => Ok(print_event(event)?),
        // Earlier events were for another command to print.
        WatchUpdate::Event(_) | WatchUpdate::Before(_) | WatchUpdate::Chain(_) | WatchUpdate::Last => Ok(()),
    })
}
