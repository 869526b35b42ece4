//! Follows a chain while it runs: sleeps until the system reports that an agent has printed something or a record has changed.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::core::chain::progress_lines::{self, ChainOutlook};
use crate::core::chain::tree::Tree;
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::local_zone::local_zone;
use crate::runtime::RuntimeError;
use crate::runtime::activity::chain_events::ChainEvents;
use crate::runtime::activity::reports::{Report, Reports, WITHOUT_REPORTS};
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
        // A follower that has ended needs no stop.
        let _ = self.0.send(WakeReason::Stop);
    }
}

/// Follows the events of a chain.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    store: &'a Store,
    events: ChainEvents<'a>,
    /// Without them, the chain is checked every [`WITHOUT_REPORTS`].
    reports: Reports,
    frames: Arc<Mutex<HashMap<PathBuf, FrameId>>>,
    watched: HashSet<FrameId>,
    sender: Sender<WakeReason>,
    receiver: Receiver<WakeReason>,
    refreshed: Instant,
    /// When it last woke up.
    woke: Instant,
    is_stopped: bool,
}

/// How long to wait for further output after a notification, so that it is all read at once.
const GATHER: Duration = Duration::from_millis(40);
/// The shortest interval between two reads of the records.
const REFRESH: Duration = Duration::from_millis(20);

impl<'a> Follower<'a> {
    /// Follows the events that `events` has not returned yet.
    pub(crate) fn new(store: &'a Store, events: ChainEvents<'a>) -> Self {
        let (sender, receiver) = channel();
        let frames = Arc::new(Mutex::new(HashMap::new()));
        let reports = reports(store, sender.clone(), Arc::clone(&frames));
        let (watched, refreshed, woke) = (HashSet::new(), Instant::now(), Instant::now());
        let mut follower =
            Self { store, events, reports, frames, watched, sender, receiver, refreshed, woke, is_stopped: false };
        follower.watch_outputs();
        follower
    }

    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The chain as recorded at the last change.
    pub(crate) fn tree(&self) -> &Tree {
        self.events.tree()
    }

    /// What can still happen.
    pub(crate) fn outlook(&self) -> ChainOutlook {
        // If the lease cannot be read, assume that the frame is not running.
        let runs = |frame| Lease::is_held(self.store.dir(), frame).unwrap_or(false);
        progress_lines::outlook(self.tree(), runs, Timestamp::now(), &local_zone())
    }

    /// The next event; `None`: there is none at present.
    pub(crate) fn next(&mut self) -> Result<Option<AgentEvent>, RuntimeError> {
        self.events.next(Some(now()))
    }

    /// Waits for up to `longest` until there may be a new event.
    pub(crate) fn wait(&mut self, longest: Duration) -> Result<(), RuntimeError> {
        let mut printed = HashSet::new();
        let mut is_due = false;
        let longest =
            longest.min(WITHOUT_REPORTS.saturating_sub(self.refreshed.elapsed()).max(Duration::from_millis(1)));
        let first = self.receiver.recv_timeout(longest);
        // Many agents print all the time. Waking for every line would keep this process busy.
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
        // Agents that print all the time do not delay it.
        is_due |= self.refreshed.elapsed() >= WITHOUT_REPORTS;
        if is_due || self.is_stopped { self.refresh() } else { self.events.printed(&printed) }
    }

    /// Reads new records.
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

    /// Watches the output of agents that have started since. An output file is created before its first attempt is recorded.
    fn watch_outputs(&mut self) {
        if !self.reports.are_made() {
            return;
        }
        for (frame, path) in self.events.outputs() {
            if self.watched.contains(&frame) || !path.exists() {
                continue;
            }
            self.frames.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), frame);
            // If this fails, the periodic checks remain.
            self.reports.watch(&path);
            self.watched.insert(frame);
        }
    }
}

/// Truncated to the resolution of the records.
fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap_or(Timestamp::MAX)
}

fn reports(store: &Store, sender: Sender<WakeReason>, frames: Arc<Mutex<HashMap<PathBuf, FrameId>>>) -> Reports {
    let mut reports = Reports::new(store, move |report| {
        let known = |path| frames.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        let news = match report {
            Report::Records => Some(WakeReason::Recorded),
            Report::File(path) => known(&path).map(WakeReason::Printed),
            Report::Gone(_) => None,
        };
        // The follower may have been dropped.
        let _ = news.map(|news| sender.send(news));
    });
    reports.watch(store.dir().path());
    reports
}
