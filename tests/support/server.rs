//! The server behind [`super::MessagesApi`].

use std::net::TcpListener;
use std::sync::Arc;
use std::time::SystemTime;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::conversation::Conversation;
use super::messages_api::{Record, RecordedRequest, ServedTokens};
use super::turn::{ApiError, Turn};
use super::wire::{HALF_A_CHARACTER, HALF_WRITTEN, events, message};

/// What every answer needs.
pub(super) struct Service {
    /// Decides what the model says.
    pub(super) model: Box<Model>,
    /// Keeps the requests that it was asked.
    pub(super) record: Arc<Record>,
}

type Model = dyn Fn(&Conversation) -> Turn + Send + Sync;

/// Answers until `stopped` is dropped at the other end.
pub(super) fn serve(listener: TcpListener, service: Arc<Service>, stopped: oneshot::Receiver<()>) {
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
    // Answers that are held back are dropped without waiting.
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
    let text = String::from_utf8_lossy(&bytes).replace(HALF_WRITTEN, HALF_A_CHARACTER);
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let streamed = body["stream"] == true;
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    // An agent without tools writes a summary.
    let is_of_agent = has_tools || text.contains("Reply with the summary and nothing else");
    let mut turn = if !is_of_agent {
        // This request is not from an agent. It is a title or a probe, and any answer is fine.
        Turn::text(r#"{"title": "A task"}"#)
    } else {
        ask(Arc::clone(&service), head, body, bytes.len()).await
    };
    if let Some(hold) = turn.take_hold() {
        // When the client goes away, the server drops this call.
        hold.released().await;
    }
    if let Some(error) = turn.api_error() {
        return refusal(error);
    }
    let message = message(&turn, &model, turn.input_tokens().unwrap_or(input_tokens));
    if is_of_agent {
        let tokens = |name: &str| message["usage"][name].as_u64().unwrap_or_default();
        service.record.serve(ServedTokens { input: tokens("input_tokens"), output: tokens("output_tokens") });
    }
    if streamed {
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from(events(&message))).into_response()
    } else {
        Json(message).into_response()
    }
}

/// Records an agent's request and lets the model decide. The model may block.
async fn ask(service: Arc<Service>, head: Parts, body: Value, bytes: usize) -> Turn {
    let conversation = Conversation::of(&body);
    service.record.add(RecordedRequest { at: SystemTime::now(), headers: head.headers, body, bytes });
    let turn = tokio::task::spawn_blocking(move || (service.model)(&conversation)).await;
    // A client error is not retried, so the test ends soon and shows why.
    turn.unwrap_or_else(|_| Turn::error(400, "invalid_request_error", "the scripted model panicked"))
}

fn refusal(error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.status).expect("a status");
    let mut response = (status, Json(&error.body)).into_response();
    for (name, value) in &error.headers {
        let name: HeaderName = name.parse().expect("a header's name");
        response.headers_mut().insert(name, value.parse().expect("a header's value"));
    }
    response
}
