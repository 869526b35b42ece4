//! Records an agent's surroundings when its attempt ends, and compares them when it continues.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use crate::core::agent::file_changes::{FileChanges, FileSnapshot};
use crate::core::chain::frame::Frame;
use crate::core::id::AttemptId;
use crate::failpoint::Step;
use crate::runtime::worktrees::git::Git;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;

/// Records the agent's surroundings at the end of an attempt whose session is kept. `files`: the files that the agent read
/// or wrote in the attempt. Files of earlier attempts are still in its conversation.
pub(crate) fn record(
    store: &Store,
    frame: &Frame,
    attempt: AttemptId,
    files: &BTreeSet<PathBuf>,
) -> Result<(), RuntimeError> {
    let before = frame.checkpoint.and_then(|checkpoint| seen(store, frame, checkpoint)).unwrap_or_default();
    let files = before.files.into_keys().chain(files.iter().map(|file| frame.cwd.join(file)));
    let text = serde_json::to_vec(&look(files, &frame.cwd)).unwrap_or_default();
    let path = store.dir().seen(frame.id, attempt);
    store.dir().write(Step::Seen, &path, &text).map_err(while_trying("record what the agent has seen"))
}

/// The notice about changes since the agent's checkpoint. Without a record there is none.
pub(crate) fn notice(store: &Store, frame: &Frame) -> Option<String> {
    let before = seen(store, frame, frame.checkpoint?)?;
    let now = look(before.files.keys().cloned(), &frame.cwd);
    before.changes(&now).notice(&frame.cwd)
}

/// How many of the files that the agent knows have changed since its checkpoint or are missing, and how many it knows.
pub(crate) fn how_many_changed(store: &Store, frame: &Frame) -> Option<(usize, usize)> {
    let before = seen(store, frame, frame.checkpoint?)?;
    let FileChanges { changed, gone, .. } = before.changes(&look(before.files.keys().cloned(), &frame.cwd));
    Some((changed.len() + gone.len(), before.files.len()))
}

fn seen(store: &Store, frame: &Frame, attempt: AttemptId) -> Option<FileSnapshot> {
    serde_json::from_slice(&fs::read(store.dir().seen(frame.id, attempt)).ok()?).ok()
}

fn look(files: impl Iterator<Item = PathBuf>, cwd: &Path) -> FileSnapshot {
    let files = files.filter_map(|path| content(&path).ok().map(|content| (path, content))).collect();
    FileSnapshot { files, head: head(cwd) }
}

/// A digest of a file's content, or of its size and time if reading the file would take long.
fn content(path: &Path) -> io::Result<String> {
    const LARGE: u64 = 64 * 1024 * 1024;
    let known = fs::metadata(path)?;
    if !known.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if known.len() > LARGE {
        let modified = known.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        return Ok(format!("{} bytes at {}", known.len(), modified.as_nanos()));
    }
    digest(path)
}

/// A digest of all of a file.
pub(crate) fn digest(path: &Path) -> io::Result<String> {
    let (mut digest, mut file) = (Sha256::new(), BufReader::new(File::open(path)?));
    loop {
        let read = file.fill_buf()?;
        if read.is_empty() {
            break;
        }
        digest.update(read);
        let length = read.len();
        file.consume(length);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The commit that is checked out. `None` outside a repository, or if git cannot determine it.
fn head(cwd: &Path) -> Option<String> {
    // Most directories outside a repository are recognised without starting a process.
    cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let commit = Git::new(cwd, ["rev-parse", "--verify", "--quiet", "HEAD"]).text().ok()?;
    Some(commit).filter(|commit| !commit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::attempt::ending::Ending;
    use crate::store::NewFrame;
    use crate::store::testing::{self, ask, new};

    #[test]
    fn a_digest_is_that_of_the_whole_content() {
        let temp = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            fs::write(temp.path().join(name), text).unwrap();
            content(&temp.path().join(name)).unwrap()
        };
        let long = vec![b'x'; 100_000];
        assert_eq!(file("a", &long), file("b", &long));
        let mut other = long.clone();
        *other.last_mut().unwrap() = b'y';
        assert_ne!(file("a", &long), file("b", &other));
        assert_eq!(file("abc", b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn what_would_take_long_to_read_is_known_by_its_size_and_time() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("large");
        let file = File::create(&path).unwrap();
        for (length, is_read) in [(64 * 1024 * 1024 + 1, false), (10, true)] {
            file.set_len(length).unwrap();
            assert_eq!(!content(&path).unwrap().contains("bytes at"), is_read, "{length}");
        }
        assert!(content(temp.path()).is_err(), "a directory has no content");
        assert!(content(&temp.path().join("missing")).is_err());
    }

    #[test]
    fn an_agent_is_told_which_of_its_files_changed_while_it_waited() {
        let (temp, store) = testing::store();
        let cwd = temp.path().join("project");
        fs::create_dir(&cwd).unwrap();
        fs::write(cwd.join("read.txt"), "one").unwrap();
        let launch = Launch::default();
        let root = store.create_root(&NewFrame { cwd: cwd.clone(), launch, ..new("a task") }).unwrap();
        let frame = || store.frame(root).unwrap().unwrap();
        assert_eq!(notice(&store, &frame()), None, "nothing was seen");
        let caller = store.start(root);
        store.dir().frame_dir(root).unwrap();
        record(&store, &frame(), caller.attempt, &BTreeSet::from([PathBuf::from("read.txt")])).unwrap();
        let asked = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        fs::write(cwd.join("never-seen.txt"), "one").unwrap();
        assert_eq!(notice(&store, &frame()), None);
        fs::write(cwd.join("read.txt"), "two").unwrap();
        assert!(notice(&store, &frame()).is_some_and(|notice| notice.contains("read.txt")));
        // What it saw before is still in its conversation.
        store.answer(asked, "Jan 1st").unwrap();
        let caller = store.start(root);
        record(&store, &frame(), caller.attempt, &BTreeSet::new()).unwrap();
        store.end(caller, &testing::reply("SGN_PEND_STARTED"));
        assert_eq!(notice(&store, &frame()), None);
        fs::remove_file(cwd.join("read.txt")).unwrap();
        assert!(notice(&store, &frame()).is_some_and(|notice| notice.contains("read.txt")));
    }
}
