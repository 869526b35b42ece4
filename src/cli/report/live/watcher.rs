//! Watches a chain in a separate thread while this process runs it. Neither a slow reader nor a closed terminal delays the
//! chain.

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

/// An update for a watcher.
#[derive(Debug)]
pub(crate) enum WatchUpdate<'a> {
    /// An event that happened before the watch began.
    Before(&'a AgentEvent),
    Event(&'a AgentEvent),
    /// The chain. It is sent after events, and from time to time.
    Chain(&'a Tree),
    /// The last update.
    Last,
}

/// A running watcher.
#[derive(Debug)]
pub(crate) struct ChainWatcher {
    stopper: Stopper,
    thread: JoinHandle<Result<(), CliError>>,
}

impl ChainWatcher {
    /// Starts to watch the chain of `top`. If nothing happens, `see` gets the chain at the interval `look`.
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
            // The thread has ended, and its result says why.
            Err(_) => Err(joined(thread).err().unwrap_or_else(|| CliError::failed("failed to watch the chain"))),
        }
    }

    /// Shows the remaining events. The chain has already run, and its status is reported even if this fails.
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

/// The longest time between two checks. A notification triggers a check earlier.
const LOOK: Duration = Duration::from_millis(500);

/// Starts to print the events of the chain of `top`. If the reader disappears, the chain continues.
pub(crate) fn start(state_dir: &Path, top: FrameId) -> Result<ChainWatcher, CliError> {
    ChainWatcher::start(state_dir, top, LOOK, |seen| match seen {
        WatchUpdate::Event(event) if !output::was_unread() => Ok(print_event(event)?),
        // Another command was responsible for printing earlier events.
        WatchUpdate::Event(_) | WatchUpdate::Before(_) | WatchUpdate::Chain(_) | WatchUpdate::Last => Ok(()),
    })
}
