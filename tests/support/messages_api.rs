//! A scripted Messages API on loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use serde_json::Value;
use tokio::sync::oneshot;

use super::conversation::Conversation;
use super::server::{Service, serve};
use super::turn::Turn;

/// How long a test waits for something that always happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Messages API whose model is a function. It ends when it is dropped, even if it still holds answers back.
pub struct MessagesApi {
    address: SocketAddr,
    record: Arc<Record>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A request of an agent. Side requests (titles, quota probes) have no tools, and are not recorded.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// When it came.
    pub at: SystemTime,
    /// Its headers.
    pub headers: HeaderMap,
    pub body: Value,
    /// The size of the body, in bytes.
    pub bytes: usize,
}

/// What the API says that an answer has cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServedTokens {
    /// Sent to it.
    pub input: u64,
    /// Generated.
    pub output: u64,
}

#[derive(Default)]
pub(super) struct Record {
    requests: Mutex<Vec<RecordedRequest>>,
    served: Mutex<Vec<ServedTokens>>,
    arrived: Condvar,
}

impl MessagesApi {
    /// Starts on a free port of loopback, in its own thread. The model may block: other requests are answered meanwhile.
    pub fn start(model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let record = Arc::new(Record::default());
        let service = Arc::new(Service { model: Box::new(model), record: Arc::clone(&record) });
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || serve(listener, service, stopped));
        Self { address, record, stop: Some(stop), thread: Some(thread) }
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests of agents so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.record.requests().clone()
    }

    /// What the last request says.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn last_conversation(&self) -> Conversation {
        self.record.requests().last().expect("a request was made").conversation()
    }

    /// What agents were answered so far. Errors and answers that are still held back cost nothing.
    pub fn served(&self) -> Vec<ServedTokens> {
        self.record.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests agents have made so far.
    pub fn count(&self) -> usize {
        self.record.requests().len()
    }

    /// Waits until `done` is true for the requests. It is checked again at every request, before the answer.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub fn wait_until(&self, mut done: impl FnMut(&[RecordedRequest]) -> bool) {
        let requests = self.record.requests();
        let waited = self.record.arrived.wait_timeout_while(requests, PATIENCE, |requests| !done(requests));
        let (requests, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!outcome.timed_out(), "waited {PATIENCE:?} in vain; there were {} requests", requests.len());
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl RecordedRequest {
    /// The model that was asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The id of the Claude session, which Claude Code sends as a header.
    pub fn session(&self) -> Option<&str> {
        self.headers.get("x-claude-code-session-id").and_then(|id| id.to_str().ok())
    }

    /// The system prompt.
    pub fn system(&self) -> &Value {
        &self.body["system"]
    }

    /// The tools on offer.
    pub fn tools(&self) -> &Value {
        &self.body["tools"]
    }

    /// The messages.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The request as the model sees it.
    pub fn conversation(&self) -> Conversation {
        Conversation::of(&self.body)
    }

    /// Roughly how many tokens it has.
    pub fn tokens(&self) -> usize {
        self.bytes / 4
    }
}

impl Record {
    fn requests(&self) -> MutexGuard<'_, Vec<RecordedRequest>> {
        // A panic inside a test's predicate must not be hidden by a second one.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn serve(&self, tokens: ServedTokens) {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).push(tokens);
    }

    pub(super) fn add(&self, request: RecordedRequest) {
        self.requests().push(request);
        self.arrived.notify_all();
    }
}
