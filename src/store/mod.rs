//! What outlives a process: the database, the files of the state directory, and the lease on a frame.
//!
//! The rest of the program sees a narrow set of transactions and never SQL, so that another database can stand behind
//! the same set. Three rules hold everywhere in here:
//!
//! * Every write is one `BEGIN IMMEDIATE` transaction. A transaction that reads first and writes later fails under
//!   concurrency, whatever the timeout.
//! * A frame changes its state only through [`FrameState::after`](crate::core::chain::state::FrameState::after), and the same
//!   transaction appends the change to the event log.
//! * Nothing waits for a process inside a transaction, and nothing waits for a lease at all.

mod attempts;
mod chains;
mod database;
pub mod files;
pub mod housekeeping;
mod requests;

#[cfg(test)]
mod testing;

use std::cell::Cell;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use crate::store::attempts::attempt::{Attempt, NewAttempt, Spent};
pub use crate::store::attempts::settlement::Settlement;
pub use crate::store::chains::events::EventRecord;
pub use crate::store::chains::frames::NewFrame;
pub use crate::store::chains::groups::NewGroup;
pub use crate::store::chains::lookup::{Candidate, Target};
pub use crate::store::chains::trees::Summary;
pub use crate::store::chains::worktrees::Worker;
use crate::store::database::error::Fault;
pub use crate::store::database::error::StoreError;
pub use crate::store::files::lease::Lease;
pub use crate::store::files::orphan_files::{Leftover, size};
pub use crate::store::files::state_dir::StateDir;
pub use crate::store::housekeeping::export_error::ArchiveError;
pub use crate::store::housekeeping::fsck::Facts;
pub use crate::store::housekeeping::observed::{Pause, RecordedProgram};
pub use crate::store::housekeeping::removal::Removable;
pub use crate::store::housekeeping::unpack::{Here, Unpacked};
pub use crate::store::requests::questions::Question;
pub use crate::store::requests::request::Caller;

use crate::failpoint::{self, Moment, Step};

/// What the functions of the store return.
pub type Result<T> = std::result::Result<T, StoreError>;

/// One connection to the database, and the directory that it lies in.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    dir: StateDir,
    wrote: Cell<bool>,
}

impl Store {
    /// A log of this size takes longer to read than to empty.
    const LOG_LIMIT: u64 = 64 * 1024;

    /// Opens the store in `dir`. Creates the directory and the database when they are absent.
    ///
    /// # Errors
    ///
    /// `dir` is no directory, cannot be written, or is on a full disk; what lies there is no database of this program,
    /// or one of a newer version of it.
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = StateDir::new(dir)?;
        let connection = database::open::connection(&dir)?;
        Ok(Self::of(connection, dir))
    }

    fn of(connection: Connection, dir: StateDir) -> Self {
        Self { connection, dir, wrote: Cell::new(false) }
    }

    /// The state directory.
    #[must_use]
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// One transaction that writes.
    fn write<T>(&self, step: Step, work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>) -> Result<T> {
        self.wrote.set(true);
        let work = |connection: &Connection| {
            let outcome = work(connection)?;
            database::open::meet_full_disk(connection, step)?;
            failpoint::at(step, Moment::Within);
            Ok(outcome)
        };
        failpoint::around(step, || self.transaction(TransactionBehavior::Immediate, work))
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
    /// The last connection to close copies the log into the database and deletes it, with two syncs. A poll leaves that
    /// to those who write (`database::open::connection` says so): it would cost a poll more than all its reading. But a log that
    /// a killed writer left behind has to be read by every poll, so a long one is worth the price.
    fn drop(&mut self) {
        let long = || std::fs::metadata(self.dir.database_log()).is_ok_and(|log| log.len() > Self::LOG_LIMIT);
        if self.wrote.get() || long() {
            // When this fails, the next connection to close does it.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
