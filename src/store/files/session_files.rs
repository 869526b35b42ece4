//! Kept copies of the files that belong to an agent's session, apart from its conversation.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::core::agent::session_file_names::{BESIDE, FileSelection, SessionFolder};
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::store::files::checkpoint::{self, is_same};
use crate::store::files::durable::{TEMPORARY, make_private, sync_dir};
use crate::store::files::entries::{entries, remove};
use crate::store::files::state_dir::StateDir;

impl StateDir {
    /// The kept files of an attempt.
    fn beside(&self, frame: FrameId, attempt: AttemptId) -> PathBuf {
        self.frame_path(frame).join(format!("{attempt}{BESIDE}"))
    }
}

/// The files that are kept below a folder, with their relative paths.
pub(crate) fn kept(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let all = SessionFolder { name: "", path: folder.to_owned(), files: FileSelection::All { but: "" } };
    files(&all, folder)
}

/// Copies the content of the folders. When this returns, the copies survive a power failure. Files that have not changed
/// since the attempt `earlier` are hard links to its copies.
pub(crate) fn keep(
    dir: &StateDir,
    frame: FrameId,
    attempt: AttemptId,
    earlier: Option<AttemptId>,
    folders: &[SessionFolder],
) -> io::Result<()> {
    let kept = dir.beside(frame, attempt);
    let fresh = kept.with_extension(&format!("{BESIDE}{TEMPORARY}")[1..]);
    // Left by a process that died here.
    remove(&fresh)?;
    make_private(&fresh)?;
    let earlier = earlier.map(|earlier| dir.beside(frame, earlier));
    for folder in folders {
        let known = earlier.as_ref().map(|earlier| earlier.join(folder.name));
        copy(Step::KeepCopy, folder, &folder.path, &fresh.join(folder.name), known.as_deref())?;
    }
    failpoint::around(Step::RemoveCopy, || remove(&kept))?;
    failpoint::around(Step::RemoveCopy, || fs::rename(&fresh, &kept))?;
    sync_dir(&dir.frame_path(frame))
}

/// Whether an attempt has copies, even empty ones.
pub(crate) fn is_kept(dir: &StateDir, frame: FrameId, attempt: AttemptId) -> bool {
    dir.beside(frame, attempt).is_dir()
}

/// Restores the folders to their contents when the attempt was kept; `None`: no files. Unless `exactly`, files that other
/// sessions may share are only written if they are missing.
pub(crate) fn restore(
    dir: &StateDir,
    frame: FrameId,
    attempt: Option<AttemptId>,
    folders: &[SessionFolder],
    exactly: bool,
) -> io::Result<()> {
    for folder in folders {
        let kept = attempt.map(|attempt| dir.beside(frame, attempt).join(folder.name));
        let wanted = kept.as_ref().map_or_else(|| Ok(BTreeSet::new()), |kept| files(folder, kept))?;
        let is_exact = exactly || folder.is_its_own();
        for file in files(folder, &folder.path)?.difference(&wanted).filter(|_| is_exact) {
            failpoint::around(Step::RemoveCopy, || fs::remove_file(folder.path.join(file)))?;
        }
        for (kept, file) in kept.iter().flat_map(|kept| wanted.iter().map(move |file| (kept, file))) {
            let place = folder.path.join(file);
            if is_exact || !place.exists() {
                write(Step::PutBack, &kept.join(file), &place)?;
            }
        }
        if folder.is_its_own() {
            remove_empty(&folder.path);
        }
    }
    Ok(())
}

/// Copies the contents of folders to other folders, for another session.
pub(crate) fn share(from: &[SessionFolder], to: &[SessionFolder]) -> io::Result<()> {
    for (from, to) in from.iter().zip(to).filter(|(from, to)| from.path != to.path) {
        copy(Step::PutBack, from, &from.path, &to.path, None)?;
    }
    Ok(())
}

fn copy(step: Step, folder: &SessionFolder, from: &Path, to: &Path, known: Option<&Path>) -> io::Result<()> {
    for file in files(folder, from)? {
        let (source, target) = (from.join(&file), to.join(&file));
        let linked = match known.map(|known| known.join(&file)) {
            Some(known) if are_same(&source, &known)? => {
                make_private(target.parent().unwrap_or(to))?;
                fs::hard_link(&known, &target).is_ok()
            }
            _ => false,
        };
        if linked {
            sync_dir(target.parent().unwrap_or(to))?;
        } else {
            write(step, &source, &target)?;
        }
    }
    Ok(())
}

