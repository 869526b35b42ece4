//! The thread that talks to a PostgreSQL server: it connects, reconnects, and executes what a client orders.

use std::cell::Cell;
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use rusqlite::types::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::Type;
use tokio_postgres::{Config, Error, RowStream, Statement};

use crate::store::error::StoreError;
use crate::store::sql::engine::dialect;
use crate::store::sql::engine::fault::Fault;
use crate::store::sql::engine::postgres_connecting::{Others, begin, open, settings};
use crate::store::sql::engine::postgres_values::{Parameter, value};
use crate::store::sql::engine::row::PostgresRow;
use crate::store::sql::engine::server_address::{Address, explain, place};

/// How often to look for writes of others of which no notification came.
const LOOKS: Duration = Duration::from_secs(30);
/// The same if a pooler keeps notifications from coming.
const LOOKS_IN_POOL: Duration = Duration::from_secs(2);

/// A statement that is executed so often on one connection is prepared, which takes a round trip, and saves parsing and planning.
const PREPARED_FROM: u32 = 3;

/// What a client wants executed.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) execution: Execution,
    /// Nobody may be waiting for it.
    pub(crate) reply: mpsc::Sender<Result<Answer, Failure>>,
}

#[derive(Debug)]
pub(crate) enum Execution {
    Statement(String, Vec<Option<String>>),
    /// A statement that reads, and whose answer is needed later.
    Ahead(String, Vec<Option<String>>),
    /// Statements without parameters, such as those that begin or end a transaction.
    Batch(String),
    /// Statements that begin or end a transaction that only reads. The reply says that they were sent.
    Unawaited(&'static str),
    /// Nothing more. The reply says that everything was sent.
    End,
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<PostgresRow>,
    pub(crate) changed: usize,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// Whether the connection was lost.
    pub(crate) is_lost: bool,
}

/// The open connection and its state.
struct Session {
    client: Arc<tokio_postgres::Client>,
    statements: HashMap<String, Known>,
    in_transaction: bool,
    /// Whether a statement of the transaction has failed.
    has_failed: bool,
    is_lost: Rc<Cell<bool>>,
    has_answered: Arc<AtomicBool>,
}

/// A statement that was executed on this connection.
struct Known {
    sql: Arc<str>,
    executed: u32,
    prepared: Option<Statement>,
}

/// A statement to execute now.
enum Executable {
    Text(Arc<str>),
    Prepared(Statement),
}

/// Statements that were sent ahead, until they are answered. The connection hangs if nobody receives the answers.
type Ahead = FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>>;

/// Carries out a client's orders until the client is dropped.
pub(crate) async fn serve(address: Address, mut orders: UnboundedReceiver<Order>, others: Others) {
    let Address { config, is_pooled, .. } = address;
    let ahead = FuturesUnordered::new();
    let mut server = Executor { config, is_pooled, others, session: None, listening: None, has_missed: false, ahead };
    loop {
        let looks_at = server.listening.as_ref().map(|listening| listening.looks_at);
        let order = tokio::select! {
            biased;
            Some(()) = server.ahead.next() => continue,
            order = orders.recv() => order,
            () = sleep_until(looks_at.unwrap_or_else(Instant::now)), if looks_at.is_some() => {
                server.look_for_writes().await;
                continue;
            }
        };
        let Some(Order { execution, reply }) = order else { break };
        server.carry_out(execution, reply).await;
    }
}

struct Executor {
    config: Config,
    is_pooled: bool,
    others: Others,
    session: Option<Session>,
    /// `None`: nothing waits for writes of others.
    listening: Option<Listening>,
    /// Whether others may have written while there was no connection.
    has_missed: bool,
    ahead: Ahead,
}

/// When to look for writes of others, and the result of the last look.
struct Listening {
    /// How many transactions had written.
    writes: Option<i64>,
    looks_at: Instant,
}

impl Executor {
    async fn carry_out(&mut self, execution: Execution, reply: mpsc::Sender<Result<Answer, Failure>>) {
        match execution {
            Execution::Ahead(sql, values) => match self.executable(&sql).await {
                Ok((client, executable)) => {
                    let config = self.config.clone();
                    let lost = self.session.as_ref().map(|session| Rc::clone(&session.is_lost));
                    let mut answer = Box::pin(async move {
                        let answer = execute(&client, &executable, &values).await;
                        if answer.as_ref().is_err_and(is_lost) {
                            lost.iter().for_each(|lost| lost.set(true));
                        }
                        let _ = reply.send(answer.map_err(|error| failure(&config, &error)));
                    });
                    // The first poll sends it.
                    if answer.as_mut().now_or_never().is_none() {
                        self.ahead.push(answer);
                    }
                }
                Err(error) => {
                    self.note_lost(&error);
                    drop(reply.send(Err(failure(&self.config, &error))));
                }
            },
            Execution::End => {
                // The task of the connection writes what was sent.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                let _ = reply.send(Ok(Answer::default()));
            }
            Execution::Unawaited(sql) => {
                let begins = sql.starts_with("BEGIN");
                if let (Some(session), true) = (&mut self.session, begins) {
                    // An earlier one was lost.
                    session.in_transaction = false;
                }
                let connected = if begins { self.connected().await.map(drop) } else { Ok(()) };
                if let (Some(session), Ok(())) = (&mut self.session, &connected) {
                    let sql = if begins { begin(self.is_pooled, sql) } else { sql.to_owned() };
                    (session.in_transaction, session.has_failed) = (begins, false);
                    let client = Arc::clone(&session.client);
                    self.send(&client, &sql, !begins).await;
                }
                let answer = connected.map(|()| Answer::default()).map_err(|error| failure(&self.config, &error));
                let _ = reply.send(answer);
            }
            execution => {
                let answer = self.answer(&execution).await;
                // The client may have been dropped.
                let _ = reply.send(answer);
            }
        }
    }

