//! The system's reports about files. Only this module decides which reports mean that something was written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::store::Store;

/// A change that the system has reported.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Records were written.
    Records,
    /// A watched file, or something in a watched folder, was written or created.
    File(PathBuf),
    /// It was removed or moved.
    Gone(PathBuf),
}

/// How often to check if the system reports nothing to this process: some file systems report nothing, and other programs
/// may use up the available watches.
pub(crate) const WITHOUT_REPORTS: Duration = Duration::from_secs(1);

/// The system's reports about the records and about other files.
#[derive(Debug)]
pub(crate) struct Reports {
    /// `None`: the system reports nothing.
    watcher: Option<RecommendedWatcher>,
}

impl Reports {
    /// Passes reports to `handle`, in a thread of the watcher. Nothing is watched yet.
    pub(crate) fn new(store: &Store, handle: impl Fn(Report) + Send + 'static) -> Self {
        let (own, of_database) = (store.dir().path().to_owned(), store.changes().woken_by());
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            event.iter().flat_map(|event| reports(event, &own, &of_database)).for_each(&handle);
        });
        Self { watcher: watcher.ok() }
    }

    /// Behaves as on a system that reports nothing.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { watcher: None }
    }

    pub(crate) fn are_made(&self) -> bool {
        self.watcher.is_some()
    }

    /// Watches a file, or what is directly in a folder. Returns whether that is possible.
    pub(crate) fn watch(&mut self, path: &Path) -> bool {
        let watched = self.watcher.as_mut().map(|watcher| watcher.watch(path, RecursiveMode::NonRecursive));
        if let Some(Err(error)) = &watched {
            tracing::debug!("{} is not watched: {error}", path.display());
        }
        watched.is_some_and(|watched| watched.is_ok())
    }

    pub(crate) fn unwatch(&mut self, path: &Path) {
        // It may no longer exist.
        let _ = self.watcher.as_mut().map(|watcher| watcher.unwatch(path));
    }
}

/// What an event means. In the state directory `own`, only the database matters. Reads must not wake this process, because it reads
/// when it wakes up.
fn reports(event: &Event, own: &Path, of_database: &[PathBuf]) -> Vec<Report> {
    let report = |path: &PathBuf| match event.kind {
        // Opening the records sets permissions.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => None,
        _ if of_database.contains(path) => Some(Report::Records),
        _ if path.parent() == Some(own) => None,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => Some(Report::Gone(path.clone())),
        _ => Some(Report::File(path.clone())),
    };
    event.paths.iter().filter_map(report).collect()
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, RemoveKind};

    use super::*;

    #[test]
    fn nobody_is_woken_by_what_is_read_or_stands_beside_the_database() {
        let database = [PathBuf::from("/s/db"), PathBuf::from("/s/db-wal")];
        let seen = |kind, path: &str| reports(&Event::new(kind).add_path(path.into()), Path::new("/s"), &database);
        let (made, read) = (EventKind::Create(CreateKind::Any), EventKind::Access(AccessKind::Any));
        let removed = EventKind::Remove(RemoveKind::Any);
        for path in ["/s/db", "/s/db-wal"] {
            assert_eq!([seen(made, path), seen(removed, path)], [[Report::Records], [Report::Records]]);
        }
        for path in ["/s/frames/x", "/p/report"] {
            assert_eq!(seen(made, path), [Report::File(path.into())]);
            assert_eq!(seen(removed, path), [Report::Gone(path.into())]);
        }
        for path in ["/s/db", "/s/db-wal", "/s/db-shm", "/s/frames/x", "/p/report"] {
            assert_eq!(seen(read, path), [], "{path}");
        }
        assert_eq!(seen(made, "/s/db-shm"), []);
    }
}
