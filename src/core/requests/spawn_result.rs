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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::reply_schema::ReplySchema;
    use crate::core::attempt::delivery::testing;
    use crate::core::chain::frame::Task;
    use crate::core::chain::frame_state::{Failure, FailureKind};

    fn child(state: FrameState, schema: Option<&str>, reply: Option<&str>) -> Value {
        let mut frame = Frame { state, ..testing::frame(Task::Prompt("Count.".into())) };
        frame.launch.schema = schema.and_then(|schema| ReplySchema::from_text(schema).ok());
        serde_json::to_value(ChildResult::new(&frame, reply.map(str::to_owned), None)).unwrap()
    }

    #[test]
    fn a_reply_is_json_only_with_a_schema() {
        let json = "{\"n\": 12345678901234567890123,\r\n \"summary\": \"One.\\nTwo.\"}";
        let text = child(FrameState::Done, None, Some(json));
        assert_eq!((&text["result"], &text["summary"]), (&json.into(), &"{\"n\": 12345678901234567890123,".into()));
        let shaped = child(FrameState::Done, Some("true"), Some(json));
        assert_eq!((&shaped["result"]["summary"], &shaped["summary"]), (&"One.\nTwo.".into(), &"One.".into()));
        let mut shaped = Frame { state: FrameState::Done, ..testing::frame(Task::Prompt("Count.".into())) };
        shaped.launch.schema = ReplySchema::from_text("true").ok();
        let printed = SpawnResult::One(Box::new(ChildResult::new(&shaped, Some(json.to_owned()), None))).text();
        assert!(printed.contains("{\"n\": 12345678901234567890123,   \"summary\": \"One.\\nTwo.\"}"), "{printed}");
        assert!(!printed.contains('\n'));
        for (reply, summary) in [("[1]", Value::Null), ("\"One.\"", Value::Null), ("{\"summary\": 1}", Value::Null)] {
            assert_eq!(child(FrameState::Done, Some("true"), Some(reply))["summary"], summary, "{reply}");
        }
        assert_eq!(child(FrameState::Done, None, Some("\n\n# One \ntwo"))["summary"], "# One");
        assert_eq!(child(FrameState::Done, None, None)["result"], "");
    }

    #[test]
    fn a_failure_has_an_error_and_no_result() {
        let failed = || FrameState::Failed { failure: Failure { kind: FailureKind::Error, message: "boom".into() } };
        for (reply, error) in [(None, "boom"), (Some("what it has done"), "what it has done")] {
            let got = child(failed(), Some("true"), reply);
            assert_eq!(
                (&got["status"], &got["result"], &got["error"]),
                (&"failed".into(), &Value::Null, &error.into())
            );
        }
        let result = SpawnResult::Several(Vec::new());
        for (plain, expected) in [
            (RequestResult::Text("x".into()), RequestResult::Text("[]".into())),
            (RequestResult::Failed("x".into()), RequestResult::Failed("[]".into())),
            (RequestResult::PartlyFailed("x".into()), RequestResult::PartlyFailed("[]".into())),
        ] {
            assert_eq!(result.in_place_of(&plain), expected);
        }
    }
}
