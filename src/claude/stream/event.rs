//! One event that `claude` prints with `--output-format stream-json`, as far as it matters here, and what the event that ends
//! an attempt says.
//!
//! Keys come in any order, and any release may add events and shapes. So every field is parsed leniently: an unexpected shape is
//! ignored, never an error.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_with::{DefaultOnError, VecSkipError, serde_as};

use crate::claude::stream::tokens;
use crate::claude::tools::hook_input::BASH;
use crate::core::agent::usage::Usage;
use crate::core::events::call_line;
use crate::core::requests::agent_command::verb;
use crate::core::requests::request::Returned;

/// One line of the stream. Fields that do not matter are not kept in memory.
#[serde_as]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamEvent {
    #[serde(rename = "type")]
    pub(crate) kind: Value,
    pub(crate) model: Value,
    pub(crate) claude_code_version: Value,
    pub(crate) cwd: Value,
    pub(crate) parent_tool_use_id: Value,
    #[serde_as(deserialize_as = "DefaultOnError")]
    pub(crate) message: StreamMessage,
    pub(crate) error: Value,
    pub(crate) rate_limit_info: Value,
    pub(crate) subtype: Value,
    #[serde(rename = "permissionMode")]
    pub(crate) permission_mode: Value,
    pub(crate) is_error: Value,
    pub(crate) api_error_status: Value,
    pub(crate) result: Value,
    pub(crate) errors: Value,
    pub(crate) stop_reason: Value,
    pub(crate) terminal_reason: Value,
    pub(crate) total_cost_usd: Value,
    #[serde(rename = "modelUsage")]
    pub(crate) model_usage: Value,
    pub(crate) usage: Value,
    pub(crate) deferred_tool_use: Value,
    pub(crate) tool_use_result: Value,
    pub(crate) permission_denials: Value,
    pub(crate) hook_event: Value,
    pub(crate) hook_id: Value,
    pub(crate) hook_name: Value,
    pub(crate) stdout: Value,
    pub(crate) exit_code: Value,
    pub(crate) task_id: Value,
    pub(crate) description: Value,
    pub(crate) timestamp: Value,
    pub(crate) attempt: Value,
    pub(crate) max_retries: Value,
    pub(crate) retry_delay_ms: Value,
    pub(crate) error_status: Value,
    pub(crate) status: Value,
    pub(crate) summary: Value,
    pub(crate) tool_name: Value,
    pub(crate) tool_use_id: Value,
    pub(crate) compact_metadata: Value,
    pub(crate) num_turns: Value,
    pub(crate) prompt_submit_outcome: Value,
    pub(crate) duration_ms: Value,
}

#[serde_as]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamMessage {
    pub(crate) id: Value,
    pub(crate) model: Value,
    pub(crate) usage: Value,
    #[serde_as(deserialize_as = "DefaultOnError<VecSkipError<_>>")]
    pub(crate) content: Vec<StreamBlock>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamBlock {
    #[serde(rename = "type")]
    pub(crate) kind: Value,
    pub(crate) id: Value,
    pub(crate) name: Value,
    pub(crate) input: Value,
    pub(crate) tool_use_id: Value,
    pub(crate) content: Value,
    pub(crate) is_error: Value,
    pub(crate) text: Value,
    pub(crate) thinking: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// Claude's id for it.
    pub id: String,
    /// The tool and its input, on one short line that agents read.
    pub summary: String,
    /// The same for people, in a form of its own for each tool.
    pub line: String,
    /// Its command, if it runs one that mentions this program.
    pub command: Option<String>,
}

impl StreamEvent {
    /// Whether it is about a hook. Such events come before all others if a hook runs at the start of a session.
    pub(crate) fn is_of_a_hook(&self) -> bool {
        self.kind == "system" && self.subtype.as_str().is_some_and(|subtype| subtype.starts_with("hook_"))
    }
}

impl StreamBlock {
    /// The file that a tool of Claude Code gets: Read, Write, Edit, NotebookEdit and their predecessors.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let path = ["file_path", "notebook_path"].iter().find_map(|name| self.input[name].as_str())?;
        (!path.is_empty()).then(|| path.into())
    }

    pub(crate) fn into_call(self) -> Option<ToolCall> {
        self.into_call_in(None)
    }

    /// `directory`: where the agent works.
    pub(crate) fn into_call_in(self, directory: Option<&Path>) -> Option<ToolCall> {
        let name = self.name.as_str()?;
        let line = call_line::call_line(name, &self.input, directory);
        let command = self.input["command"].as_str();
        let summary = call_line::for_agents(name, &self.input);
        let command = command.filter(|command| name == BASH && command.contains(verb::NAME)).map(str::to_owned);
        Some(ToolCall { id: self.id.as_str()?.to_owned(), summary, line, command })
    }

    /// Whether this result belongs to a call that was cut short. `beside`: what Claude Code records with it.
    pub(crate) fn is_cut_short(&self, beside: &Value) -> bool {
        is_cut_short(&text_of(&self.content), beside)
    }

    /// Whether this result belongs to a command that was killed.
    pub(crate) fn is_of_a_killed_command(&self) -> bool {
        self.is_error == true && is_of_a_killed_command(&text_of(&self.content))
    }

    pub(crate) fn as_result(&self) -> Option<Returned> {
        let is_error = self.is_error.as_bool().unwrap_or(false);
        Some(Returned { call: self.tool_use_id.as_str()?.to_owned(), text: text_of(&self.content), is_error })
    }
}

