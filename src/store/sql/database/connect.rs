//! Opens the database, and creates one if there is none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::failpoint::{self, Step};
use crate::store::error::StoreError;
use crate::store::files::durable::{Durability, PRIVATE, Replacement};
use crate::store::files::entries::remove;
use crate::store::files::state_dir::StateDir;
use crate::store::sql::database::schema::{self, Found};
use crate::store::sql::engine::{Fault, TxResult};

/// How long a statement waits for another process's transaction. Nothing waits inside a transaction, so this is more than
/// enough.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than the number of statements in the store.
const STATEMENTS: usize = 256;

/// A connection to the database of `dir`, which is created if it does not exist.
pub(crate) fn connection(dir: &StateDir) -> Result<Connection, StoreError> {
    dir.create()?;
    let path = dir.database();
    match fs::metadata(&path) {
        Ok(found) if !found.is_file() => return Err(StoreError::NotADatabase(path)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => failpoint::around(Step::MakeDatabase, || make(dir))?,
        Err(error) => return Err(StoreError::io(&path, error)),
    }
    let connection = connect(&path).map_err(|fault| explain(fault, dir))?;
    match schema::inspect(&connection).map_err(|error| explain(error.into(), dir))? {
        Found::Current => {}
        Found::Older => upgrade(&connection).map_err(|fault| explain(fault, dir))?,
        Found::Newer(found) => return Err(schema::newer(&path, found)),
        Found::Unreleased => return Err(StoreError::Unreleased(path)),
        Found::Foreign => return Err(StoreError::NotADatabase(path)),
    }
    Ok(connection)
}

fn connect(path: &Path) -> TxResult<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    // SQLite opens the file for reading if it may not write.
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly(path.to_owned()).into());
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A statement is planned once: otherwise, values that are bound to it may cause it to be planned each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS only this sync reaches the disk. Files are synced in this way, and the database must be as durable.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

/// Creates the database under another name and renames it when it is complete, so that no process ever opens an incomplete
/// database, or one that other users may read. If other processes had the database open, switching it to its log would fail
/// for some of them.
fn make(dir: &StateDir) -> Result<(), StoreError> {
    let path = dir.database();
    let broken = |error| StoreError::io(dir.path(), error);
    let guard = File::open(dir.path()).map_err(broken)?;
    // The lock is held while a database is created, which takes milliseconds.
    guard.lock().map_err(broken)?;
    if path.try_exists().map_err(broken)? {
        return Ok(());
    }
    let fresh = Replacement::new(Step::MakeDatabase, &path, Durability::PowerFailure).map_err(broken)?;
    for end in ["-journal", "-wal", "-shm"] {
        let mut left_over = fresh.path().as_os_str().to_owned();
        left_over.push(end);
        remove(Path::new(&left_over)).map_err(broken)?;
    }
    fill(fresh.path()).map_err(|fault| explain(fault, dir))?;
    fresh.put().map_err(broken)
}

/// Creates the schema, and switches to the log last. The log is not renamed together with the database, so it must be empty
/// at the end. SQLite does not report if it could not move the content of a log into the database, as on a full disk.
fn fill(path: &Path) -> TxResult<()> {
    let connection = connect(path)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    failpoint::around(Step::Migrate, || schema::migrate(&connection))?;
    keep_a_log(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn upgrade(connection: &Connection) -> TxResult<()> {
    keep_a_log(connection)?;
    failpoint::around(Step::Migrate, || schema::migrate(connection))
}

/// The journal mode is stored in the file. Setting it writes only if it differs.
fn keep_a_log(connection: &Connection) -> TxResult<()> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let reason = format!("its journal mode is {mode} and cannot be changed to wal");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(reason)).into());
    }
    Ok(())
}

