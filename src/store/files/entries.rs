//! What is in a directory, and its removal, whether or not it is there.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

/// How many bytes the files at `path` and below it hold; links are not followed. What cannot be read counts nothing.
#[must_use]
pub(crate) fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => entries(path).unwrap_or_default().iter().map(|entry| size(&entry.path())).sum(),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    }
}

/// Removes a file or a directory, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The entries of a directory, none when it does not exist.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}