/// The text of a tool result: a string, or blocks of text.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The event that ends an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResultEvent {
    /// Whether it is an error. `subtype` says "success" for some errors and decides nothing.
    pub is_error: bool,
    /// The reply, or the error.
    pub text: String,
    /// The HTTP status of the error, if it has one.
    pub api_error_status: Option<u64>,
    /// Whether the attempt ended because a hook suspended a tool call.
    pub deferred: bool,
    /// The id of that call.
    pub deferred_call: Option<String>,
    /// Whether a hook stopped the agent.
    pub stopped_by_hook: bool,
    /// Whether its model was not called: the prompt was handled without a request.
    pub is_unasked: bool,
    pub usage: Usage,
    /// US dollars, as `claude` counts them. Newer versions include what the session cost before it was resumed.
    pub total_cost_usd: f64,
    /// Tokens, counted as `total_cost_usd` is; `None`: its version does not.
    pub total_usage: Option<Usage>,
}

impl From<StreamEvent> for ResultEvent {
    fn from(event: StreamEvent) -> Self {
        let deferred = event.stop_reason == "tool_deferred" || event.terminal_reason == "tool_deferred";
        let text = match event.result {
            Value::String(text) => text,
            _ => said_otherwise(&event.errors, &event.subtype),
        };
        Self {
            is_error: event.is_error.as_bool().unwrap_or(false),
            text,
            api_error_status: event.api_error_status.as_u64(),
            deferred,
            deferred_call: event.deferred_tool_use["id"].as_str().map(str::to_owned),
            stopped_by_hook: event.terminal_reason == "hook_stopped",
            is_unasked: event.num_turns == 0,
            usage: tokens::of_answer(&event.usage),
            total_usage: tokens::of_models(&event.model_usage),
            total_cost_usd: event.total_cost_usd.as_f64().unwrap_or(0.0),
        }
    }
}

/// Errors that stop an agent come as a list, without a `result`.
fn said_otherwise(errors: &Value, subtype: &Value) -> String {
    let errors: Vec<_> = errors.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if errors.is_empty() { subtype.as_str().unwrap_or_default().to_owned() } else { errors.join("; ") }
}

/// What Claude Code records with the result of a call that was rejected, or running when it was interrupted.
pub(crate) const REJECTED: &str = "User rejected tool use";

const WORDS: [&str; 5] = [
    "The user doesn't want to proceed with this tool use.", "The user doesn't want to take this action right now.",
    "[Request interrupted", "[Tool call interrupted", "[Tool call skipped",
];

/// Whether a call was cut short, judged by its result. `text`: what the model sees; `beside`: what Claude Code records with it.
pub(crate) fn is_cut_short(text: &str, beside: &Value) -> bool {
    beside == REJECTED || beside["interrupted"] == true || WORDS.iter().any(|words| text.starts_with(words))
}

/// Whether the result belongs to a command that was killed or asked to end.
pub(crate) fn is_of_a_killed_command(text: &str) -> bool {
    ["Exit code 130", "Exit code 137", "Exit code 143"].iter().any(|words| text.starts_with(words))
}

/// A usage limit that an account has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReachedLimit {
    /// It ends then.
    Until(Timestamp),
    /// No usable time was given for its end.
    Unknown,
}

impl ReachedLimit {
    /// The limit that an event is about, unless its requests are still allowed.
    pub(crate) fn from_info(info: &Value) -> Option<Self> {
        (info["status"] == "rejected").then(|| limit_resets_at(info).map_or(Self::Unknown, Self::Until))
    }
}

/// When a usage limit ends, according to an event about it: in seconds since 1970, or in milliseconds.
pub(crate) fn limit_resets_at(info: &Value) -> Option<Timestamp> {
    /// More seconds than this are milliseconds: in seconds, they would be in the year 5138.
    const MOST: f64 = 1e11;
    let at = info["resetsAt"].as_f64().filter(|at| at.is_finite() && *at > 0.0)?;
    let seconds = if at > MOST { at / 1e3 } else { at };
    Timestamp::from_second(seconds as i64).ok().filter(|_| seconds <= MOST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_was_cut_short_is_known_by_what_stands_beside_its_result_or_by_its_words() {
        assert!(is_cut_short("anything", &json!(REJECTED)));
        assert!(is_cut_short("half of its outp", &json!({"stdout": "half of its outp", "interrupted": true})));
        let rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …)";
        let lost = "[Tool call interrupted: the session ended before this call's result was recorded, …]";
        assert!(is_cut_short(rejected, &Value::Null) && is_cut_short(lost, &json!("Error: x")));
        assert!(!is_cut_short("slept", &json!({"stdout": "slept", "interrupted": false})));
        assert!(!is_cut_short("it says: [Request interrupted by user]", &Value::Null));
    }
}
