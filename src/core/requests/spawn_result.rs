//! The result of `spawn --json` as the agent that calls it gets it.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, to_string};

use crate::core::agent::child_worktree::Worktree;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::id::FrameId;
use crate::core::requests::request::RequestResult;
use crate::core::text::escape::shortened;

/// What an agent's `spawn --json` returns: an object, or an array of them for several agents.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum SpawnResult {
    One(Box<ChildResult>),
    /// In the order of the command.
    Several(Vec<ChildResult>),
}

/// An agent that was started.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChildResult {
    pub(crate) id: FrameId,
    pub(crate) status: AgentStatus,
    /// Its reply: the JSON that fits its schema, or a text. Null: it has none.
    #[cfg_attr(test, schemars(with = "Value"))]
    pub(crate) result: Option<Box<RawValue>>,
    /// The first line of its reply; if it has a schema, the first line of the field `summary`. Shortened.
    pub(crate) summary: Option<String>,
    /// Why it failed, and what it has done until then.
    pub(crate) error: Option<String>,
    /// The command that shows what it did.
    pub(crate) log: String,
    /// Its conversation, as Claude Code keeps it.
    pub(crate) transcript: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
}

impl ChildResult {
    /// The result of one agent. `reply`: what its parent receives of it.
    pub(crate) fn new(frame: &Frame, reply: Option<String>, transcript: Option<PathBuf>) -> Self {
        let state = frame.for_its_parent();
        let (said, error) = match state {
            FrameState::Done => (Some(reply.unwrap_or_default()), None),
            FrameState::Failed { failure } => (None, Some(reply.unwrap_or_else(|| failure.message.clone()))),
            _ => (None, None),
        };
        let summary = said.as_deref().and_then(|said| match &frame.launch.schema {
            Some(_) => serde_json::from_str::<Value>(said).ok()?["summary"].as_str().and_then(first_line),
            None => first_line(said),
        });
        Self {
            id: frame.id,
            status: state.status(),
            result: said.as_deref().and_then(|said| json(said, frame.launch.schema.is_some())),
            summary,
            error,
            log: format!("agent-cli logs {}", frame.id.short()),
            transcript,
            worktree: frame.launch.worktree.clone(),
        }
    }
}

impl SpawnResult {
    pub(crate) fn text(&self) -> String {
        to_string(self).unwrap_or_default()
    }

    /// The result of the request, if it is `result` where nothing asks for JSON.
    pub(crate) fn in_place_of(&self, result: &RequestResult) -> RequestResult {
        let text = self.text();
        match result {
            RequestResult::PartlyFailed(_) => RequestResult::PartlyFailed(text),
            RequestResult::Failed(_) => RequestResult::Failed(text),
            _ => RequestResult::Text(text),
        }
    }
}

/// The text as JSON: what it contains, exact to the byte, or a string.
fn json(text: &str, is_json: bool) -> Option<Box<RawValue>> {
    // Line breaks are between values, never inside one.
    let contained = is_json.then(|| RawValue::from_string(text.replace(['\n', '\r'], " ")).ok());
    contained.flatten().or_else(|| serde_json::value::to_raw_value(text).ok())
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(shortened)
}
