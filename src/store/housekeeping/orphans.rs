//! Unused files of the state directory.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::store::files::checkpoint::attempt_of;
use crate::store::files::durable::TEMPORARY;
use crate::store::files::entries::{entries, remove, size};
use crate::store::files::lease::Lease;
use crate::store::files::state_dir::attempt_files::{MESSAGE, STOP};
use crate::store::files::state_dir::{OPENED, StateDir};

/// A file or directory that can be removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Orphan {
    /// Where it is.
    pub path: PathBuf,
    /// The frame that it belonged to, if any.
    pub frame: Option<FrameId>,
    /// The size of its files in bytes.
    pub bytes: u64,
}

impl Orphan {
    /// Whether every attempt writes such a file, so that an interrupted one leaves it behind.
    #[must_use]
    pub fn is_routine(&self) -> bool {
        self.path.file_name().and_then(|name| name.to_str()).is_some_and(|name| ROUTINE.contains(&name))
    }
}

/// Files that every attempt writes and removes at its end.
const ROUTINE: [&str; 6] = ["answered.jsonl", OPENED, "settings.json", "permission-tool.json", STOP, MESSAGE];

/// The prefix of directories that are about to be deleted.
pub(crate) const TRASH: &str = "trash-";

/// The prefix of directories whose contents will be moved to frames.
const STAGE: &str = "stage-";

/// What is older was abandoned: filling a stage takes seconds, and people run commands on the day on which they see them.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl StateDir {
    /// A new private and empty directory, whose contents will be moved to frames.
    pub(crate) fn stage(&self) -> io::Result<PathBuf> {
        let path = self.frames().join(format!("{STAGE}{}{TEMPORARY}", Uuid::new_v4()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Removes the files that were written for an ended attempt of a frame. Only the holder of the lease may do so.
    pub(crate) fn clear_attempt(&self, frame: FrameId) -> io::Result<()> {
        for entry in entries(&self.frame_path(frame))? {
            if entry.file_name().to_str().is_some_and(is_of_attempt) {
                failpoint::around(Step::RemoveCopy, || remove(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// The directory of all frames.
    pub(crate) fn frames(&self) -> PathBuf {
        self.path().join("frames")
    }
}

/// The orphan at `path`, unless another process has removed it.
pub(crate) fn orphan(path: PathBuf, frame: Option<FrameId>) -> Option<Orphan> {
    path.symlink_metadata().ok().map(|_| Orphan { bytes: size(&path), path, frame })
}

/// Unused files of a frame without a runner: copies that are no longer needed, and files that only exist during an attempt.
pub(crate) fn of_frame(folder: &Path, frame: FrameId, copies: &[AttemptId]) -> io::Result<Vec<Orphan>> {
    let is_left =
        |name: &str| is_of_attempt(name) || attempt_of(name).is_some_and(|attempt| !copies.contains(&attempt));
    let files = entries(folder)?.into_iter().filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    let files = files.filter(|entry| entry.file_name() != OPENED || is_old(entry.metadata()));
    Ok(files.filter_map(|entry| orphan(entry.path(), Some(frame))).collect())
}

/// Whether a file of a frame only exists during an attempt.
fn is_of_attempt(name: &str) -> bool {
    name.ends_with(TEMPORARY) || ROUTINE.contains(&name)
}

pub(crate) fn is_orphan(name: &str, metadata: io::Result<Metadata>) -> bool {
    name.ends_with(TEMPORARY) && (name.starts_with(TRASH) || name.starts_with(STAGE) && is_old(metadata))
}

fn is_old(metadata: io::Result<Metadata>) -> bool {
    let age = metadata.and_then(|found| found.modified()).map(|time| SystemTime::now().duration_since(time));
    matches!(age, Ok(Ok(age)) if age > ABANDONED_AFTER)
}

/// Whether a process runs the frame. If this is unknown, it is safer to assume so.
pub(crate) fn is_run(dir: &StateDir, frame: FrameId) -> bool {
    Lease::is_held(dir, frame).unwrap_or(true)
}
