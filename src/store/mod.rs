//! What outlives a process: the database, the files of the state directory, and the lease on a frame.
//!
//! The rest of the program sees a narrow set of transactions and never SQL, so that another database can stand behind
//! the same set. Three rules hold everywhere in here:
//!
//! * Every write is one `BEGIN IMMEDIATE` transaction. A transaction that reads first and writes later fails under
//!   concurrency, whatever the timeout.
//! * A frame changes its state only through [`FrameState::after`](crate::core::state::FrameState::after), and the same
//!   transaction appends the change to the event log.
//! * Nothing waits for a process inside a transaction, and nothing waits for a lease at all.

mod attempts;
pub mod checkpoint;
mod codec;
mod error;
mod events;
mod files;
mod frames;
mod joins;
mod lease;
mod lookup;
mod open;
mod questions;
mod requests;
mod schema;
mod settle;
#[cfg(test)]
mod testing;
mod trees;
mod versions;

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use attempts::{Attempt, NewAttempt, Spent};
use error::Fault;
pub use error::StoreError;
pub use events::EventRecord;
pub use files::StateDir;
pub use frames::NewFrame;
pub use lease::Lease;
pub use lookup::Target;
pub use questions::Question;
pub use requests::Caller;
pub use settle::Settlement;
pub use trees::Summary;

/// What the functions of the store return.
pub type Result<T> = std::result::Result<T, StoreError>;

/// One connection to the database, and the directory that it lies in.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    dir: StateDir,
}

impl Store {
    /// Beyond this size of the write-ahead log, a connection that closes as the last one empties it.
    const LOG_LIMIT: u64 = 256 * 1024;

    /// Opens the store in `dir`. Creates the directory and the database when they are absent.
    ///
    /// # Errors
    ///
    /// `dir` is no directory, cannot be written, or is on a full disk; what lies there is no database of this program,
    /// or one of a newer version of it.
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = StateDir::new(dir)?;
        let connection = open::connection(&dir)?;
        Ok(Self { connection, dir })
    }

    /// The state directory.
    #[must_use]
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// One transaction that writes.
    fn write<T>(&self, work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>) -> Result<T> {
        self.transaction(TransactionBehavior::Immediate, work)
    }

    /// Several reads of one and the same state of the database.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, work)
    }

    /// One statement that reads.
    fn query<T>(&self, work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>) -> Result<T> {
        work(&self.connection).map_err(|fault| fault.in_database(&self.dir))
    }

    fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        let run = || {
            let transaction = Transaction::new_unchecked(&self.connection, behavior)?;
            let outcome = work(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        };
        run().map_err(|fault: Fault| fault.in_database(&self.dir))
    }
}

impl Drop for Store {
    /// The last connection to close would copy the log into the database, with two syncs, and delete it. That is too
    /// much for every poll and every hook, so connections leave the log behind ([`open::connection`] says so), until it
    /// has grown so large that reading it costs the next one more.
    fn drop(&mut self) {
        let log = self.dir.database_log();
        if std::fs::metadata(log).is_ok_and(|log| log.len() > Self::LOG_LIMIT) {
            // When this fails, the next connection to close does it.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