    /// Executes an order. Repeats it if the connection was lost and no transaction was open.
    async fn answer(&mut self, execution: &Execution) -> Result<Answer, Failure> {
        if matches!(execution, Execution::Batch(sql) if sql.starts_with("LISTEN")) {
            self.listening = Some(Listening { writes: None, looks_at: Instant::now() });
            if self.is_pooled {
                self.look_for_writes().await;
                return Ok(Answer::default());
            }
        }
        // A server that cannot be reached was waited for.
        self.connected().await.map_err(|error| failure(&self.config, &error))?;
        let mut answer = self.in_session(execution).await;
        let was_in_transaction = self.session.as_ref().is_some_and(|session| session.in_transaction);
        if let Err(error) = &answer
            && self.note_lost(error)
            && !was_in_transaction
        {
            self.connected().await.map_err(|error| failure(&self.config, &error))?;
            answer = self.in_session(execution).await;
        }
        if answer.is_ok() {
            self.note_answer();
        }
        if let (Some(open), Execution::Batch(sql)) = (&mut self.session, execution) {
            if sql.starts_with("BEGIN") {
                (open.in_transaction, open.has_failed) = (true, false);
            } else if sql.ends_with("COMMIT") || sql == "ROLLBACK" {
                // The server rolls back a failed transaction on COMMIT without reporting an error.
                let is_undone = sql.ends_with("COMMIT") && open.has_failed;
                (open.in_transaction, open.has_failed) = (false, false);
                if is_undone {
                    let why = "a statement of the transaction has failed".to_owned();
                    let fault = Fault::Known(StoreError::Server { place: place(&self.config), why });
                    return Err(Failure { fault, is_lost: false });
                }
            }
        }
        if let (Some(open), Err(_)) = (&mut self.session, &answer) {
            open.has_failed |= open.in_transaction;
        }
        answer.map_err(|error| failure(&self.config, &error))
    }

    async fn in_session(&mut self, execution: &Execution) -> Result<Answer, Error> {
        match execution {
            Execution::Batch(sql) => {
                let client = self.connected().await?;
                let sql = if sql.starts_with("BEGIN") { begin(self.is_pooled, sql) } else { sql.to_owned() };
                beside(&mut self.ahead, client.batch_execute(&sql)).await.map(|()| Answer::default())
            }
            Execution::Statement(sql, values) => {
                let (client, executable) = self.executable(sql).await?;
                let is_alone = self.is_pooled && self.session.as_ref().is_some_and(|open| !open.in_transaction);
                if is_alone {
                    self.send(&client, &begin(true, "BEGIN"), false).await;
                }
                let answer = beside(&mut self.ahead, execute(&client, &executable, values)).await;
                if is_alone {
                    self.send(&client, "COMMIT", true).await;
                }
                answer
            }
            Execution::Ahead(..) | Execution::Unawaited(_) | Execution::End => Ok(Answer::default()),
        }
    }

    /// Sends statements whose answer is discarded. A pooler closes a connection whose client leaves before the `end` of its
    /// transaction is answered.
    async fn send(&mut self, client: &tokio_postgres::Client, sql: &str, end: bool) {
        let mut answer = pin!(client.batch_execute(sql));
        // The first poll sends it.
        if answer.as_mut().now_or_never().is_none() && end && self.is_pooled {
            let _ = beside(&mut self.ahead, answer).await;
        }
    }

    /// Notes whether the connection was lost, according to an error.
    fn note_lost(&self, error: &Error) -> bool {
        let is_lost = is_lost(error);
        if is_lost {
            self.session.iter().for_each(|session| session.is_lost.set(true));
        }
        is_lost
    }

    /// Notes that the server has answered. Without this, a server that accepts connections and closes them would wake everything
    /// that waits, again and again.
    fn note_answer(&mut self) {
        self.session.iter().for_each(|session| session.has_answered.store(true, Ordering::Relaxed));
        if std::mem::take(&mut self.has_missed) {
            self.others.note("");
        }
    }

