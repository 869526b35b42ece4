//! Notices changes of the database and of files that agents wait for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::store::StateDir;

/// Watches directories, not files: a file may not exist yet, and may be replaced.
pub(crate) struct Changes {
    watcher: RecommendedWatcher,
    changed: Arc<Notify>,
    watched: HashSet<PathBuf>,
}

impl Changes {
    /// Of the database in `dir`, for a start.
    pub(crate) fn of(dir: &StateDir) -> notify::Result<Self> {
        let changed = Arc::new(Notify::new());
        let own = dir.path().to_owned();
        let of_database = [dir.database(), dir.database_log()];
        let notice = Arc::clone(&changed);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| matters(&event, &own, &of_database)) {
                notice.notify_one();
            }
        })?;
        watcher.watch(dir.path(), RecursiveMode::NonRecursive)?;
        Ok(Self { watcher, changed, watched: HashSet::from([dir.path().to_owned()]) })
    }

    /// Also watches for these files, and no longer for others. What the system cannot watch is found by looking.
    pub(crate) fn watch_for(&mut self, dir: &StateDir, files: &[PathBuf]) {
        let folders = files.iter().filter_map(|file| nearest_folder(file)).map(Path::to_owned);
        let wanted: HashSet<PathBuf> = folders.chain([dir.path().to_owned()]).collect();
        for folder in self.watched.difference(&wanted) {
            // It may be gone.
            let _ = self.watcher.unwatch(folder);
        }
        for folder in wanted.difference(&self.watched) {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::debug!("{} is not watched: {error}", folder.display());
            }
            // It may have changed since it was looked at.
            self.changed.notify_one();
        }
        self.watched = wanted;
    }

    /// Returns after a change, perhaps one that was made before this was called.
    pub(crate) async fn next(&self) {
        self.changed.notified().await;
    }
}

/// Whether something was changed that somebody may wait for. In the state directory `own`, that is the database. Nobody is woken
/// by what is read: whoever wakes up reads.
fn matters(event: &Event, own: &Path, of_database: &[PathBuf]) -> bool {
    let is_of_others = |path: &PathBuf| path.parent() != Some(own) || of_database.contains(path);
    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_of_others)
}

/// The folder that changes when `file` or one of the folders above it is made.
fn nearest_folder(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_file_that_is_waited_for_is_noticed_when_it_is_made() {
        let (state, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = StateDir::new(state.path()).unwrap();
        let mut changes = Changes::of(&dir).unwrap();
        // Its folder does not exist either.
        let file = project.path().join("out/report");
        let noticed =
            async |changes: &Changes| tokio::time::timeout(Duration::from_secs(60), changes.next()).await.is_ok();
        changes.watch_for(&dir, std::slice::from_ref(&file));
        assert!(noticed(&changes).await, "what may have changed before");
        fs::create_dir(project.path().join("out")).unwrap();
        assert!(noticed(&changes).await, "the folder");
        changes.watch_for(&dir, std::slice::from_ref(&file));
        assert!(noticed(&changes).await, "what may have changed before");
        fs::write(&file, "").unwrap();
        assert!(noticed(&changes).await, "the file");
        fs::write(dir.database(), "").unwrap();
        assert!(noticed(&changes).await, "the database");
    }

    #[test]
    fn nobody_is_woken_by_what_is_read_or_stands_beside_the_database() {
        use notify::event::{AccessKind, CreateKind};
        let database = [PathBuf::from("/s/db"), PathBuf::from("/s/db-wal")];
        let matters = |kind, path: &str| matters(&Event::new(kind).add_path(path.into()), Path::new("/s"), &database);
        let (made, read) = (EventKind::Create(CreateKind::Any), EventKind::Access(AccessKind::Any));
        for path in ["/s/db", "/s/db-wal", "/s/frames/x", "/p/report"] {
            assert!(matters(made, path) && !matters(read, path), "{path}");
        }
        assert!(!matters(made, "/s/db-shm") && !matters(read, "/s/db-shm"));
    }

    #[test]
    fn the_folder_that_changes_first_is_the_nearest_that_exists() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(nearest_folder(&temp.path().join("a/b/c")), Some(temp.path()));
        // A folder that is waited for changes the one above it.
        assert_eq!(nearest_folder(temp.path()), temp.path().parent());
    }
}
