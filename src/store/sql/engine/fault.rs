//! The errors of statements.

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::ffi::{ErrorCode, SQLITE_IOERR_SHMSIZE};

use crate::failpoint::{self, Step};
use crate::store::error::StoreError;

/// The result of functions inside a transaction.
pub(crate) type TxResult<T> = Result<T, Fault>;

/// An error inside a transaction, which does not know the path of the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Known(StoreError),
}

impl Fault {
    pub(crate) fn in_database(self, path: PathBuf) -> StoreError {
        let error = match self {
            Self::Known(error) => return error,
            Self::Sql(error) => error,
        };
        let rusqlite::Error::SqliteFailure(failure, _) = &error else {
            // Everything else is caused by a value that cannot be read back.
            return StoreError::Damaged { path, source: error.into() };
        };
        match failure.code {
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly(path),
            ErrorCode::DiskFull => StoreError::Full(path),
            ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => StoreError::Full(path),
            ErrorCode::NotADatabase => StoreError::NotADatabase(path),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy(path),
            ErrorCode::DatabaseCorrupt => StoreError::Damaged { path, source: error.into() },
            _ => StoreError::Database { path, source: error.into() },
        }
    }
}

impl<E: Into<StoreError>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Known(error.into())
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Makes SQLite report a full disk under test, for as long as this process lives.
pub(crate) fn meet_full_disk(connection: &Connection, step: Step) -> TxResult<()> {
    if failpoint::is_full(step) {
        let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        connection.execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(10000000));")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_failure_of_the_database_is_named_by_what_a_person_can_do() {
        let error = |code| {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            Fault::from(failure).in_database("/s/db".into()).to_string()
        };
        for (code, said) in [
            (ffi::SQLITE_BUSY, "/s/db is locked by another process"),
            (ffi::SQLITE_LOCKED, "/s/db is locked by another process"),
            (ffi::SQLITE_READONLY, "/s/db cannot be written"),
            (ffi::SQLITE_PERM, "/s/db cannot be written"),
            (ffi::SQLITE_FULL, "the disk of /s/db is full"),
            (SQLITE_IOERR_SHMSIZE, "the disk of /s/db is full"),
            (ffi::SQLITE_NOTADB, "/s/db is not a database of agent-cli"),
            (ffi::SQLITE_CORRUPT, "/s/db is damaged"),
        ] {
            assert_eq!(error(code), said, "{code}");
        }
        assert!(matches!(
            Fault::from(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), None))
                .in_database("/s".into()),
            StoreError::Database { .. }
        ));
    }
}