    /// Looks whether others have written without a notification.
    async fn look_for_writes(&mut self) {
        let every = if self.is_pooled { LOOKS_IN_POOL } else { LOOKS };
        // A connection that was lost is opened again by whatever needs it.
        let is_idle =
            |session: &Session| !session.in_transaction && !session.is_lost.get() && !session.client.is_closed();
        let is_idle = self.session.as_ref().is_some_and(is_idle);
        let look = Execution::Statement("SELECT number FROM writes".to_owned(), Vec::new());
        let answer = if is_idle { self.in_session(&look).await.ok() } else { None };
        let number = answer.and_then(|answer| match answer.rows.first()?.values.first()? {
            Value::Integer(number) => Some(*number),
            _ => None,
        });
        let Some(listening) = &mut self.listening else { return };
        listening.looks_at = Instant::now() + every;
        if number.is_some() && listening.writes.is_some() && number != listening.writes {
            self.others.note("");
        }
        listening.writes = number.or(listening.writes);
    }

    /// The statement, prepared if it is executed often.
    async fn executable(&mut self, sql: &str) -> Result<(Arc<tokio_postgres::Client>, Executable), Error> {
        let client = self.connected().await?;
        let Some(session) = &mut self.session else { unreachable!("it is connected") };
        if !session.statements.contains_key(sql) {
            let known = Known { sql: dialect::postgres(sql).into(), executed: 0, prepared: None };
            session.statements.insert(sql.to_owned(), known);
        }
        let Some(known) = session.statements.get_mut(sql) else { unreachable!("it was just inserted") };
        known.executed += 1;
        if known.executed >= PREPARED_FROM && known.prepared.is_none() && !self.is_pooled {
            known.prepared = Some(beside(&mut self.ahead, client.prepare(&known.sql)).await?);
        }
        let text = || Executable::Text(Arc::clone(&known.sql));
        Ok((client, known.prepared.clone().map_or_else(text, Executable::Prepared)))
    }

    /// Returns the open connection. Outside of a transaction, opens one if necessary.
    async fn connected(&mut self) -> Result<Arc<tokio_postgres::Client>, Error> {
        let is_open = |open: &&Session| !(open.is_lost.get() || open.client.is_closed()) || open.in_transaction;
        if let Some(open) = self.session.as_ref().filter(is_open) {
            return Ok(Arc::clone(&open.client));
        }
        let has_answered = Arc::default();
        let client = Arc::new(open(&self.config, &self.others, &has_answered, self.session.is_some()).await?);
        if !self.is_pooled {
            // Sends it. If it fails, the connection is lost.
            drop(client.batch_execute(&settings("SET")).now_or_never());
        }
        if self.session.is_some() {
            if self.listening.is_some() && !self.is_pooled {
                client.batch_execute("LISTEN agent_cli").await?;
            }
            // The server did not report writes in the meantime.
            self.has_missed = true;
        }
        let (client_here, statements) = (Arc::clone(&client), HashMap::new());
        let (in_transaction, has_failed, is_lost) = (false, false, Rc::default());
        let session = Session { client: client_here, statements, in_transaction, has_failed, is_lost, has_answered };
        self.session = Some(session);
        Ok(client)
    }
}

/// Whether the connection was lost. A server that closes it says so in the answer to the next statement.
fn is_lost(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    error.is_closed() || matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

fn failure(config: &Config, error: &Error) -> Failure {
    Failure { fault: Fault::Known(explain(config, error)), is_lost: is_lost(error) }
}

/// Waits for an answer, and receives those to what was sent ahead of it.
async fn beside<T>(ahead: &mut Ahead, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            Some(()) = ahead.next() => {}
        }
    }
}

async fn execute(
    client: &tokio_postgres::Client,
    executable: &Executable,
    values: &[Option<String>],
) -> Result<Answer, Error> {
    let parameters: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
    let stream = match executable {
        Executable::Text(sql) => {
            client.query_typed_raw(sql, parameters.iter().map(|value| (value, Type::UNKNOWN))).await?
        }
        Executable::Prepared(statement) => client.query_raw(statement, &parameters).await?,
    };
    rows(pin!(stream)).await
}

async fn rows(mut stream: Pin<&mut RowStream>) -> Result<Answer, Error> {
    let (mut rows, mut names) = (Vec::new(), None);
    while let Some(row) = stream.try_next().await? {
        let names = names.get_or_insert_with(|| {
            row.columns().iter().map(|column| column.name().to_owned()).collect::<Arc<[String]>>()
        });
        let values = row.columns().iter().enumerate().map(|(at, column)| value(&row, at, column));
        rows.push(PostgresRow { names: Arc::clone(names), values: values.collect::<Result<_, _>>()? });
    }
    let changed = stream.rows_affected().unwrap_or(0);
    Ok(Answer { rows, changed: usize::try_from(changed).unwrap_or(usize::MAX) })
}
