//! What the scripted model answers, and how that looks on the wire.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// One answer of the model: text, tool calls, both, or an error of the API.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    text: Option<String>,
    calls: Vec<ToolCall>,
    error: Option<ApiError>,
    hold: Option<Hold>,
}

/// A tool call that the model makes.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub input: Value,
}

/// Keeps answers back until it is released, so that a test can act in the middle of a request.
#[derive(Clone)]
pub struct Hold(Arc<Semaphore>);

#[derive(Debug, Clone)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Turn {
    /// The model says `text` and ends its turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// The model calls a tool.
    pub fn call(name: &str, input: Value) -> Self {
        Self::default().and_call(name, input)
    }

    /// The model runs a command.
    pub fn bash(command: &str) -> Self {
        Self::default().and_bash(command)
    }

    /// The API answers with an error, for example 401 `authentication_error`, 429 `rate_limit_error` or 529
    /// `overloaded_error`.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self { error: Some(ApiError { status, headers: Vec::new(), body }), ..Self::default() }
    }

    /// The same answer with one more tool call.
    #[must_use]
    pub fn and_call(mut self, name: &str, input: Value) -> Self {
        self.calls.push(ToolCall { name: name.to_owned(), input });
        self
    }

    /// The same answer with one more command.
    #[must_use]
    pub fn and_bash(self, command: &str) -> Self {
        self.and_call("Bash", json!({"command": command, "description": "Run a command"}))
    }

    /// The same error with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(error) = &mut self.error {
            error.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same answer, but not before `hold` is released.
    #[must_use]
    pub fn held(mut self, hold: &Hold) -> Self {
        self.hold = Some(hold.clone());
        self
    }

    /// What the model says.
    pub fn said(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The tools that the model calls.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.calls
    }

    pub(super) fn take_hold(&mut self) -> Option<Hold> {
        self.hold.take()
    }

    pub(super) fn api_error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }

    /// The answer in one piece.
    pub(super) fn message(&self, model: &str, input_tokens: usize) -> Value {
        let content = self.content();
        let output_tokens = content.iter().map(|block| block.to_string().len() / 4).sum::<usize>();
        json!({
            "id": id("msg"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": if self.calls.is_empty() { "end_turn" } else { "tool_use" }, "stop_sequence": null,
            "usage": {
                "input_tokens": input_tokens, "output_tokens": output_tokens,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            },
        })
    }

    fn content(&self) -> Vec<Value> {
        let text = self.text.iter().map(|text| json!({"type": "text", "text": text}));
        let calls = self
            .calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": id("toolu"), "name": call.name, "input": call.input}));
        text.chain(calls).collect()
    }
}

impl Hold {
    /// Keeps back every answer that it is given to.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets them go, those to come as well.
    pub fn release(&self) {
        self.0.close();
    }

    pub(super) async fn released(&self) {
        // There is never a permit: the wait ends when the semaphore is closed.
        let _closed = self.0.acquire().await;
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hold(released: {})", self.0.is_closed())
    }
}

/// A whole message as the server-sent events that stream it.
pub(super) fn events(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut opening = block.clone();
        let delta = if block["type"] == "text" {
            opening["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            opening["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": opening}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": {"output_tokens": message["usage"]["output_tokens"]},
    }));
    events.push(json!({"type": "message_stop"}));
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

/// Ids are random: one conversation may meet more than one server.
fn id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}
