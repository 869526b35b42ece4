//! Reads a database to which no process is writing.
//!
//! Most polls find the database at rest. Reading it like a file that cannot change, without locks, without a log and without
//! the shared memory in which SQLite keeps an index of the log, takes about half as long. Whether it was at rest is checked
//! before and after: every change begins in the log, and ends with a changed database and an empty log.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::store::files::state_dir::StateDir;
use crate::store::sql::database::schema;

/// Values that change when the database changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: u64,
    length: u64,
    modified: (i64, i64),
}

/// A connection to the database of `dir`, valid as long as no process writes; `None` if it must be opened for writing.
pub(super) fn look(dir: &StateDir) -> Option<(Connection, Stamp)> {
    let seen = at_rest(dir)?;
    schema::is_current(&dir.database()).then_some(())?;
    Some((open(&dir.database())?, seen))
}

/// The database's stamp, if its log is empty.
pub(super) fn at_rest(dir: &StateDir) -> Option<Stamp> {
    if fs::metadata(dir.database_log()).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let found = fs::metadata(dir.database()).ok()?;
    Some(Stamp { file: found.ino(), length: found.len(), modified: (found.mtime(), found.mtime_nsec()) })
}

fn open(path: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{}?immutable=1", escaped(path)), flags).ok()
}

/// A path, escaped for a URI.
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::handle::Store;

    #[test]
    fn a_database_at_rest_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a %?#&é");
        let root = Store::open(&dir).unwrap().root();
        assert_eq!(Store::read_snapshot(&dir, |store| store.frame(root)).unwrap().unwrap().id, root);
    }

    #[test]
    fn nothing_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("state");
        assert!(Store::read_snapshot(&dir, |_| Ok(())).is_none());
        assert!(!dir.exists());
        Store::open(&dir).unwrap().root();
        let files = || fs::read_dir(&dir).unwrap().count();
        let before = files();
        assert!(Store::read_snapshot(&dir, |store| Ok(store.roots())).is_some());
        assert_eq!(files(), before);
    }

    #[test]
    fn a_database_that_is_written_is_not_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(temp.path()).unwrap();
        store.root();
        assert!(Store::read_snapshot(temp.path(), |store| Ok(store.roots())).is_none(), "the log holds a change");
        drop(store);
        let changed = Store::read_snapshot(temp.path(), |seen| {
            let roots = seen.roots();
            Store::open(temp.path()).unwrap().root();
            Ok(roots)
        });
        assert!(changed.is_none(), "the database changed meanwhile");
    }

    #[test]
    fn only_a_database_of_the_newest_version_is_read() {
        let temp = tempfile::tempdir().unwrap();
        for (version, is_read) in [(schema::known() - 1, false), (schema::known() + 1, false), (schema::known(), true)]
        {
            let store = Store::open(temp.path()).unwrap();
            store.root();
            schema::mark(store.sqlite(), version).unwrap();
            drop(store);
            assert_eq!(Store::read_snapshot(temp.path(), |_| Ok(())).is_some(), is_read, "{version}");
            let connection = Connection::open(temp.path().join("agent-cli.db")).unwrap();
            schema::mark(&connection, schema::known()).unwrap();
        }
    }

    #[test]
    fn a_look_cannot_write() {
        let temp = tempfile::tempdir().unwrap();
        let root = Store::open(temp.path()).unwrap().root();
        assert!(Store::read_snapshot(temp.path(), |store| store.try_again(root)).is_none());
        assert!(Store::read_snapshot(temp.path(), |store| Ok(store.roots())).is_some());
    }
}
