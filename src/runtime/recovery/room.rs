//! Checks for room where Claude Code keeps its sessions. On a full disk it continues silently, and its sessions are lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::locate;
use crate::core::chain::frame::Frame;
use crate::core::text::shell::shell_path;

/// In bytes. The shortest session takes several times as much.
const LEAST: u64 = 16 << 10;

/// The folder in which Claude Code cannot keep the session of `frame`, because its disk is full.
#[must_use]
pub(crate) fn missing(frame: &Frame) -> Option<PathBuf> {
    folder_of(frame).filter(|folder| is_full(folder))
}

/// Why the folder in which Claude Code would keep the session of `frame` cannot be used, if so.
#[must_use]
pub(crate) fn unusable(frame: &Frame) -> Option<(PathBuf, io::Error)> {
    let folder = folder_of(frame)?;
    let session = locate::expected(&folder, &frame.cwd, frame.session);
    let found = fs::symlink_metadata(&session).err().filter(|error| error.kind() != io::ErrorKind::NotFound);
    found.or_else(|| unwritable(&session)).map(|error| (folder, error))
}

/// What a person can do about a folder that cannot be used.
pub(crate) fn remedy(folder: &Path) -> String {
    let shown = shell_path(folder);
    format!("make {shown} readable and writable for this user, or set CLAUDE_CONFIG_DIR to another folder")
}

/// Why a file or folder, or the first folder above it that exists, cannot be written to.
pub(crate) fn unwritable(file: &Path) -> Option<io::Error> {
    let existing = file.ancestors().find(|path| path.exists())?;
    let needed = if existing.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
    rustix::fs::access(existing, needed).err().map(io::Error::from)
}

/// The folder in which Claude Code keeps the session of `frame`.
#[must_use]
pub(crate) fn folder_of(frame: &Frame) -> Option<PathBuf> {
    config_dir(&frame.launch)
}

/// Whether the disk of this folder, which need not exist yet, has no room for a session.
#[must_use]
pub(crate) fn is_full(folder: &Path) -> bool {
    left(folder).is_some_and(|bytes| bytes < LEAST)
}

/// How many bytes are left on the disk of this folder; `None`: unknown.
#[must_use]
pub(crate) fn left(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(existing).ok().filter(|disk| disk.f_blocks > 0)?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_folder_is_known_before_the_folder_exists() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(left(&temp.path().join("a/b")).is_some(), left(temp.path()).is_some());
        // A file system that does not count its blocks is not full.
        assert!(!is_full(Path::new("/proc/self")));
    }
}
