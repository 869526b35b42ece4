//! One connection to the database, and the transactions that all operations consist of.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::failpoint::{self, Moment, Step};
use crate::store::changes::Changes;
use crate::store::error::{Result, StoreError};
use crate::store::files::state_dir::StateDir;
use crate::store::sqlite::database::snapshot::{self, Stamp};
use crate::store::sqlite::database::{connect, schema};
use crate::store::sqlite::transaction::{self, Fault, Statements, TxResult};

/// One connection to the database, and the directory that contains it.
#[derive(Debug)]
pub(crate) struct Sqlite {
    pub(crate) connection: Connection,
    pub(crate) dir: StateDir,
    pub(crate) wrote: Cell<bool>,
    /// The open database file; `None` for a snapshot.
    file: Option<FileId>,
    /// The state of the database when a snapshot began; `None` if it is open for writing.
    seen: Option<Stamp>,
}

/// Device and inode.
type FileId = (u64, u64);

impl Sqlite {
    /// A longer log takes more time to read than to empty.
    const LOG_LIMIT: u64 = 64 * 1024;

    /// Opens the database in `dir`, which is created if it does not exist.
    pub(crate) fn open(dir: StateDir) -> Result<Self> {
        let connection = connect::connection(&dir)?;
        let file = file_at(&dir);
        Ok(Self { connection, dir, wrote: Cell::new(false), file, seen: None })
    }

    /// A snapshot of the database in `dir`, valid as long as no process writes; `None` if it must be opened for writing.
    pub(crate) fn look(dir: StateDir) -> Option<Self> {
        let (connection, seen) = snapshot::look(&dir)?;
        Some(Self { connection, dir, wrote: Cell::new(false), file: None, seen: Some(seen) })
    }

    /// Runs one transaction that writes.
    pub(crate) fn write<T>(&self, step: Step, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.wrote.set(true);
        let work = |connection: &Connection| {
            schema::still_known(connection, &self.dir.database())?;
            self.still_there()?;
            let outcome = work(connection)?;
            transaction::meet_full_disk(connection, step)?;
            failpoint::at(step, Moment::Within);
            Ok(outcome)
        };
        failpoint::around(step, || self.transaction(TransactionBehavior::Immediate, work))
    }

    /// Runs several reads of the same state of the database.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, work)
    }

    /// Writes to a database that was removed or replaced would be lost.
    fn still_there(&self) -> Result<()> {
        if self.file.is_none() || file_at(&self.dir) == self.file {
            Ok(())
        } else {
            Err(StoreError::Gone(self.dir.path().to_owned()))
        }
    }

    /// Runs one statement that reads.
    pub(crate) fn query<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        work(&self.connection).map_err(|fault| fault.in_database(self.dir.database()))
    }

    fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> Result<T> {
        let run = || {
            let transaction = Transaction::new_unchecked(&self.connection, behavior)?;
            let outcome = work(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        };
        run().map_err(|fault: Fault| fault.in_database(self.dir.database()))
    }
}

impl Changes for Sqlite {
    fn version_of_others(&self) -> Result<i64> {
        self.still_there()?;
        self.query(|connection| connection.read_one("PRAGMA data_version", [], |row| row.get(0)))
    }

    fn is_unchanged(&self) -> bool {
        snapshot::at_rest(&self.dir) == self.seen
    }

    fn woken_by(&self) -> Vec<PathBuf> {
        vec![self.dir.database(), self.dir.database_log()]
    }
}

fn file_at(dir: &StateDir) -> Option<FileId> {
    let found = fs::metadata(dir.database()).ok()?;
    Some((found.dev(), found.ino()))
}

impl Drop for Sqlite {
    /// The last connection to close copies the log into the database and deletes it, with two syncs. A poll leaves that to
    /// writers (see `connect::connection`), because it would take longer than all of the poll's reads. But if a killed
    /// writer left a long log behind, every poll would have to read it, so a poll removes a long log, too.
    fn drop(&mut self) {
        let long = || fs::metadata(self.dir.database_log()).is_ok_and(|log| log.len() > Self::LOG_LIMIT);
        if self.wrote.get() || long() {
            // If this fails, the next connection to close does it.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
