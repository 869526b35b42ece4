//! A connection to a PostgreSQL server. A thread of its own speaks to it, so that callers need no async code.

use std::cell::Cell;
use std::error::Error as StdError;
use std::future::poll_fn;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::TryStreamExt;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, Type};
use tokio_postgres::{AsyncMessage, Column, Config, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use crate::store::error::StoreError;
use crate::store::files::durable::open_private;
use crate::store::sql::engine::dialect;
use crate::store::sql::engine::fault::{Fault, TxResult};
use crate::store::sql::engine::row::PostgresRow;

/// How long it is tried to reach a server that does not answer, and how long a statement waits for another process's
/// transaction.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries to reach it.
const PAUSE: Duration = Duration::from_millis(200);

/// What every connection sets. A process that is lost within a transaction blocks the others no longer than this.
const SESSION: &str = "SET search_path TO agent_cli; SET lock_timeout = '10s'; SET client_min_messages = 'warning';
    SET idle_in_transaction_session_timeout = '60s'; SET standard_conforming_strings = on";

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Client {
    orders: UnboundedSender<Order>,
    written_by_others: Arc<AtomicI64>,
    listens: Cell<bool>,
    /// Distinguishes what this connection has written from what others have.
    token: String,
    /// The state directory, as the records name it.
    pub(crate) host: String,
}

#[derive(Debug)]
struct Order {
    what: What,
    reply: mpsc::Sender<Result<Answer, Fault>>,
}

#[derive(Debug)]
enum What {
    Statement(String, Vec<Option<String>>),
    /// Statements that open a transaction, or whose end ends one.
    Batch(String),
}

#[derive(Debug, Default)]
struct Answer {
    rows: Vec<PostgresRow>,
    changed: usize,
}

impl Client {
    /// Connects to a server, of which there may be several.
    ///
    /// `notified`: a file that changes when others have written.
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
        self.order(What::Batch(sql.to_owned())).map(drop)
    }

    /// What a transaction that writes notifies others with.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A number that grows when another connection has written.
    pub(crate) fn version_of_others(&self) -> TxResult<i64> {
        self.listen()?;
        Ok(self.written_by_others.load(Ordering::Acquire))
    }

    /// Has the server send what others write.
    pub(crate) fn listen(&self) -> TxResult<()> {
        if self.listens.replace(true) { Ok(()) } else { self.batch("LISTEN agent_cli") }
    }

    fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> TxResult<Answer> {
        let values = values.iter().map(|value| text(*value)).collect::<Result<_, _>>()?;
        self.order(What::Statement(dialect::postgres(sql), values))
    }

    fn order(&self, what: What) -> TxResult<Answer> {
        let (reply, answer) = mpsc::channel();
        let gone = || Fault::Known(StoreError::Server { place: String::new(), why: "its thread has ended".into() });
        self.orders.send(Order { what, reply }).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

/// A parameter as text, of which the server knows the type. It stores no text with a NUL.
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
        ValueRef::Text(_) | ValueRef::Blob(_) => Some(value.as_str()?.replace('\0', "\u{2400}")),
    })
}

/// A parameter for the protocol.
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

/// Counts what other connections have written.
#[derive(Clone)]
struct Others {
    token: String,
    written: Arc<AtomicI64>,
    file: PathBuf,
}

impl Others {
    /// Somebody has written.
    fn note(&self, by: &str) {
        let number = self.written.fetch_add(i64::from(by != self.token), Ordering::Release);
        // Whoever watches it finds the change later, if this fails.
        let _ = open_private(&self.file).and_then(|mut file| {
            file.set_len(0)?;
            write!(file, "{number}")
        });
    }
}

/// The open connection, and what is known about it.
struct Session {
    client: tokio_postgres::Client,
    in_transaction: bool,
}

/// Carries out the orders of a client until it is dropped.
async fn serve(config: Config, mut orders: UnboundedReceiver<Order>, others: Others) {
    let mut session: Option<Session> = None;
    let mut listens = false;
    while let Some(Order { what, reply }) = orders.recv().await {
        let answer = carry_out(&config, &mut session, &mut listens, &what, &others).await;
        // The client may have been dropped.
        let _ = reply.send(answer);
    }
}

