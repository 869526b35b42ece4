//! Notices that something was written, for all who follow it at once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use crate::store::Store;

/// Counts what was written to the records, and to the outputs that are followed.
pub(crate) struct Changes {
    count: Arc<watch::Sender<u64>>,
    /// `None`: the system watches nothing, so the records are checked every [`FALLBACK`].
    watcher: Mutex<Option<RecommendedWatcher>>,
    /// The outputs that are followed, and by how many streams.
    followed: Mutex<HashMap<PathBuf, usize>>,
}

const FALLBACK: Duration = Duration::from_secs(1);

impl Changes {
    /// The store stays open: the last one that closes it would write, and wake everything.
    pub(crate) fn new(store: Store) -> Self {
        let (count, woken_by) = (Arc::new(watch::channel(0).0), store.changes().woken_by());
        let folder = store.dir().path().to_owned();
        let records = Arc::new(Mutex::new((store, None)));
        let (sender, of_watcher) = (Arc::clone(&count), Arc::clone(&records));
        let handle = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            // Reading a file causes an event, too.
            if !matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_) | EventKind::Remove(_)) {
                return;
            }
            let is_of_records = |path: &PathBuf| path.starts_with(&folder) && path.parent() == Some(&folder);
            let is_output = event.paths.iter().any(|path| !is_of_records(path));
            if is_output || event.paths.iter().any(|path| woken_by.contains(path)) && was_written(&of_watcher) {
                sender.send_modify(|count| *count += 1);
            }
        };
        let watcher = notify::recommended_watcher(handle).ok().and_then(|mut watcher| {
            let dir = lock(&records).0.dir().path().to_owned();
            watcher.watch(&dir, RecursiveMode::NonRecursive).ok().map(|()| watcher)
        });
        if watcher.is_none() {
            let sender = Arc::downgrade(&count);
            std::thread::spawn(move || {
                while let Some(sender) = sender.upgrade() {
                    if was_written(&records) || sender.receiver_count() > 0 {
                        sender.send_modify(|count| *count += 1);
                    }
                    drop(sender);
                    std::thread::sleep(FALLBACK);
                }
            });
        }
        Self { count, watcher: Mutex::new(watcher), followed: Mutex::default() }
    }

    pub(crate) fn count(&self) -> u64 {
        *self.count.borrow()
    }

    pub(crate) fn receiver(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Follows the outputs `now` for a stream that has followed others `before`.
    pub(crate) fn follow(&self, before: &[PathBuf], now: &[PathBuf]) {
        if before == now {
            return;
        }
        let (mut watcher, mut followed) = (lock(&self.watcher), lock(&self.followed));
        for path in now {
            let streams = followed.entry(path.clone()).or_default();
            *streams += 1;
            if let (1, Some(watcher)) = (*streams, watcher.as_mut()) {
                // An output that does not exist yet is created together with a record.
                let _ = watcher.watch(path, RecursiveMode::NonRecursive);
            }
        }
        for path in before {
            if let Some(streams) = followed.get_mut(path) {
                *streams -= 1;
                if *streams == 0 {
                    followed.remove(path);
                    // It may have been removed.
                    let _ = watcher.as_mut().map(|watcher| watcher.unwatch(path));
                }
            }
        }
    }
}

/// Whether other processes have written records since the last call. If that cannot be told, they have.
fn was_written(records: &Mutex<(Store, Option<i64>)>) -> bool {
    let mut records = lock(records);
    let version = records.0.changes().version_of_others().ok();
    let is_new = version.is_none() || version != records.1;
    records.1 = version;
    is_new
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
