//! A connection to a PostgreSQL server. A separate thread uses it, so that callers need no async code.

use std::cell::Cell;
use std::error::Error as StdError;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::TryStreamExt;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, Type};
use tokio_postgres::{AsyncMessage, Column, Config, Error, NoTls, Socket};
use uuid::Uuid;

use crate::store::error::StoreError;
use crate::store::files::durable::open_private;
use crate::store::sql::engine::dialect;
use crate::store::sql::engine::fault::{Fault, TxResult};
use crate::store::sql::engine::row::PostgresRow;
use crate::store::sql::engine::server_address::{explain, place, tls};

/// How long to retry connecting to a server that is starting or has too many connections.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before each retry.
const PAUSE: Duration = Duration::from_millis(200);

/// The settings of every connection. The timeouts limit how long a process that hangs in a transaction can block others.
const SESSION: &str = "SET search_path TO agent_cli; SET lock_timeout = '10s'; SET client_min_messages = 'warning';
    SET idle_in_transaction_session_timeout = '60s'; SET standard_conforming_strings = on";

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
}

#[derive(Debug)]
struct Order {
    execution: Execution,
    reply: mpsc::Sender<Result<Answer, Fault>>,
}

#[derive(Debug)]
enum Execution {
    Statement(String, Vec<Option<String>>),
    /// Statements without parameters, such as those that begin or end a transaction.
    Batch(String),
}

#[derive(Debug, Default)]
struct Answer {
    rows: Vec<PostgresRow>,
    changed: usize,
}

impl Client {
    /// Connects to the first server in the address that accepts a connection.
    ///
    /// `notified`: a file that changes when another connection has written.
    pub(crate) fn connect(config: Config, host: String, notified: PathBuf) -> Result<Self, StoreError> {
        let (orders, received) = unbounded_channel();
        let written_by_others = Arc::new(AtomicI64::new(0));
        let token = Uuid::new_v4().simple().to_string();
        let others = Others { token: token.clone(), written: Arc::clone(&written_by_others), file: notified };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StoreError::Server { place: place(&config), why: error.to_string() })?;
        thread::Builder::new()
            .name("postgres".into())
            .spawn(move || runtime.block_on(serve(config, received, others)))
            .map_err(|error| StoreError::Server { place: String::new(), why: error.to_string() })?;
        let client = Self { orders, written_by_others, listens: Cell::new(false), token, host };
        client.batch(SESSION).map_err(Fault::into_error)?;
        Ok(client)
    }

    pub(crate) fn rows(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<Vec<PostgresRow>> {
        Ok(self.execute(sql, values)?.rows)
    }

    pub(crate) fn change(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<usize> {
        Ok(self.execute(sql, values)?.changed)
    }

    pub(crate) fn batch(&self, sql: &str) -> TxResult<()> {
        self.order(Execution::Batch(sql.to_owned())).map(drop)
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
        let values = values.iter().map(|value| text(*value)).collect::<Result<_, _>>()?;
        self.order(Execution::Statement(dialect::postgres(sql), values))
    }

    fn order(&self, execution: Execution) -> TxResult<Answer> {
        let (reply, answer) = mpsc::channel();
        let gone = || Fault::Known(StoreError::Server { place: String::new(), why: "its thread has ended".into() });
        self.orders.send(Order { execution, reply }).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

/// A parameter as text: the server knows its type. PostgreSQL cannot store NUL.
fn text(value: &dyn ToSql) -> rusqlite::Result<Option<String>> {
    let output = value.to_sql()?;
    let value = match &output {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        _ => return Err(rusqlite::Error::InvalidQuery),
    };
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(format!("{number:?}")),
        ValueRef::Text(_) => Some(value.as_str()?.replace('\0', "\u{2400}")),
        ValueRef::Blob(bytes) => {
            let mut text = String::with_capacity(2 + 2 * bytes.len());
            text.push_str("\\x");
            bytes.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            Some(text)
        }
    })
}

/// A parameter in the protocol's text format.
#[derive(Debug)]
struct Parameter<'a>(&'a Option<String>);

impl tokio_postgres::types::ToSql for Parameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(text) = self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

/// Counts the writes of other connections.
#[derive(Clone)]
struct Others {
    token: String,
    written: Arc<AtomicI64>,
    file: PathBuf,
}

impl Others {
    /// Notes a write. `by`: the token of the connection that has written.
    fn note(&self, by: &str) {
        let number = self.written.fetch_add(i64::from(by != self.token), Ordering::Release);
        // If this fails, processes that watch the file find the change later.
        let _ = open_private(&self.file).and_then(|mut file| {
            file.set_len(0)?;
            write!(file, "{number}")
        });
    }
}

/// The open connection and its state.
struct Session {
    client: tokio_postgres::Client,
    in_transaction: bool,
    /// Whether a statement of the transaction has failed.
    has_failed: bool,
}

/// Carries out a client's orders until the client is dropped.
async fn serve(config: Config, mut orders: UnboundedReceiver<Order>, others: Others) {
    let mut session: Option<Session> = None;
    let mut listens = false;
    while let Some(Order { execution, reply }) = orders.recv().await {
        let answer = carry_out(&config, &mut session, &mut listens, &execution, &others).await;
        // The client may have been dropped.
        let _ = reply.send(answer);
    }
}

