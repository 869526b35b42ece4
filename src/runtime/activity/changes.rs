//! Notices writes on behalf of all streams that follow records or outputs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::runtime::activity::rechecks::Rechecks;
use crate::runtime::activity::reports::{Report, Reports, WITHOUT_REPORTS};
use crate::store::Store;

/// Wakes all streams when the records, or an output that is followed, were written.
pub(crate) struct Changes {
    /// How often the records were written. Its receivers are also woken for outputs.
    count: Arc<watch::Sender<u64>>,
    /// Without them, the records are checked every [`WITHOUT_REPORTS`].
    reports: Mutex<Reports>,
    records: Arc<Mutex<Records>>,
    /// The outputs that are followed, and by how many streams.
    followed: Mutex<HashMap<PathBuf, usize>>,
}

/// A state of the records and of outputs, to compare with an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    records: u64,
    /// The lengths of outputs, to which agents only append.
    outputs: HashMap<PathBuf, u64>,
}

impl Written {
    pub(crate) fn new(records: u64, outputs: impl IntoIterator<Item = (PathBuf, u64)>) -> Self {
        Self { records, outputs: outputs.into_iter().collect() }
    }

    /// Whether more records had been written.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        self.records > other.records
    }

    /// Whether the records or one of `outputs` were written since. If this is unknown, assumes that they were.
    pub(crate) fn differs(&self, now: &Self, outputs: &[PathBuf]) -> bool {
        let is_same = |path| now.outputs.get(path).is_some_and(|length| self.outputs.get(path) == Some(length));
        self.records != now.records || !outputs.iter().all(is_same)
    }
}

/// The records, as they were at the last check.
struct Records {
    store: Store,
    version: Option<i64>,
    /// Identifies the state directory, which may have been replaced by another one.
    directory: Option<(u64, u64)>,
}

impl Changes {
    /// The store stays open: closing the last connection would write, and wake every stream.
    pub(crate) fn new(store: Store) -> Self {
        let count = Arc::new(watch::channel(0).0);
        let folder = store.dir().path().to_owned();
        let directory = identity(&folder);
        let records = Arc::new(Mutex::new(Records { store, version: None, directory }));
        let (report, reported) = mpsc::channel();
        let mut reports = Reports::new(&lock(&records).store, move |of| drop(report.send(of)));
        let is_watched = reports.watch(&folder);
        let (sender, of_thread) = (Arc::downgrade(&count), Arc::clone(&records));
        std::thread::spawn(move || notice(&reported, is_watched, &sender, &of_thread));
        Self { count, reports: Mutex::new(reports), records, followed: Mutex::default() }
    }

    /// The current state of the records and of `outputs`.
    pub(crate) fn written<'a>(&self, outputs: impl IntoIterator<Item = &'a PathBuf>) -> Written {
        let length = |path: &'a PathBuf| (path.clone(), fs::metadata(path).map_or(0, |output| output.len()));
        Written::new(*self.count.borrow(), outputs.into_iter().map(length))
    }

    pub(crate) fn receiver(&self) -> watch::Receiver<u64> {
        self.look_for_another_directory();
        self.count.subscribe()
    }

    /// A browser reconnects when its view could not be read, so this is when a replaced state directory is noticed.
    fn look_for_another_directory(&self) {
        let (mut reports, mut records) = (lock(&self.reports), lock(&self.records));
        let folder = records.store.dir().path().to_owned();
        let found = identity(&folder);
        if found.is_none() || found == records.directory || !Store::exists(records.store.dir()) {
            return;
        }
        if let Ok(store) = Store::open(&folder) {
            *records = Records { store, version: None, directory: found };
            reports.unwatch(&folder);
            reports.watch(&folder);
            self.count.send_modify(|count| *count += 1);
        }
    }

    /// Follows the outputs `now` for a stream that followed `before` until now.
    pub(crate) fn follow(&self, before: &[PathBuf], now: &[PathBuf]) {
        if before == now {
            return;
        }
        let (mut reports, mut followed) = (lock(&self.reports), lock(&self.followed));
        for path in now {
            let streams = followed.entry(path.clone()).or_default();
            *streams += 1;
            if *streams == 1 {
                // An output that does not exist yet is created together with a record.
                reports.watch(path);
            }
        }
        for path in before {
            if let Some(streams) = followed.get_mut(path) {
                *streams -= 1;
                if *streams == 0 {
                    followed.remove(path);
                    reports.unwatch(path);
                }
            }
        }
    }
}

/// Wakes the streams, as long as their page exists. Without reports, they also look at outputs every [`WITHOUT_REPORTS`].
fn notice(reported: &Receiver<Report>, is_watched: bool, count: &Weak<watch::Sender<u64>>, records: &Mutex<Records>) {
    let mut rechecks = Rechecks::default();
    loop {
        let until_next = || rechecks.next().map(|next| next.saturating_duration_since(Instant::now()));
        let pause = until_next().unwrap_or(if is_watched { Duration::MAX } else { WITHOUT_REPORTS });
        let report = reported.recv_timeout(pause);
        let Some(count) = count.upgrade() else { return };
        let now = Instant::now();
        match report {
            Ok(Report::Records) => rechecks.report(now),
            Ok(Report::File(_) | Report::Gone(_)) => {
                count.send_modify(|_| {});
                continue;
            }
            Err(RecvTimeoutError::Timeout) => drop(rechecks.take_due(now)),
            // The system reports nothing.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(WITHOUT_REPORTS),
        }
        let is_new = was_written(records);
        if is_new || !is_watched && count.receiver_count() > 0 {
            count.send_modify(|count| *count += u64::from(is_new));
        }
    }
}

/// Whether other processes have written records since the last call. If this is unknown, assumes that they have.
fn was_written(records: &Mutex<Records>) -> bool {
    let mut records = lock(records);
    let version = records.store.changes().version_of_others().ok();
    let is_new = version.is_none() || version != records.version;
    records.version = version;
    is_new
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    let known = fs::metadata(folder).ok()?;
    Some((known.dev(), known.ino()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
