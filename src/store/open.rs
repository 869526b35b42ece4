//! Opening the database, and making one where there is none.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{Fault, StoreError};
use super::files::{PRIVATE, StateDir};
use super::schema::{self, Found};

/// How long a statement waits for another process's transaction. Nothing waits inside a transaction, so this is long.
const PATIENCE: Duration = Duration::from_secs(10);

/// More statements than the store has.
const STATEMENTS: usize = 64;

/// A connection to the database of `dir`, which is made when it is absent.
pub(super) fn connection(dir: &StateDir) -> Result<Connection, StoreError> {
    dir.create()?;
    let path = dir.database();
    match fs::metadata(&path) {
        Ok(found) if !found.is_file() => return Err(StoreError::NotADatabase(path)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(dir)?,
        Err(error) => return Err(StoreError::io(&path, error)),
    }
    let connection = connect(&path).map_err(|fault| explain(fault, dir))?;
    match schema::inspect(&connection).map_err(|error| explain(error.into(), dir))? {
        Found::Current => {}
        Found::Older => schema::migrate(&connection).map_err(|fault| explain(fault, dir))?,
        Found::Newer(found) => return Err(StoreError::Newer { path, found, known: schema::known() }),
        Found::Foreign => return Err(StoreError::NotADatabase(path)),
    }
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    // SQLite falls back to reading when it may not write.
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly(path.to_owned()).into());
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Makes the database beside its place and moves it there complete, so that nobody ever meets half a database or one
/// that others may read. Switching a database to its log while others open it would fail for some of them.
fn make(dir: &StateDir) -> Result<(), StoreError> {
    let (path, fresh) = (dir.database(), dir.path().join("agent-cli.db.new"));
    let broken = |error| StoreError::io(dir.path(), error);
    let guard = File::open(dir.path()).map_err(broken)?;
    // Whoever holds this makes a database, which takes milliseconds.
    guard.lock().map_err(broken)?;
    if path.try_exists().map_err(broken)? {
        return Ok(());
    }
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(broken(error)),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&fresh).map_err(broken)?;
    file.set_permissions(Permissions::from_mode(PRIVATE)).map_err(broken)?;
    drop(file);
    fill(&fresh).map_err(|fault| explain(fault, dir))?;
    fs::rename(&fresh, &path).and_then(|()| guard.sync_all()).map_err(broken)
}

/// SQLite gives its other files the permissions of the database.
fn fill(path: &Path) -> Result<(), Fault> {
    let connection = connect(path)?;
    // This one closes for good: the log must be in the database, and gone, before the database is moved.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    schema::migrate(&connection)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// SQLite does not say why it cannot open its log. Trying to write a file beside it tells.
fn explain(fault: Fault, dir: &StateDir) -> StoreError {
    let error = fault.in_database(dir);
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
