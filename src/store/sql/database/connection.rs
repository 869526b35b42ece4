//! One connection to the database, and the transactions that all operations consist of.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::{Transaction, TransactionBehavior};

use crate::core::id::FrameId;
use crate::failpoint::{self, Moment, Step};
use crate::store::changes::Changes;
use crate::store::error::{Result, StoreError};
use crate::store::files::state_dir::StateDir;
use crate::store::files::state_dir::server_file::ServerFile;
use crate::store::sql::database::server::{self, Access, Server};
use crate::store::sql::database::snapshot::{self, Stamp};
use crate::store::sql::database::{connect, schema};
use crate::store::sql::engine::object_storage::ObjectStorage;
use crate::store::sql::engine::{Connection, Fault, TxResult, fault};

/// One connection to the database, and the state directory that uses it.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) dir: StateDir,
    pub(crate) wrote: Cell<bool>,
    /// The chains that could not be taken, and when to try again.
    pub(crate) not_taken: RefCell<HashMap<FrameId, Instant>>,
    kept: Kept,
}

/// Where the database is.
#[derive(Debug)]
enum Kept {
    /// In a file of the state directory. `file`: the open file; `None` for a snapshot. `seen`: its state when a snapshot began;
    /// `None` if it is open for writing.
    File {
        file: Option<FileId>,
        seen: Option<Stamp>,
    },
    Server(Server),
}

/// Device and inode.
type FileId = (u64, u64);

impl Database {
    /// A longer log takes more time to read than to empty.
    const LOG_LIMIT: u64 = 64 * 1024;

    /// Opens the database of `dir`, which is created if it does not exist.
    pub(crate) fn open(dir: StateDir) -> Result<Self> {
        if let Some(server) = dir.server()? {
            return Self::on_server(dir, &server);
        }
        let connection = Connection::Sqlite(connect::connection(&dir)?);
        let kept = Kept::File { file: file_at(&dir), seen: None };
        Ok(Self { connection, dir, wrote: Cell::new(false), not_taken: RefCell::default(), kept })
    }

    /// Opens the database on a server, and creates its tables if they do not exist.
    pub(crate) fn on_server(dir: StateDir, server: &ServerFile) -> Result<Self> {
        let (client, server) = server::open(server, &dir)?;
        let (connection, kept) = (Connection::Postgres(client), Kept::Server(server));
        Ok(Self { connection, dir, wrote: Cell::new(false), not_taken: RefCell::default(), kept })
    }

    /// A snapshot of the database in `dir`, valid as long as no process writes; `None` if it must be opened for writing.
    pub(crate) fn look(dir: StateDir) -> Option<Self> {
        // After a move to a server, the file is outdated.
        dir.server().is_ok_and(|server| server.is_none()).then_some(())?;
        let (connection, seen) = snapshot::look(&dir)?;
        let kept = Kept::File { file: None, seen: Some(seen) };
        Some(Self {
            connection: Connection::Sqlite(connection),
            dir,
            wrote: Cell::new(false),
            not_taken: RefCell::default(),
            kept,
        })
    }

    /// Runs one transaction that writes.
    pub(crate) fn write<T>(&self, step: Step, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.fill(step, |connection| {
            if let Some(sqlite) = connection.sqlite() {
                schema::still_known(sqlite, &self.dir.database())?;
            }
            self.still_there()?;
            work(connection)
        })
    }

    /// Runs one transaction that writes, even if the state directory does not use the database yet.
    pub(crate) fn fill<T>(&self, step: Step, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.wrote.set(true);
        let work = |connection: &Connection| {
            let outcome = work(connection)?;
            if let Some(sqlite) = connection.sqlite() {
                fault::meet_full_disk(sqlite, step)?;
            }
            failpoint::at(step, Moment::Within);
            Ok(outcome)
        };
        failpoint::around(step, || self.transaction(TransactionBehavior::Immediate, work))
    }

