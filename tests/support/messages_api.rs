//! A scripted Messages API on loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::conversation::Conversation;
use super::turn::{Turn, events};

/// How long a test waits for something that always comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Messages API whose model is a function. It ends when it is dropped, whatever it still holds back.
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
    /// Its whole body.
    pub body: Value,
    /// The size of the body, in bytes.
    pub bytes: usize,
}

type Model = dyn Fn(&Conversation) -> Turn + Send + Sync;

struct Service {
    model: Box<Model>,
    record: Arc<Record>,
}

#[derive(Default)]
struct Record {
    requests: Mutex<Vec<RecordedRequest>>,
    arrived: Condvar,
}

impl MessagesApi {
    /// Starts on a free port of loopback, in a thread of its own. The model may block: others are answered meanwhile.
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

    /// What `ANTHROPIC_BASE_URL` is to be.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests of agents so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.record.requests().clone()
    }

    /// How many requests agents have made so far.
    pub fn count(&self) -> usize {
        self.record.requests().len()
    }

    /// Waits until the requests are as `done` wants them. It is asked again at every request, before its answer.
    ///
    /// # Panics
    ///
    /// When that does not happen for a minute.
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
        // A panic inside a test's predicate must not hide behind a second one.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, request: RecordedRequest) {
        self.requests().push(request);
        self.arrived.notify_all();
    }
}

fn serve(listener: TcpListener, service: Arc<Service>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the socket is non-blocking");
        let router = Router::new().fallback(answer).with_state(service);
        tokio::select! {
            _ = axum::serve(listener, router) => {}
            _ = stopped => {}
        }
    });
    // Answers that are held back are dropped, not waited for.
    runtime.shutdown_background();
}

async fn answer(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if head.method != Method::POST || !head.uri.path().starts_with("/v1/messages") {
        let found = if head.method == Method::HEAD { StatusCode::OK } else { StatusCode::NOT_FOUND };
        return found.into_response();
    }
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let input_tokens = bytes.len() / 4;
    if head.uri.path().ends_with("/count_tokens") {
        return Json(json!({ "input_tokens": input_tokens })).into_response();
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let name = body["model"].as_str().unwrap_or_default().to_owned();
    let streamed = body["stream"] == true;
    let mut turn = if body["tools"].as_array().is_none_or(Vec::is_empty) {
        Turn::text(r#"{"title": "A task"}"#)
    } else {
        let conversation = Conversation::of(&body);
        let request = RecordedRequest { at: SystemTime::now(), headers: head.headers, body, bytes: bytes.len() };
        service.record.add(request);
        let turn = tokio::task::spawn_blocking(move || (service.model)(&conversation)).await;
        // A client error is not tried again, so the test ends soon and shows why.
        turn.unwrap_or_else(|_| Turn::error(400, "invalid_request_error", "the scripted model panicked"))
    };
    if let Some(hold) = turn.take_hold() {
        // When the client goes away, the server drops this call.
        hold.released().await;
    }
    if let Some(error) = turn.api_error() {
        let mut response = (StatusCode::from_u16(error.status).expect("a status"), Json(&error.body)).into_response();
        for (name, value) in &error.headers {
            let name: header::HeaderName = name.parse().expect("a header's name");
            response.headers_mut().insert(name, value.parse().expect("a header's value"));
        }
        return response;
    }
    let message = turn.message(&name, input_tokens);
    if streamed {
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from(events(&message))).into_response()
    } else {
        Json(message).into_response()
    }
}
