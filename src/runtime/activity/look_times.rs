//! When to look for writes of other processes: soon after the system has reported one, and otherwise at intervals, because not
//! every file system reports, and no process should be woken late by a lost report.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::runtime::activity::reports::{Report, Reports};
use crate::store::Store;

/// The system's reports about the records of a state directory. All runs of a process share them, because a user has few such
/// watches.
#[derive(Debug)]
pub(crate) struct RecordReports {
    directory: PathBuf,
    count: Arc<watch::Sender<u64>>,
    /// Watches until it is dropped.
    _reports: Reports,
}

static SHARED: Mutex<Weak<RecordReports>> = Mutex::new(Weak::new());

impl RecordReports {
    /// The reports of this process about these records.
    pub(crate) fn of_process(store: &Store) -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reports) = shared.upgrade().filter(|reports| reports.directory == store.dir().path()) {
            return reports;
        }
        let count = Arc::new(watch::channel(0).0);
        let sender = Arc::clone(&count);
        let mut reports = Reports::new(store, move |report| {
            if report == Report::Records {
                sender.send_modify(|count| *count += 1);
            }
        });
        reports.watch(store.dir().path());
        let made = Arc::new(Self { directory: store.dir().path().to_owned(), count, _reports: reports });
        *shared = Arc::downgrade(&made);
        made
    }

    /// Changes with every report from now on.
    pub(crate) fn receiver(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

/// How long a write may take to become visible after the system has reported it.
const VISIBLE: Duration = Duration::from_millis(50);
/// How often to look in that time.
const SOON: Duration = Duration::from_millis(3);

/// Decides when to look next.
#[derive(Debug)]
pub(crate) struct LookTimes {
    /// Without reports, and between two writes that are noticed.
    interval: Duration,
    reported: Option<Instant>,
    noticed: Option<Instant>,
}

impl LookTimes {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, reported: None, noticed: None }
    }

    /// The system has reported a write.
    pub(crate) fn report(&mut self, now: Instant) {
        self.reported = Some(now);
    }

    /// A write was found.
    pub(crate) fn notice(&mut self, now: Instant) {
        (self.reported, self.noticed) = (None, Some(now));
    }

    /// Whether a report would not bring the next look forward.
    pub(crate) fn is_soon(&self, now: Instant) -> bool {
        self.reported.is_some_and(|at| now.duration_since(at) < VISIBLE)
    }

    /// How long to wait until the next look. Writes of others do not keep a process busier than the interval does.
    pub(crate) fn pause(&self, now: Instant) -> Duration {
        if !self.is_soon(now) {
            return self.interval;
        }
        let since = self.noticed.map_or(self.interval, |at| now.duration_since(at));
        self.interval.saturating_sub(since).max(SOON.min(self.interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(40);

    #[test]
    fn a_report_brings_the_next_look_forward_until_the_write_is_found() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut times = LookTimes::new(INTERVAL);
        assert_eq!(times.pause(start), INTERVAL);
        times.report(at(0));
        assert_eq!([times.pause(at(0)), times.pause(at(49)), times.pause(at(50))], [SOON, SOON, INTERVAL]);
        times.report(at(60));
        times.notice(at(62));
        assert_eq!(times.pause(at(62)), INTERVAL);
        times.report(at(72));
        assert_eq!(times.pause(at(72)), Duration::from_millis(30), "a process that writes all the time");
        assert_eq!(times.pause(at(105)), SOON);
    }

    #[test]
    fn no_pause_is_longer_than_the_interval() {
        let start = Instant::now();
        for interval in [Duration::ZERO, Duration::from_millis(1), INTERVAL] {
            let mut times = LookTimes::new(interval);
            times.notice(start);
            times.report(start);
            for millis in 0..100 {
                assert!(times.pause(start + Duration::from_millis(millis)) <= interval);
            }
        }
    }

    #[test]
    fn the_runs_of_a_process_share_the_reports_of_a_directory() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, other) = (Store::open(folder.path()).unwrap(), Store::open(other.path()).unwrap());
        let first = RecordReports::of_process(&store);
        assert!(Arc::ptr_eq(&first, &RecordReports::of_process(&store)));
        assert!(!Arc::ptr_eq(&first, &RecordReports::of_process(&other)));
    }
}
