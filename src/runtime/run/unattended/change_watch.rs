//! Notices changes of the database and of files that agents wait for.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::future::pending;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

use crate::runtime::activity::rechecks::{Recheck, Rechecks};
use crate::runtime::activity::reports::{Report, Reports, WITHOUT_REPORTS};
use crate::store::{StateDir, Store, StoreError};

/// Watches directories, not files: a file may not exist yet, and may be replaced.
pub(crate) struct ChangeWatch {
    reports: Reports,
    changed: Arc<Notify>,
    /// What is watched. A folder that is removed and created again is a different one.
    watched: HashMap<PathBuf, Identity>,
    /// The watched folders that were removed or moved since. A new folder may have the same number.
    gone: Arc<Mutex<HashSet<PathBuf>>>,
    /// Whether a folder that should be watched is not.
    misses_some: bool,
    rechecks: Rechecks,
    /// The version of the records at the last check.
    version: Option<i64>,
}

/// Identifies a folder: its device and its number there.
type Identity = (u64, u64);

impl ChangeWatch {
    /// Watches the records at first.
    pub(crate) fn new(store: &Store) -> Self {
        let changed = Arc::new(Notify::new());
        let gone = Arc::<Mutex<HashSet<PathBuf>>>::default();
        let (notice, note_gone) = (Arc::clone(&changed), Arc::clone(&gone));
        let reports = Reports::new(store, move |report| {
            if let Report::Gone(path) = report {
                note_gone.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
            }
            notice.notify_one();
        });
        let (rechecks, version) = (Rechecks::default(), None);
        let mut changes =
            Self { reports, changed, watched: HashMap::new(), gone, misses_some: false, rechecks, version };
        changes.watch_for(store.dir(), &[]);
        changes
    }

    /// Whether the system reports every change to this process. Other programs may use up the available watches.
    pub(crate) fn sees_all(&self) -> bool {
        self.reports.are_made() && !self.misses_some
    }

    /// Also watches for these files, and no longer for others. Changes that the system cannot report are found by checking.
    pub(crate) fn watch_for(&mut self, dir: &StateDir, files: &[PathBuf]) {
        if !self.reports.are_made() {
            return;
        }
        let folders = files.iter().filter_map(|file| nearest_folder(file));
        let wanted: HashMap<PathBuf, Identity> =
            folders.chain([dir.path()]).filter_map(|folder| Some((folder.to_owned(), identity(folder)?))).collect();
        let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
        self.watched.retain(|folder, known| {
            let is_wanted = wanted.get(folder) == Some(known) && !gone.contains(folder);
            if !is_wanted {
                self.reports.unwatch(folder);
            }
            is_wanted
        });
        self.misses_some = false;
        for (folder, identity) in wanted {
            if self.watched.contains_key(&folder) {
                continue;
            }
            if self.reports.watch(&folder) {
                self.watched.insert(folder, identity);
                // It may have changed since it was checked.
                self.changed.notify_one();
            } else {
                self.misses_some = true;
            }
        }
    }

    /// Returns after a change, perhaps one that was made before this was called, and again if the records turn out to have changed
    /// later than the system reported it. If something is not watched, also returns after a second.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the records no longer exist or cannot be read.
    pub(crate) async fn next(&mut self, store: &Store) -> Result<(), StoreError> {
        loop {
            if let Some(check) = self.rechecks.take_due(Instant::now()) {
                let version = Some(store.changes().version_of_others()?);
                let is_new = std::mem::replace(&mut self.version, version) != version;
                if check == Recheck::First || is_new {
                    return Ok(());
                }
                continue;
            }
            let next = self.rechecks.next();
            let recheck = async {
                match next {
                    Some(next) => sleep_until(next.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => self.rechecks.report(Instant::now()),
                () = recheck => {}
                () = sleep(WITHOUT_REPORTS), if !self.sees_all() => return Ok(()),
            }
        }
    }
}

fn identity(folder: &Path) -> Option<Identity> {
    let known = fs::metadata(folder).ok()?;
    Some((known.dev(), known.ino()))
}

/// The folder that changes when `file` or one of the folders above it is created.
fn nearest_folder(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_file_that_is_waited_for_is_noticed_when_it_is_made() {
        let (state, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(state.path()).unwrap();
        let dir = store.dir();
        let mut changes = ChangeWatch::new(&store);
        // Its folder does not exist either.
        let file = project.path().join("out/report");
        let noticed = async |changes: &mut ChangeWatch| {
            tokio::time::timeout(Duration::from_secs(60), changes.next(&store)).await.is_ok_and(|next| next.is_ok())
        };
        changes.watch_for(dir, std::slice::from_ref(&file));
        assert!(noticed(&mut changes).await, "what may have changed before");
        fs::create_dir(project.path().join("out")).unwrap();
        assert!(noticed(&mut changes).await, "the folder");
        changes.watch_for(dir, std::slice::from_ref(&file));
        assert!(noticed(&mut changes).await, "what may have changed before");
        fs::write(&file, "").unwrap();
        assert!(noticed(&mut changes).await, "the file");
        store.root();
        assert!(noticed(&mut changes).await, "the database");
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
                changes.next(&store).await.unwrap();
                changes.watch_for(dir, &files);
                changes.watched.get(&folder).copied() == identity(&folder) && changes.gone.lock().unwrap().is_empty()
            };
            let minute = Duration::from_secs(60);
            tokio::time::timeout(minute, async { while !is_watched_anew(&mut changes).await {} }).await.unwrap();
            fs::write(&files[0], "").unwrap();
            tokio::time::timeout(minute, changes.next(&store)).await.expect("the file is noticed").unwrap();
        }
    }

    #[tokio::test]
    async fn a_write_that_becomes_visible_after_the_look_is_noticed() {
        let state = tempfile::tempdir().unwrap();
        let (store, other) = (Store::open(state.path()).unwrap(), Store::open(state.path()).unwrap());
        let mut changes = ChangeWatch::new(&store);
        // Only the reports of this test count.
        changes.reports.unwatch(store.dir().path());
        let minute = Duration::from_secs(60);
        for _ in 0..3 {
            changes.changed.notify_one();
            tokio::time::timeout(minute, changes.next(&store)).await.expect("the look after the report").unwrap();
            other.root();
            tokio::time::timeout(minute, changes.next(&store)).await.expect("the write").unwrap();
        }
    }

    #[tokio::test]
    async fn where_the_system_watches_nothing_somebody_looks() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path()).unwrap();
        let dir = store.dir();
        let mut changes = ChangeWatch { reports: Reports::none(), ..ChangeWatch::new(&store) };
        changes.watch_for(dir, &[]);
        assert!(
            tokio::time::timeout(Duration::from_secs(60), changes.next(&store)).await.is_ok_and(|next| next.is_ok())
        );
    }

    #[test]
    fn the_folder_that_changes_first_is_the_nearest_that_exists() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(nearest_folder(&temp.path().join("a/b/c")), Some(temp.path()));
        // Creating a folder changes the one above it.
        assert_eq!(nearest_folder(temp.path()), temp.path().parent());
    }
}