async fn carry_out(
    config: &Config,
    session: &mut Option<Session>,
    listens: &mut bool,
    what: &What,
    others: &Others,
) -> Result<Answer, Fault> {
    *listens |= matches!(what, What::Batch(sql) if sql.starts_with("LISTEN"));
    let was_in_transaction = session.as_ref().is_some_and(|session| session.in_transaction);
    let is_closed = session.as_ref().is_none_or(|session| session.client.is_closed());
    let failed = |error: &Error| Fault::Known(explain(config, error));
    if is_closed && !was_in_transaction {
        let again = session.is_some();
        *session = Some(open(config, others).await.map_err(|error| failed(&error))?);
        if again {
            let session_again = format!("{SESSION}{}", if *listens { "; LISTEN agent_cli" } else { "" });
            let client = &session.as_ref().expect("it was just opened").client;
            client.batch_execute(&session_again).await.map_err(|error| failed(&error))?;
            // Whatever was missed in between.
            others.note("");
        }
    }
    let Some(open) = session else { unreachable!("it was just opened") };
    let answer = execute(&open.client, what).await;
    if let What::Batch(sql) = what {
        open.in_transaction = sql.starts_with("BEGIN") && answer.is_ok();
    }
    answer.map_err(|error| failed(&error))
}

async fn execute(client: &tokio_postgres::Client, what: &What) -> Result<Answer, Error> {
    let (sql, values) = match what {
        What::Batch(sql) => {
            client.batch_execute(sql).await?;
            return Ok(Answer::default());
        }
        What::Statement(sql, values) => (sql, values),
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

/// A value as SQLite would have it.
fn value(row: &tokio_postgres::Row, at: usize, column: &Column) -> Result<Value, Error> {
    let integer = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    Ok(match *column.type_() {
        Type::BOOL => integer(row.try_get::<_, Option<bool>>(at)?.map(i64::from)),
        Type::INT2 => integer(row.try_get::<_, Option<i16>>(at)?.map(i64::from)),
        Type::INT4 => integer(row.try_get::<_, Option<i32>>(at)?.map(i64::from)),
        Type::INT8 => integer(row.try_get(at)?),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map_or(Value::Null, Value::Real),
        _ => row.try_get::<_, Option<String>>(at)?.map_or(Value::Null, Value::Text),
    })
}

/// Opens a connection. A server that is being started, or that has too many connections, is tried again for a while.
async fn open(config: &Config, others: &Others) -> Result<Session, Error> {
    let end = Instant::now() + PATIENCE;
    loop {
        let opened = match tls(config) {
            Some(tls) => config.connect(tls).await.map(|(client, connection)| follow(client, connection, others)),
            None => config.connect(NoTls).await.map(|(client, connection)| follow(client, connection, others)),
        };
        match opened {
            Ok(client) => return Ok(Session { client, in_transaction: false }),
            Err(error) if Instant::now() < end && is_passing(&error) => sleep(PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// How to encrypt a connection; `None`: not at all. [`protected`] has decided that.
fn tls(config: &Config) -> Option<MakeRustlsConnect> {
    if config.get_ssl_mode() != SslMode::Require {
        return None;
    }
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be read are trusted by nobody.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.expect("the provider has them").with_root_certificates(roots).with_no_client_auth();
    Some(MakeRustlsConnect::new(config))
}

/// The settings of a connection that nobody on the way can read: a server on another machine must encrypt it, with a certificate
/// that this machine trusts, unless the address says otherwise.
pub(crate) fn protected(mut config: Config) -> Config {
    let is_here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    };
    if config.get_ssl_mode() == SslMode::Prefer && !config.get_hosts().iter().all(is_here) {
        config.ssl_mode(SslMode::Require);
    }
    config
}

/// Has a task speak to the server, and note what it sends by itself.
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
                    // Whoever waits for a notification looks again, and connects again.
                    others.note("");
                    break;
                }
            }
        }
    });
    client
}

/// Whether an error may be over in a moment.
fn is_passing(error: &Error) -> bool {
    let states = [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS];
    error.code().is_some_and(|code| states.contains(code))
}

/// A server, without a password.
pub(crate) fn place(config: &Config) -> String {
    let host = config.get_hosts().first().map_or_else(String::new, |host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().map_or_else(String::new, |user| format!("{user}@"));
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{host}:{port}/{name}")
}

/// What a person can do about an error.
fn explain(config: &Config, error: &Error) -> StoreError {
    let place = place(config);
    let path = || place.clone().into();
    let Some(found) = error.as_db_error() else {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        return StoreError::Server { place, why };
    };
    match *found.code() {
        SqlState::DISK_FULL => StoreError::Full(path()),
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => StoreError::Busy(path()),
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreError::Server { place, why: found.message().to_owned() }
        }
        _ => StoreError::Server { place, why: found.message().to_owned() },
    }
}
