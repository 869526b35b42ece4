//! Records an agent's surroundings when its attempt ends, and compares them when it continues.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use crate::core::agent::stale_files::Seen;
use crate::core::chain::frame::Frame;
use crate::core::id::AttemptId;
use crate::failpoint::Step;
use crate::runtime::worktrees::git::Git;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;

/// Records the agent's surroundings at the end of an attempt whose session is kept. `files`: those that the agent read
/// or wrote in it. Those of earlier attempts are still in its conversation.
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

fn seen(store: &Store, frame: &Frame, attempt: AttemptId) -> Option<Seen> {
    serde_json::from_slice(&fs::read(store.dir().seen(frame.id, attempt)).ok()?).ok()
}

fn look(files: impl Iterator<Item = PathBuf>, cwd: &Path) -> Seen {
    let files = files.filter_map(|path| content(&path).ok().map(|content| (path, content))).collect();
    Seen { files, head: head(cwd) }
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

/// The commit that is checked out. `None` outside a repository, and if git cannot tell.
fn head(cwd: &Path) -> Option<String> {
    // Most directories outside a repository are recognised without starting a process.
    cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let commit = Git::new(cwd, ["rev-parse", "--verify", "--quiet", "HEAD"]).text().ok()?;
    Some(commit).filter(|commit| !commit.is_empty())
}