/// Writes a copy, unless it exists.
fn write(step: Step, from: &Path, to: &Path) -> io::Result<()> {
    if are_same(from, to)? {
        return Ok(());
    }
    let mut source = File::open(from)?;
    let length = source.metadata()?.len();
    checkpoint::copy(step, &mut source, length, to)
}

fn are_same(one: &Path, other: &Path) -> io::Result<bool> {
    let Ok(second) = File::open(other) else { return Ok(false) };
    let first = File::open(one)?;
    let length = first.metadata()?.len();
    Ok(second.metadata()?.len() == length && is_same(first, second, length)?)
}

/// The selected files of the folder, relative to `root`.
fn files(folder: &SessionFolder, root: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut below = vec![PathBuf::new()];
    while let Some(inner) = below.pop() {
        for entry in entries(&root.join(&inner))? {
            let (name, kind) = (inner.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() && folder.is_its_own() {
                below.push(name);
            } else if kind.is_file() && folder.has(&name) {
                found.insert(name);
            }
        }
    }
    Ok(found)
}

/// Removes empty folders.
fn remove_empty(folder: &Path) {
    for entry in entries(folder).unwrap_or_default() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::store::testing::store;

    fn put(folder: &SessionFolder, file: &str, text: &str) {
        let path = folder.path.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn content(folder: &SessionFolder) -> Vec<(PathBuf, String)> {
        let of = |file: PathBuf| (file.clone(), fs::read_to_string(folder.path.join(file)).unwrap());
        files(folder, &folder.path).unwrap().into_iter().map(of).collect()
    }

    #[test]
    fn what_lay_beside_a_session_is_there_again() {
        let (temp, store) = store();
        let (frame, first, second) = (FrameId::random(), AttemptId::random(), AttemptId::random());
        let own = SessionFolder {
            name: "session",
            path: temp.path().join("p/s"),
            files: FileSelection::All { but: "tool-results" },
        };
        let plans = SessionFolder {
            name: "plans",
            path: temp.path().join("plans"),
            files: FileSelection::Named(vec!["calm".into()]),
        };
        let folders = [own.clone(), plans.clone()];
        put(&own, "subagents/a.jsonl", "hi");
        put(&own, "1.json", "one");
        put(&own, "tool-results/b", "large");
        put(&plans, "calm.md", "a plan");
        put(&plans, "other.md", "theirs");
        let before = [content(&own), content(&plans)];
        assert!(!is_kept(store.dir(), frame, first));
        keep(store.dir(), frame, first, None, &folders).unwrap();
        keep(store.dir(), frame, second, Some(first), &folders).unwrap();
        keep(store.dir(), frame, second, Some(first), &folders).unwrap();
        assert!(is_kept(store.dir(), frame, second));
        let inode = |attempt| store.dir().beside(frame, attempt).join("session/1.json").metadata().unwrap().ino();
        assert_eq!(inode(first), inode(second), "what did not change is kept once");

        put(&own, "subagents/a.jsonl", "hi and more");
        put(&own, "workflows/w/journal", "new");
        fs::remove_file(own.path.join("1.json")).unwrap();
        put(&plans, "calm.md", "another plan");
        restore(store.dir(), frame, Some(second), &folders, false).unwrap();
        assert_eq!(content(&own), before[0]);
        assert!(!own.path.join("workflows").exists() && own.path.join("tool-results/b").exists());
        assert_eq!(content(&plans)[0].1, "another plan", "somebody may have changed it");
        restore(store.dir(), frame, Some(second), &folders, true).unwrap();
        assert_eq!(content(&plans), before[1]);
        assert!(plans.path.join("other.md").exists());
        restore(store.dir(), frame, None, &folders, true).unwrap();
        assert_eq!((content(&own), content(&plans)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn another_session_gets_what_is_beside_a_session() {
        let temp = tempfile::tempdir().unwrap();
        let folder = |path: &str| SessionFolder {
            name: "session",
            path: temp.path().join(path),
            files: FileSelection::All { but: "" },
        };
        let (own, other, plans) = (folder("own"), folder("other"), folder("plans"));
        put(&own, "tasks/1.json", "one");
        put(&plans, "calm.md", "a plan");
        share(&[own.clone(), plans.clone()], &[other.clone(), plans.clone()]).unwrap();
        assert_eq!(content(&other), content(&own));
        assert_eq!(content(&plans).len(), 1, "both have the same folder");
    }
}
