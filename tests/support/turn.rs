//! What the scripted model answers.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One answer of the model: text, tool calls, both, or an error of the API.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    text: Option<String>,
    calls: Vec<ToolCall>,
    error: Option<ApiError>,
    hold: Option<Hold>,
    input_tokens: Option<usize>,
}

/// A tool call that the model makes.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub input: Value,
    /// Its id; `None`: a new one.
    pub id: Option<String>,
}

/// Holds answers back until it is released, so that a test can act in the middle of a request.
#[derive(Clone)]
pub struct Hold(Arc<Semaphore>);

#[derive(Debug, Clone)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl ToolCall {
    /// A call of a tool.
    pub fn new(name: &str, input: Value) -> Self {
        Self { name: name.to_owned(), input, id: None }
    }

    /// The same call with this id.
    #[must_use]
    pub fn with_id(self, id: &str) -> Self {
        Self { id: Some(id.to_owned()), ..self }
    }

    /// Loads tools, named with commas between them: newer versions offer some only on request.
    pub fn load(tools: &str) -> Self {
        Self::new("ToolSearch", json!({"query": format!("select:{tools}"), "max_results": 9}))
    }

    /// A command.
    pub fn bash(command: &str) -> Self {
        Self::new("Bash", json!({"command": command, "description": "Run a command"}))
    }
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

    /// The model loads tools, as [`ToolCall::load`] does.
    pub fn load(tools: &str) -> Self {
        Self::default().and(ToolCall::load(tools))
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
    pub fn and_call(self, name: &str, input: Value) -> Self {
        self.and(ToolCall::new(name, input))
    }

    /// The same answer with this tool call, too.
    #[must_use]
    pub fn and(mut self, call: ToolCall) -> Self {
        self.calls.push(call);
        self
    }

    /// The same answer with one more command.
    #[must_use]
    pub fn and_bash(self, command: &str) -> Self {
        self.and(ToolCall::bash(command))
    }

    /// The same error with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(error) = &mut self.error {
            error.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same answer, but only after `hold` is released.
    #[must_use]
    pub fn held(mut self, hold: &Hold) -> Self {
        self.hold = Some(hold.clone());
        self
    }

    /// The same answer, for a request that claims to have had this many tokens.
    #[must_use]
    pub fn after_tokens(mut self, count: usize) -> Self {
        self.input_tokens = Some(count);
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

    pub(super) fn input_tokens(&self) -> Option<usize> {
        self.input_tokens
    }

    pub(super) fn api_error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }
}

impl Hold {
    /// Holds back every answer that it is given to.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Releases these answers and all later ones.
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
