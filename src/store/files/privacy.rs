//! Finds files of the state directory that other users can read, and creates sockets that other users cannot connect to.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{PRIVATE, PRIVATE_DIR};
use crate::store::files::entries::entries;
use crate::store::files::state_dir::StateDir;

impl StateDir {
    /// The files and directories that other users can read or their owner cannot, each with its permissions. The state
    /// directory itself is excluded: the user may have created it for other purposes, too.
    pub(crate) fn not_private(&self) -> Result<Vec<(PathBuf, u32)>> {
        let mut found = Vec::new();
        let database = entries(self.path()).map_err(|error| StoreError::io(self.path(), error))?;
        let database = database.into_iter().map(|entry| entry.path());
        for path in database.filter(|path| is_database(path)).chain([self.frames()]) {
            not_private(&path, &mut found).map_err(|error| StoreError::io(&path, error))?;
        }
        Ok(found)
    }
}

/// Listens on a Unix socket that only its owner can ever use. Replaces an existing socket that no process listens on any
/// more. Other kinds of files also refuse connections, but are not replaced.
pub(crate) fn private_socket(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refused) {
        fs::remove_file(path)?;
    }
    let before = umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}

/// Gives a file of the state directory its correct permissions.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    let set = || fs::set_permissions(path, Permissions::from_mode(wanted(&fs::symlink_metadata(path)?)));
    match set() {
        // SQLite creates and deletes files next to the database.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}

fn is_database(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("agent-cli.db"))
}

fn wanted(found: &fs::Metadata) -> u32 {
    if found.is_dir() { PRIVATE_DIR } else { PRIVATE }
}

/// Files appear and disappear while other processes work, so missing files are skipped.
fn not_private(path: &Path, found: &mut Vec<(PathBuf, u32)>) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode != wanted(&metadata) {
        found.push((path.to_owned(), mode));
    }
    if metadata.is_dir() {
        for entry in entries(path)? {
            not_private(&entry.path(), found)?;
        }
    }
    Ok(())
}