async fn carry_out(
    config: &Config,
    session: &mut Option<Session>,
    listens: &mut bool,
    execution: &Execution,
    others: &Others,
) -> Result<Answer, Fault> {
    *listens |= matches!(execution, Execution::Batch(sql) if sql.starts_with("LISTEN"));
    let failed = |error: &Error| Fault::Known(explain(config, error));
    if session.as_ref().is_none_or(|session| session.client.is_closed() && !session.in_transaction) {
        reopen(config, session, *listens, others).await.map_err(|error| failed(&error))?;
    }
    let mut answer = in_session(session, execution).await;
    // No transaction was open, so the order can be repeated.
    let is_lost = |session: &Session, error: &Error| error.is_closed() && !session.in_transaction;
    if let (Some(open), Err(error)) = (&*session, &answer)
        && is_lost(open, error)
    {
        reopen(config, session, *listens, others).await.map_err(|error| failed(&error))?;
        answer = in_session(session, execution).await;
    }
    if let (Some(open), Execution::Batch(sql)) = (&mut *session, execution) {
        if sql.starts_with("BEGIN") {
            (open.in_transaction, open.has_failed) = (true, false);
        } else if sql.ends_with("COMMIT") || sql == "ROLLBACK" {
            // The server rolls back a failed transaction on COMMIT without reporting an error.
            let is_undone = sql.ends_with("COMMIT") && open.has_failed;
            (open.in_transaction, open.has_failed) = (false, false);
            if is_undone {
                let why = "a statement of the transaction has failed".to_owned();
                return Err(Fault::Known(StoreError::Server { place: place(config), why }));
            }
        }
    }
    if let (Some(open), Err(_)) = (session, &answer) {
        open.has_failed |= open.in_transaction;
    }
    answer.map_err(|error| failed(&error))
}

async fn in_session(session: &Option<Session>, execution: &Execution) -> Result<Answer, Error> {
    let Some(open) = session else { unreachable!("it was just opened") };
    execute(&open.client, execution).await
}

/// Opens a connection, perhaps in place of one that was lost.
async fn reopen(config: &Config, session: &mut Option<Session>, listens: bool, others: &Others) -> Result<(), Error> {
    let new = open(config, others, session.is_some()).await?;
    if session.is_some() {
        let listen = if listens { "; LISTEN agent_cli" } else { "" };
        new.client.batch_execute(&format!("{SESSION}{listen}")).await?;
        // The server did not report writes in the meantime.
        others.note("");
    }
    *session = Some(new);
    Ok(())
}

async fn execute(client: &tokio_postgres::Client, execution: &Execution) -> Result<Answer, Error> {
    let (sql, values) = match execution {
        Execution::Batch(sql) => {
            client.batch_execute(sql).await?;
            return Ok(Answer::default());
        }
        Execution::Statement(sql, values) => (sql, values),
    };
    let parameters: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
    let typed = parameters.iter().map(|value| (value, Type::UNKNOWN));
    let stream = client.query_typed_raw(sql, typed).await?;
    futures_util::pin_mut!(stream);
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

/// A value with the type that SQLite would return.
fn value(row: &tokio_postgres::Row, at: usize, column: &Column) -> Result<Value, Error> {
    let integer = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    Ok(match *column.type_() {
        Type::BOOL => integer(row.try_get::<_, Option<bool>>(at)?.map(i64::from)),
        Type::INT2 => integer(row.try_get::<_, Option<i16>>(at)?.map(i64::from)),
        Type::INT4 => integer(row.try_get::<_, Option<i32>>(at)?.map(i64::from)),
        Type::INT8 => integer(row.try_get(at)?),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Value::Null, Value::Blob),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map_or(Value::Null, Value::Real),
        _ => row.try_get::<_, Option<String>>(at)?.map_or(Value::Null, Value::Text),
    })
}

/// Opens a connection. Retries for a while if the server is starting or has too many connections.
async fn open(config: &Config, others: &Others, again: bool) -> Result<Session, Error> {
    let end = Instant::now() + PATIENCE;
    loop {
        let opened = match tls(config) {
            Some(tls) => config.connect(tls).await.map(|(client, connection)| follow(client, connection, others)),
            None => config.connect(NoTls).await.map(|(client, connection)| follow(client, connection, others)),
        };
        match opened {
            Ok(client) => return Ok(Session { client, in_transaction: false, has_failed: false }),
            Err(error) if Instant::now() < end && is_passing(&error, again) => sleep(PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// Starts a task that exchanges messages with the server and notes its notifications.
fn follow<S>(
    client: tokio_postgres::Client,
    mut connection: tokio_postgres::Connection<Socket, S>,
    others: &Others,
) -> tokio_postgres::Client
where
    S: TlsStream + Unpin + Send + 'static,
{
    let others = others.clone();
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(note)) => others.note(note.payload()),
                Ok(_) => {}
                Err(_) => {
                    // Waiting processes then query the server, and so reconnect.
                    others.note("");
                    break;
                }
            }
        }
    });
    client
}

/// Whether a retry may succeed soon.
fn is_passing(error: &Error, again: bool) -> bool {
    let states = [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS];
    // A server that is being restarted refuses connections for a moment.
    error.code().map_or(again, |code| states.contains(code))
}