/// SQLite does not report why it cannot open its log. An attempt to write a file next to the log shows the reason.
fn explain(fault: Fault, dir: &StateDir) -> StoreError {
    let error = fault.in_database(dir.database());
    if !matches!(error, StoreError::Database { .. }) {
        return error;
    }
    let probe = dir.path().join(format!("probe-{}", uuid::Uuid::new_v4()));
    match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&probe) {
        Ok(_) => {
            let _ = fs::remove_file(&probe);
            error
        }
        Err(reason) => match StoreError::io(dir.path(), reason) {
            StoreError::Io { .. } => error,
            known => known,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;

    use super::*;
    use crate::core::chain::limits::NewLimits;
    use crate::store::handle::Store;
    use crate::store::testing::in_file as store;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn everything_is_for_its_owner_only() {
        let (_temp, store) = store();
        store.root();
        let dir = store.dir().path().to_owned();
        assert_eq!(mode(&dir), 0o700);
        for name in ["agent-cli.db", "agent-cli.db-wal", "agent-cli.db-shm"] {
            assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
        }
        let names = fs::read_dir(&dir).unwrap().count();
        assert_eq!(names, 3);
    }

    #[test]
    fn the_settings_are_those_that_the_design_asks_for() {
        let (_temp, store) = store();
        let value = |name: &str| -> String {
            store.sqlite().pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).map_or_else(
                |error| error.to_string(),
                |value| match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                },
            )
        };
        let names =
            ["journal_mode", "synchronous", "foreign_keys", "busy_timeout", "fullfsync", "checkpoint_fullfsync"];
        assert_eq!(names.map(value), ["wal", "2", "1", "10000", "1", "1"]);
        assert_eq!(value("auto_vacuum"), "2", "space is given back in small steps");
    }

    #[test]
    fn what_was_written_is_there_after_opening_again() {
        let (_temp, store) = store();
        let root = store.root();
        let dir = store.dir().path().to_owned();
        drop(store);
        assert!(Store::open(&dir).unwrap().frame(root).unwrap().is_some());
    }

    #[test]
    fn many_make_one_database() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    Store::open(&dir).unwrap().root();
                });
            }
        });
        assert_eq!(Store::open(&dir).unwrap().roots().len(), 8);
    }

    #[test]
    fn a_newer_database_is_refused() {
        let (_temp, store) = store();
        store.sqlite().pragma_update(None, "user_version", 99).unwrap();
        let error = Store::open(store.dir().path()).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    }

    #[test]
    fn who_has_it_open_when_a_newer_program_changes_it_writes_no_more() {
        let (_temp, store) = store();
        let root = store.root();
        let newer = Connection::open(store.dir().database()).unwrap();
        newer.pragma_update(None, "user_version", schema::known() + 1).unwrap();
        let refused = [store.try_again(root).map(drop), store.change_chain(root, NewLimits::default()).map(drop)];
        for error in refused {
            assert!(matches!(error, Err(StoreError::Newer { .. })), "{error:?}");
        }
        assert_eq!(store.events(root, 0).unwrap().len(), 1, "nothing was written");
        newer.pragma_update(None, "user_version", schema::known()).unwrap();
        store.change_chain(root, NewLimits::default()).unwrap();
    }

    #[test]
    fn a_database_from_before_the_first_release_is_refused() {
        let (_temp, store) = store();
        for mark in schema::UNRELEASED {
            store.sqlite().pragma_update(None, "application_id", mark).unwrap();
            let error = Store::open(store.dir().path()).unwrap_err();
            assert!(matches!(error, StoreError::Unreleased(_)), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_and_left_alone() {
        for content in ["not a database".to_owned(), "x".repeat(100_000)] {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("agent-cli.db");
            fs::write(&path, &content).unwrap();
            let error = Store::open(temp.path()).unwrap_err();
            assert!(matches!(&error, StoreError::NotADatabase(found) if *found == path), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn an_empty_file_becomes_a_database() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("agent-cli.db"), "").unwrap();
        let store = Store::open(temp.path()).unwrap();
        store.root();
        assert!(temp.path().join("agent-cli.db-wal").exists());
    }

    #[test]
    fn what_a_killed_process_left_half_made_does_no_harm() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["", "-wal", "-shm", "-journal"].map(|end| format!(".agent-cli.db.tmp{end}")) {
            fs::write(temp.path().join(name), "half").unwrap();
        }
        Store::open(temp.path()).unwrap().root();
        let left = fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_str().unwrap().contains("tmp")));
    }

    #[test]
    fn a_file_is_no_state_directory() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        for dir in [temp.path().to_owned(), temp.path().join("below")] {
            let error = Store::open(&dir).unwrap_err();
            assert!(matches!(&error, StoreError::NotADirectory(path) if *path == dir), "{error}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let made = temp.path().join("made");
        drop(Store::open(&made).unwrap());
        fs::remove_file(made.join("agent-cli.db-shm")).unwrap();
        fs::remove_file(made.join("agent-cli.db-wal")).unwrap();
        let empty = temp.path().join("empty");
        fs::create_dir(&empty).unwrap();
        for dir in [made, empty] {
            fs::set_permissions(&dir, Permissions::from_mode(0o500)).unwrap();
            // The superuser may write everywhere.
            if File::create(dir.join("probe")).is_err() {
                let error = Store::open(&dir).unwrap_err();
                assert!(matches!(error, StoreError::ReadOnly(_)), "{error}");
            }
            fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn a_full_disk_is_named_and_changes_nothing() {
        let (_temp, store) = store();
        let root = store.root();
        let pages: u32 = store.sqlite().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let _: u32 =
            store.sqlite().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0)).unwrap();
        let error = store.create_root(&crate::store::testing::new(&"x".repeat(100_000))).unwrap_err();
        assert!(matches!(error, StoreError::Full(_)), "{error}");
        assert_eq!(store.roots().iter().map(|root| root.id).collect::<Vec<_>>(), [root]);
    }

    #[test]
    fn a_long_log_is_emptied_by_the_last_to_close() {
        let (_temp, store) = store();
        let dir = store.dir().path().to_owned();
        drop(store);
        assert!(dir.join("agent-cli.db-wal").exists());
        let store = Store::open(&dir).unwrap();
        store.create_root(&crate::store::testing::new(&"x".repeat(1_000_000))).unwrap();
        drop(store);
        assert!(!dir.join("agent-cli.db-wal").exists());
        assert_eq!(Store::open(&dir).unwrap().roots().len(), 1);
    }
}
