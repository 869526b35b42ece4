//! The store: one connection to the database, and the transactions that all operations are made of.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::failpoint::{self, Moment, Step};
use crate::store::database::{full_disk, open, schema};
use crate::store::error::{Fault, Result, StoreError, TxResult};
use crate::store::files::ownership::trusted;
use crate::store::files::state_dir::StateDir;

/// One connection to the database, and the directory that contains it.
#[derive(Debug)]
pub struct Store {
    pub(in crate::store) connection: Connection,
    pub(in crate::store) dir: StateDir,
    pub(in crate::store) wrote: Cell<bool>,
    /// The database file that is open; `None`: it is only looked at.
    file: Option<FileId>,
}

/// Device and inode.
type FileId = (u64, u64);

impl Store {
    /// A log of this size takes longer to read than to empty.
    const LOG_LIMIT: u64 = 64 * 1024;

    /// Opens the store in `dir`. Creates the directory and the database if they do not exist.
    ///
    /// # Errors
    ///
    /// `dir` is not a directory, cannot be written, or is on a full disk; the file in it is not a database of agent-cli, or is
    /// one of a newer version.
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = trusted(dir)?;
        let connection = open::connection(&dir)?;
        let file = file_at(&dir);
        let mut store = Self::of(connection, dir);
        store.file = file;
        Ok(store)
    }

    pub(in crate::store) fn of(connection: Connection, dir: StateDir) -> Self {
        Self { connection, dir, wrote: Cell::new(false), file: None }
    }

    /// The state directory.
    #[must_use]
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// One transaction that writes.
    pub(in crate::store) fn write<T>(&self, step: Step, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.wrote.set(true);
        let work = |connection: &Connection| {
            schema::still_known(connection, &self.dir.database())?;
            self.still_there()?;
            let outcome = work(connection)?;
            full_disk::meet_full_disk(connection, step)?;
            failpoint::at(step, Moment::Within);
            Ok(outcome)
        };
        failpoint::around(step, || self.transaction(TransactionBehavior::Immediate, work))
    }

    /// Several reads of one and the same state of the database.
    pub(in crate::store) fn read<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, work)
    }

    /// What is written to a database that was removed or replaced is lost, and nobody else sees it.
    fn still_there(&self) -> Result<()> {
        match self.file.is_none() || file_at(&self.dir) == self.file {
            true => Ok(()),
            false => Err(StoreError::Gone(self.dir.path().to_owned())),
        }
    }

    /// A number that changes when another connection has written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Gone`], or a database that cannot be read.
    pub(crate) fn version_of_others(&self) -> Result<i64> {
        self.still_there()?;
        self.query(|connection| {
            Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
        })
    }

    /// One statement that reads.
    pub(in crate::store) fn query<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
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

fn file_at(dir: &StateDir) -> Option<FileId> {
    let found = fs::metadata(dir.database()).ok()?;
    Some((found.dev(), found.ino()))
}

impl Drop for Store {
    /// The last connection to close copies the log into the database and deletes it, with two syncs. A poll leaves that
    /// to those who write (`open::connection` says so): it would cost a poll more than all its reading. But a log that
    /// a killed writer left behind has to be read by every poll, so a long one is worth the price.
    fn drop(&mut self) {
        let long = || fs::metadata(self.dir.database_log()).is_ok_and(|log| log.len() > Self::LOG_LIMIT);
        if self.wrote.get() || long() {
            // When this fails, the next connection to close does it.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