    /// Runs a transaction that writes only what concerns hosts, beside those that write anything else. `None` if the database is
    /// a file.
    pub(crate) fn beside<T>(&self, step: Step, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<Option<T>> {
        let (Connection::Postgres(client), Kept::Server(server)) = (&self.connection, &self.kept) else {
            return Ok(None);
        };
        self.still_there()?;
        let work = || {
            let outcome = work(&self.connection)?;
            failpoint::at(step, Moment::Within);
            Ok(outcome)
        };
        let done = failpoint::around(step, || server.transaction(client, Access::Beside, work));
        done.map(Some).map_err(|fault| self.named(fault))
    }

    /// The object storage for the files of agents; `None`: the database has them.
    pub(crate) fn object_storage(&self) -> Result<Option<&ObjectStorage>> {
        match &self.kept {
            Kept::File { .. } => Ok(None),
            Kept::Server(server) => server.object_storage(),
        }
    }

    /// Prepares and checks the object storage.
    pub(crate) fn set_up_copies(&self) -> Result<()> {
        match &self.kept {
            Kept::File { .. } => Ok(()),
            Kept::Server(server) => server.set_up_copies(&self.connection),
        }
    }

    /// The address of the object storage for the files of agents; `None`: the database has them.
    pub(crate) fn copies_place(&self) -> Option<&str> {
        match &self.kept {
            Kept::File { .. } => None,
            Kept::Server(server) => server.copies_place(),
        }
    }

    /// Runs several reads of the same state of the database.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, work)
    }

    /// Writes to a database that was removed or replaced would be lost.
    fn still_there(&self) -> Result<()> {
        let is_there = match &self.kept {
            Kept::File { file: None, .. } => true,
            Kept::File { file, .. } => file_at(&self.dir) == *file && self.dir.server()?.is_none(),
            Kept::Server(_) => self.dir.server()?.is_some_and(|now| self.connection.host() == Some(&now.host)),
        };
        if is_there { Ok(()) } else { Err(StoreError::Gone(self.dir.path().to_owned())) }
    }

    /// Runs one statement that reads.
    pub(crate) fn query<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        work(&self.connection).map_err(|fault| self.named(fault))
    }

    fn named(&self, fault: Fault) -> StoreError {
        match &self.kept {
            Kept::File { .. } => fault.in_database(self.dir.database()),
            Kept::Server(server) => fault.in_database(server.place.clone().into()),
        }
    }

    fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> Result<T> {
        let run = || match (&self.connection, &self.kept) {
            (Connection::Sqlite(sqlite), _) => {
                let transaction = Transaction::new_unchecked(sqlite, behavior)?;
                let outcome = work(&self.connection)?;
                transaction.commit()?;
                Ok(outcome)
            }
            (Connection::Postgres(client), Kept::Server(server)) => {
                let access = match behavior {
                    TransactionBehavior::Immediate => Access::Write,
                    _ => Access::Read,
                };
                server.transaction(client, access, || work(&self.connection))
            }
            (Connection::Postgres(_), Kept::File { .. }) => unreachable!("a connection to a server has no file"),
        };
        run().map_err(|fault: Fault| self.named(fault))
    }
}

impl Changes for Database {
    fn version_of_others(&self) -> Result<i64> {
        self.still_there()?;
        self.query(|connection| match connection {
            Connection::Sqlite(_) => connection.read_one("PRAGMA data_version", [], |row| row.get(0)),
            Connection::Postgres(client) => client.version_of_others(),
        })
    }

    fn is_unchanged(&self) -> bool {
        match &self.kept {
            Kept::File { seen, .. } => snapshot::at_rest(&self.dir) == *seen,
            Kept::Server(_) => true,
        }
    }

    fn woken_by(&self) -> Vec<PathBuf> {
        match &self.kept {
            Kept::File { .. } => vec![self.dir.database(), self.dir.database_log()],
            Kept::Server(_) => {
                // If this fails, processes that watch the file still check from time to time.
                if let Connection::Postgres(client) = &self.connection {
                    let _ = client.listen();
                }
                vec![self.dir.notified(), self.dir.server_file()]
            }
        }
    }
}

fn file_at(dir: &StateDir) -> Option<FileId> {
    let found = fs::metadata(dir.database()).ok()?;
    Some((found.dev(), found.ino()))
}

impl Drop for Database {
    /// The last connection to close copies the log into the database and deletes it, with two syncs. A poll leaves that to
    /// writers (see `connect::connection`), because it would take longer than all of the poll's reads. But if a killed
    /// writer left a long log behind, every poll would have to read it, so a poll removes a long log, too.
    fn drop(&mut self) {
        let Some(connection) = self.connection.sqlite() else { return };
        let long = || fs::metadata(self.dir.database_log()).is_ok_and(|log| log.len() > Self::LOG_LIMIT);
        if self.wrote.get() || long() {
            // If this fails, the next connection to close does it.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
