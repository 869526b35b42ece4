//! One event that `claude` prints with `--output-format stream-json`, as far as it matters here.
//!
//! Keys come in any order, and any release may add events and shapes. So every field is parsed leniently: an unexpected shape is
//! ignored, never an error.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use serde_with::{DefaultOnError, VecSkipError, serde_as};

use crate::claude::stream::cut_short;
use crate::claude::tools::hook_input::BASH;
use crate::core::requests::agent_command::verb;
use crate::core::requests::request::Returned;
use crate::core::text::escape::shortened;

/// One line of the stream. Fields that do not matter are not kept in memory.
#[serde_as]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamEvent {
    #[serde(rename = "type")]
    pub(crate) kind: Value,
    pub(crate) session_id: Value,
    pub(crate) model: Value,
    pub(crate) claude_code_version: Value,
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
    /// The tool and its input, on one short line.
    pub summary: String,
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
        let name = self.name.as_str()?;
        let command = self.input["command"].as_str();
        let input = command.map_or_else(|| self.input.to_string(), str::to_owned);
        let command = command.filter(|command| name == BASH && command.contains(verb::NAME)).map(str::to_owned);
        Some(ToolCall { id: self.id.as_str()?.to_owned(), summary: shortened(&format!("{name}: {input}")), command })
    }

    /// Whether this result belongs to a call that was cut short. `beside`: what Claude Code notes beside it.
    pub(crate) fn is_cut_short(&self, beside: &Value) -> bool {
        cut_short::is_cut_short(&text_of(&self.content), beside)
    }

    /// Whether this result belongs to a command that was killed.
    pub(crate) fn is_of_a_killed_command(&self) -> bool {
        self.is_error == true && cut_short::is_of_a_killed_command(&text_of(&self.content))
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
