//! Follows a chain as it runs: sleeps until the system reports that an agent printed or something was recorded.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::core::chain::progress_lines::{self, ChainOutlook};
use crate::core::chain::tree::Tree;
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::activity::chain_events::ChainEvents;
use crate::store::{Lease, Store};

/// Why a [`Follower`] woke up.
#[derive(Debug)]
enum WakeReason {
    Printed(FrameId),
    Recorded,
    Stop,
}

/// Ends the wait of a [`Follower`] from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Stopper(Sender<WakeReason>);

impl Stopper {
    pub(crate) fn stop(&self) {
        // One that has ended already needs no stop.
        let _ = self.0.send(WakeReason::Stop);
    }
}

/// Follows the events of a chain.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    store: &'a Store,
    events: ChainEvents<'a>,
    /// `None`: the system has no notifications to give, so it is looked again every [`FALLBACK`].
    watcher: Option<RecommendedWatcher>,
    frames: Arc<Mutex<HashMap<PathBuf, FrameId>>>,
    watched: HashSet<FrameId>,
    sender: Sender<WakeReason>,
    receiver: Receiver<WakeReason>,
    refreshed: Instant,
    /// When it last woke up.
    woke: Instant,
    is_stopped: bool,
}

/// How often it is looked without any notification: some file systems give none.
const FALLBACK: Duration = Duration::from_secs(1);
/// How long what is printed after something else may wait for more, so that both are read at once.
const GATHER: Duration = Duration::from_millis(40);
/// How often the records are read at most.
const REFRESH: Duration = Duration::from_millis(20);

impl<'a> Follower<'a> {
    /// Of the events that `events` has not handed over yet.
    pub(crate) fn new(store: &'a Store, events: ChainEvents<'a>) -> Self {
        let (sender, receiver) = channel();
        let frames = Arc::new(Mutex::new(HashMap::new()));
        let watcher = watcher(store, sender.clone(), Arc::clone(&frames));
        let (watched, refreshed, woke) = (HashSet::new(), Instant::now(), Instant::now());
        let mut follower =
            Self { store, events, watcher, frames, watched, sender, receiver, refreshed, woke, is_stopped: false };
        follower.watch_outputs();
        follower
    }

    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }

    /// Whether somebody wanted it to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The chain as it was recorded when it last changed.
    pub(crate) fn tree(&self) -> &Tree {
        self.events.tree()
    }

    /// What may still happen.
    pub(crate) fn outlook(&self) -> ChainOutlook {
        // What cannot be read is not known to run.
        let runs = |frame| Lease::is_held(self.store.dir(), frame).unwrap_or(false);
        progress_lines::outlook(self.tree(), runs, Timestamp::now())
    }

    /// The next event; `None`: there is no more at present.
    pub(crate) fn next(&mut self) -> Result<Option<AgentEvent>, RuntimeError> {
        self.events.next(Some(now()))
    }

    /// Waits until there may be something new, at most so long.
    pub(crate) fn wait(&mut self, longest: Duration) -> Result<(), RuntimeError> {
        let mut printed = HashSet::new();
        let mut is_due = false;
        let longest = longest.min(FALLBACK.saturating_sub(self.refreshed.elapsed()).max(Duration::from_millis(1)));
        let first = self.receiver.recv_timeout(longest);
        // Many agents print all the time. Whoever looks at every line by itself is busy with nothing else.
        if !matches!(first, Ok(WakeReason::Stop) | Err(_))
            && let Some(early) = GATHER.checked_sub(self.woke.elapsed())
        {
            std::thread::sleep(early);
        }
        self.woke = Instant::now();
        if let Ok(news) = &first {
            self.take(news, &mut printed, &mut is_due);
        }
        while let Ok(news) = self.receiver.try_recv() {
            self.take(&news, &mut printed, &mut is_due);
        }
        if is_due && let Some(early) = REFRESH.checked_sub(self.refreshed.elapsed()) {
            std::thread::sleep(early);
        }
        if matches!(first, Err(RecvTimeoutError::Timeout)) && self.refreshed.elapsed() >= FALLBACK {
            is_due = true;
        }
        if is_due || self.is_stopped { self.refresh() } else { self.events.printed(&printed) }
    }

    /// Reads what was recorded since.
    pub(crate) fn refresh(&mut self) -> Result<(), RuntimeError> {
        self.refreshed = Instant::now();
        self.events.refresh(Some(now()))?;
        self.watch_outputs();
        Ok(())
    }

    fn take(&mut self, news: &WakeReason, printed: &mut HashSet<FrameId>, is_due: &mut bool) {
        match news {
            WakeReason::Printed(frame) => drop(printed.insert(*frame)),
            WakeReason::Recorded => *is_due = true,
            WakeReason::Stop => self.is_stopped = true,
        }
    }

    /// Watches what agents print to that have begun since. An output is made before its first attempt is recorded.
    fn watch_outputs(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for (frame, path) in self.events.outputs() {
            if self.watched.contains(&frame) || !path.exists() {
                continue;
            }
            self.frames.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), frame);
            // Where it fails, the fallback is left.
            let _ = watcher.watch(&path, RecursiveMode::NonRecursive);
            self.watched.insert(frame);
        }
    }
}

/// As precise as what is recorded.
fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap_or(Timestamp::MAX)
}

fn watcher(
    store: &Store,
    sender: Sender<WakeReason>,
    frames: Arc<Mutex<HashMap<PathBuf, FrameId>>>,
) -> Option<RecommendedWatcher> {
    let woken_by = store.changes().woken_by();
    let handle = move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        // To read a file is an event as well.
        if !matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_)) {
            return;
        }
        for path in &event.paths {
            let frame = frames.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
            let news = match frame {
                Some(frame) => WakeReason::Printed(frame),
                None if woken_by.contains(path) => WakeReason::Recorded,
                None => continue,
            };
            // Nobody follows any more.
            let _ = sender.send(news);
        }
    };
    let mut watcher = notify::recommended_watcher(handle).ok()?;
    watcher.watch(store.dir().path(), RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}
