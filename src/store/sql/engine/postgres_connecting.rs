//! Opens connections to a PostgreSQL server, with the settings that all statements need.

use std::future::poll_fn;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Config, Error, NoTls, Socket};

use crate::store::files::durable::open_private;
use crate::store::sql::engine::server_address::tls;

/// How long to retry connecting to a server that is starting or has too many connections.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before each retry.
const PAUSE: Duration = Duration::from_millis(200);

/// The settings of every transaction. The timeouts limit how long a process that hangs in a transaction, or a host that is lost in one,
/// can block others: not until they lose their leases, which they renew every 15 seconds and which end after 45, and not until they give
/// up waiting. All
/// statements have the indices that they need, whatever the server's statistics say, and compiling them takes longer than
/// executing them.
const SETTINGS: [&str; 7] = [
    "search_path TO agent_cli", "lock_timeout = '25s'", "client_min_messages = 'warning'",
    "idle_in_transaction_session_timeout = '20s'", "standard_conforming_strings = on", "jit = off",
    "enable_seqscan = off",
];

/// Counts the writes of other connections.
#[derive(Clone)]
pub(crate) struct Others {
    pub(crate) token: String,
    pub(crate) written: Arc<AtomicI64>,
    pub(crate) file: PathBuf,
}

impl Others {
    /// Notes a write. `by`: the token of the connection that has written.
    pub(crate) fn note(&self, by: &str) {
        let number = self.written.fetch_add(i64::from(by != self.token), Ordering::Release);
        // If this fails, processes that watch the file find the change later.
        let _ = open_private(&self.file).and_then(|mut file| {
            file.set_len(0)?;
            write!(file, "{number}")
        });
    }
}

pub(crate) fn settings(command: &str) -> String {
    SETTINGS.map(|setting| format!("{command} {setting}; ")).concat()
}

/// The statements that begin a transaction. In a pool, it may use another connection of the server than the last one.
pub(crate) fn begin(is_pooled: bool, sql: &str) -> String {
    if !is_pooled {
        return sql.to_owned();
    }
    let (begin, rest) = sql.split_once(';').unwrap_or((sql, ""));
    format!("{begin}; {}{rest}", settings("SET LOCAL"))
}

/// Opens a connection. Retries for a while if the server is starting or has too many connections.
pub(crate) async fn open(
    config: &Config,
    others: &Others,
    has_answered: &Arc<AtomicBool>,
    again: bool,
) -> Result<tokio_postgres::Client, Error> {
    let end = Instant::now() + PATIENCE;
    loop {
        let opened = match tls(config) {
            Some(tls) => {
                config.connect(tls).await.map(|(client, connection)| follow(client, connection, others, has_answered))
            }
            None => {
                config.connect(NoTls).await.map(|(client, connection)| follow(client, connection, others, has_answered))
            }
        };
        match opened {
            Ok(client) => return Ok(client),
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
    has_answered: &Arc<AtomicBool>,
) -> tokio_postgres::Client
where
    S: TlsStream + Unpin + Send + 'static,
{
    let (others, has_answered) = (others.clone(), Arc::clone(has_answered));
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(note)) => others.note(note.payload()),
                Ok(_) => {}
                Err(_) => {
                    // Waiting processes then query the server, and so reconnect.
                    if has_answered.load(Ordering::Relaxed) {
                        others.note("");
                    }
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
