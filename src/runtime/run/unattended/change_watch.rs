//! Notices changes of the database and of files that agents wait for.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::store::{StateDir, Store};

/// How often to check if the system watches nothing for this process.
const LOOK: Duration = Duration::from_secs(1);

/// Watches directories, not files: a file may not exist yet, and may be replaced.
pub(crate) struct ChangeWatch {
    /// `None`: the system watches nothing.
    watcher: Option<RecommendedWatcher>,
    changed: Arc<Notify>,
    /// What is watched. A folder that is removed and created again is a different one.
    watched: HashMap<PathBuf, Identity>,
    /// The watched folders that were removed or moved since. A new folder may have the same number.
    gone: Arc<Mutex<HashSet<PathBuf>>>,
    /// Whether a folder that should be watched is not.
    misses_some: bool,
}

/// Identifies a folder: its device and its number there.
type Identity = (u64, u64);

impl ChangeWatch {
    /// Watches the records at first.
    pub(crate) fn new(store: &Store) -> Self {
        let changed = Arc::new(Notify::new());
        let (dir, of_database) = (store.dir(), store.changes().woken_by());
        let own = dir.path().to_owned();
        let gone = Arc::<Mutex<HashSet<PathBuf>>>::default();
        let (notice, note_gone) = (Arc::clone(&changed), Arc::clone(&gone));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            if matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))) {
                note_gone.lock().unwrap_or_else(PoisonError::into_inner).extend(event.paths.iter().cloned());
            }
            if matters(&event, &own, &of_database) {
                notice.notify_one();
            }
        });
        let mut changes = Self { watcher: watcher.ok(), changed, watched: HashMap::new(), gone, misses_some: false };
        changes.watch_for(dir, &[]);
        changes
    }

    /// Whether the system reports every change to this process. Other programs may use up the available watches.
    pub(crate) fn sees_all(&self) -> bool {
        self.watcher.is_some() && !self.misses_some
    }

    /// Also watches for these files, and no longer for others. Changes that the system cannot report are found by checking.
    pub(crate) fn watch_for(&mut self, dir: &StateDir, files: &[PathBuf]) {
        let Some(watcher) = &mut self.watcher else { return };
        let folders = files.iter().filter_map(|file| nearest_folder(file));
        let wanted: HashMap<PathBuf, Identity> =
            folders.chain([dir.path()]).filter_map(|folder| Some((folder.to_owned(), identity(folder)?))).collect();
        let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
        self.watched.retain(|folder, known| {
            let is_wanted = wanted.get(folder) == Some(known) && !gone.contains(folder);
            if !is_wanted {
                // It may no longer exist.
                let _ = watcher.unwatch(folder);
            }
            is_wanted
        });
        self.misses_some = false;
        for (folder, identity) in wanted {
            if self.watched.contains_key(&folder) {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder, identity);
                    // It may have changed since it was checked.
                    self.changed.notify_one();
                }
                Err(error) => {
                    tracing::debug!("{} is not watched: {error}", folder.display());
                    self.misses_some = true;
                }
            }
        }
    }

    /// Returns after a change, perhaps one that was made before this was called. If something is not watched, after a second.
    pub(crate) async fn next(&self) {
        if self.sees_all() {
            self.changed.notified().await;
        } else {
            let _ = tokio::time::timeout(LOOK, self.changed.notified()).await;
        }
    }
}

fn identity(folder: &Path) -> Option<Identity> {
    let known = fs::metadata(folder).ok()?;
    Some((known.dev(), known.ino()))
}

/// Whether the change may matter to a waiting agent. In the state directory `own`, only the database matters. Reads must not
/// wake this process, because it reads when it wakes up.
fn matters(event: &Event, own: &Path, of_database: &[PathBuf]) -> bool {
    let is_of_others = |path: &PathBuf| path.parent() != Some(own) || of_database.contains(path);
    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_of_others)
}

/// The folder that changes when `file` or one of the folders above it is created.
fn nearest_folder(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_waited_for_is_noticed_when_it_is_made() {
        let (state, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(state.path()).unwrap();
        let dir = store.dir();
        let mut changes = ChangeWatch::new(&store);
        // Its folder does not exist either.
        let file = project.path().join("out/report");
        let noticed =
            async |changes: &ChangeWatch| tokio::time::timeout(Duration::from_secs(60), changes.next()).await.is_ok();
        changes.watch_for(dir, std::slice::from_ref(&file));
        assert!(noticed(&changes).await, "what may have changed before");
        fs::create_dir(project.path().join("out")).unwrap();
        assert!(noticed(&changes).await, "the folder");
        changes.watch_for(dir, std::slice::from_ref(&file));
        assert!(noticed(&changes).await, "what may have changed before");
        fs::write(&file, "").unwrap();
        assert!(noticed(&changes).await, "the file");
        store.root();
        assert!(noticed(&changes).await, "the database");
    }

    #[tokio::test]
    async fn a_folder_that_was_removed_and_made_again_is_watched_again() {
        let (state, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(state.path()).unwrap();
        let dir = store.dir();
        let folder = project.path().join("out");
        fs::create_dir(&folder).unwrap();
        let mut changes = ChangeWatch::new(&store);
        let files = [folder.join("report")];
        changes.watch_for(dir, &files);
        for removed in [false, true] {
            if removed {
                fs::remove_dir_all(&folder).unwrap();
            } else {
                fs::rename(&folder, project.path().join("old")).unwrap();
            }
            fs::create_dir(&folder).unwrap();
            let is_watched_anew = async |changes: &mut ChangeWatch| {
                changes.next().await;
                changes.watch_for(dir, &files);
                changes.watched.get(&folder).copied() == identity(&folder) && changes.gone.lock().unwrap().is_empty()
            };
            let minute = Duration::from_secs(60);
            tokio::time::timeout(minute, async { while !is_watched_anew(&mut changes).await {} }).await.unwrap();
            fs::write(&files[0], "").unwrap();
            tokio::time::timeout(minute, changes.next()).await.expect("the file is noticed");
        }
    }

    #[tokio::test]
    async fn where_the_system_watches_nothing_somebody_looks() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path()).unwrap();
        let dir = store.dir();
        let mut changes = ChangeWatch { watcher: None, ..ChangeWatch::new(&store) };
        changes.watch_for(dir, &[]);
        assert!(tokio::time::timeout(Duration::from_secs(60), changes.next()).await.is_ok());
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
        // Creating a folder changes the one above it.
        assert_eq!(nearest_folder(temp.path()), temp.path().parent());
    }
}
