//! A connection to a PostgreSQL server. A separate thread uses it, so that callers need no async code.
//!
//! The time of a command is mostly that of its round trips, so statements whose answers nobody waits for are sent together with
//! the next one: those that begin and end a transaction that only reads, and reads that are announced with
//! [`Client::send_ahead`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::types::ToSql;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use uuid::Uuid;

use crate::store::error::StoreError;
use crate::store::sql::engine::fault::{Fault, TxResult};
use crate::store::sql::engine::postgres_connecting::Others;
use crate::store::sql::engine::postgres_session::{Answer, Execution, Failure, Order, serve};
use crate::store::sql::engine::postgres_values::texts;
use crate::store::sql::engine::row::PostgresRow;
use crate::store::sql::engine::server_address::{Address, place};

/// Begins a transaction that reads one state of the database.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = 0";

/// How long the end of a process waits for a connection that is busy.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Client {
    orders: UnboundedSender<Order>,
    written_by_others: Arc<AtomicI64>,
    listens: Cell<bool>,
    /// Distinguishes this connection's writes from the writes of other connections.
    token: String,
    /// The name of the state directory in the records.
    pub(crate) host: String,
    reading: Cell<Reading>,
    ahead: RefCell<HashMap<Statement, mpsc::Receiver<Reply>>>,
}

/// The state of a transaction that only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// No such transaction is open.
    No,
    /// Nothing has been read yet, so it can begin again on another connection.
    Begun,
    Read,
}

/// A statement and its values.
type Statement = (String, Vec<Option<String>>);
type Reply = Result<Answer, Failure>;

impl Client {
    /// Prepares to connect to the first server in the address that accepts a connection. The first statement connects.
    ///
    /// `notified`: a file that changes when another connection has written.
    pub(crate) fn new(address: Address, host: String, notified: PathBuf) -> Result<Self, StoreError> {
        let (orders, received) = unbounded_channel();
        let written_by_others = Arc::new(AtomicI64::new(0));
        let token = Uuid::new_v4().simple().to_string();
        let others = Others { token: token.clone(), written: Arc::clone(&written_by_others), file: notified };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StoreError::Server { place: place(&address.config), why: error.to_string() })?;
        thread::Builder::new()
            .name("postgres".into())
            .spawn(move || runtime.block_on(serve(address, received, others)))
            .map_err(|error| StoreError::Server { place: String::new(), why: error.to_string() })?;
        let (listens, reading, ahead) = (Cell::new(false), Cell::new(Reading::No), RefCell::default());
        Ok(Self { orders, written_by_others, listens, token, host, reading, ahead })
    }

    pub(crate) fn rows(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<Vec<PostgresRow>> {
        Ok(self.execute(sql, values)?.rows)
    }

    pub(crate) fn change(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<usize> {
        Ok(self.execute(sql, values)?.changed)
    }

    pub(crate) fn batch(&self, sql: &str) -> TxResult<()> {
        self.wait_for(Execution::Batch(sql.to_owned())).map(drop)
    }

    /// Sends a statement of a transaction that only reads, so that its answer is on its way when [`Self::rows`] asks for it.
    pub(crate) fn send_ahead(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<()> {
        if self.reading.get() == Reading::No {
            return Ok(());
        }
        let statement = (sql.to_owned(), texts(values)?);
        if self.ahead.borrow().contains_key(&statement) {
            return Ok(());
        }
        let reply = self.send(Execution::Ahead(statement.0.clone(), statement.1.clone()))?;
        self.ahead.borrow_mut().insert(statement, reply);
        Ok(())
    }

    /// Begins a transaction that only reads. It ends with [`Self::end_read`].
    pub(crate) fn begin_read(&self) -> TxResult<()> {
        self.wait_for(Execution::Unawaited(BEGIN_READ))?;
        self.reading.set(Reading::Begun);
        Ok(())
    }

    pub(crate) fn end_read(&self) -> TxResult<()> {
        self.ahead.take();
        self.reading.set(Reading::No);
        self.send(Execution::Unawaited("COMMIT")).map(drop)
    }

    /// The payload of the notification that a writing transaction sends.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A number that grows when another connection writes.
    pub(crate) fn version_of_others(&self) -> TxResult<i64> {
        self.listen()?;
        Ok(self.written_by_others.load(Ordering::Acquire))
    }

    /// Makes the server notify this connection of writes.
    pub(crate) fn listen(&self) -> TxResult<()> {
        if self.listens.replace(true) { Ok(()) } else { self.batch("LISTEN agent_cli") }
    }

    fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<Answer> {
        let statement = (sql.to_owned(), texts(values)?);
        let ahead = self.ahead.borrow_mut().remove(&statement);
        let mut answer = match ahead {
            Some(reply) => reply.recv().map_err(|_| has_ended())?,
            None => self.reply(Execution::Statement(statement.0.clone(), statement.1.clone()))?,
        };
        if answer.as_ref().is_err_and(|failure| failure.is_lost) && self.reading.get() == Reading::Begun {
            self.ahead.take();
            self.begin_read()?;
            answer = self.reply(Execution::Statement(statement.0, statement.1))?;
        }
        if self.reading.get() == Reading::Begun {
            self.reading.set(Reading::Read);
        }
        answer.map_err(|failure| failure.fault)
    }

    fn wait_for(&self, execution: Execution) -> TxResult<Answer> {
        self.reply(execution)?.map_err(|failure| failure.fault)
    }

    fn reply(&self, execution: Execution) -> TxResult<Reply> {
        self.send(execution)?.recv().map_err(|_| has_ended())
    }

    fn send(&self, execution: Execution) -> TxResult<mpsc::Receiver<Reply>> {
        let (reply, answer) = mpsc::channel();
        self.orders.send(Order { execution, reply }).map_err(|_| has_ended())?;
        Ok(answer)
    }
}

impl Drop for Client {
    /// What was sent should reach the server before the process ends.
    fn drop(&mut self) {
        if let Ok(sent) = self.send(Execution::End) {
            let _ = sent.recv_timeout(LAST_WORDS);
        }
    }
}

fn has_ended() -> Fault {
    Fault::Known(StoreError::Server { place: String::new(), why: "its thread has ended".into() })
}
