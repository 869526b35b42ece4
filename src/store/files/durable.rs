//! What outlives a power failure: files and new directories that the disk was asked to hold.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use crate::failpoint;

/// The permissions of the state directory and those in it.
pub(crate) const PRIVATE_DIR: u32 = 0o700;

/// Creates a directory with the right permissions, and those above it. One that exists stays as it is. When this returns,
/// what is new outlives a power failure.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(PRIVATE_DIR).create(folder) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made?,
        }
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE_DIR))?;
        folder.parent().map_or(Ok(()), sync_dir)?;
    }
    Ok(())
}

/// Has the disk hold the entries of a directory.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    // What is no path of its own is the current directory's.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    sync(&File::open(path)?)
}

/// Has the disk hold a file.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()?;
    failpoint::synced(file);
    Ok(())
}
