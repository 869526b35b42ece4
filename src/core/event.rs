//! One event that `claude` prints with `--output-format stream-json`, as far as it matters here.
//!
//! Keys come in any order, new events and new shapes come with any release. So every field is read loosely: what has
//! another shape than expected is passed over, never an error.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::cut_short;
use super::loose::{Loose, LooseList};
use super::request::shortened;
use super::stream::{Returned, ToolCall};

/// One line of the stream. Fields that matter nowhere are not held in memory.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    #[serde(rename = "type")]
    pub(super) kind: Value,
    pub(super) session_id: Value,
    pub(super) model: Value,
    pub(super) claude_code_version: Value,
    pub(super) parent_tool_use_id: Value,
    pub(super) message: Loose<Message>,
    pub(super) error: Value,
    pub(super) rate_limit_info: Value,
    pub(super) subtype: Value,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Value,
    pub(super) is_error: Value,
    pub(super) api_error_status: Value,
    pub(super) result: Value,
    pub(super) errors: Value,
    pub(super) stop_reason: Value,
    pub(super) terminal_reason: Value,
    pub(super) total_cost_usd: Value,
    pub(super) usage: Value,
    pub(super) deferred_tool_use: Value,
    pub(super) tool_use_result: Value,
    pub(super) permission_denials: Value,
    pub(super) hook_event: Value,
    pub(super) hook_id: Value,
    pub(super) hook_name: Value,
    pub(super) stdout: Value,
    pub(super) task_id: Value,
    pub(super) description: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) model: Value,
    pub(super) content: LooseList<Block>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: Value,
    pub(super) id: Value,
    pub(super) name: Value,
    pub(super) input: Value,
    pub(super) tool_use_id: Value,
    pub(super) content: Value,
    pub(super) is_error: Value,
}

impl Event {
    /// Whether it is about a hook. Such an event comes before anything else where a hook runs when a session begins.
    pub(super) fn is_of_a_hook(&self) -> bool {
        self.kind == "system" && self.subtype.as_str().is_some_and(|subtype| subtype.starts_with("hook_"))
    }
}

impl Block {
    /// The file that a tool of Claude Code is given: Read, Write, Edit, NotebookEdit and those that came before them.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let path = ["file_path", "notebook_path"].iter().find_map(|name| self.input[name].as_str())?;
        (!path.is_empty()).then(|| path.into())
    }

    pub(super) fn into_call(self) -> Option<ToolCall> {
        let name = self.name.as_str()?;
        let input = self.input["command"].as_str().map_or_else(|| self.input.to_string(), str::to_owned);
        Some(ToolCall { id: self.id.as_str()?.to_owned(), summary: shortened(&format!("{name}: {input}")) })
    }

    /// Whether this result is of a call that was cut short. `beside`: what stands beside it.
    pub(super) fn is_cut_short(&self, beside: &Value) -> bool {
        cut_short::is_cut_short(&text_of(&self.content), beside)
    }

    /// Whether this result is of a command that was killed.
    pub(super) fn is_of_a_killed_command(&self) -> bool {
        self.is_error == true && cut_short::is_of_a_killed_command(&text_of(&self.content))
    }

    pub(super) fn as_result(&self) -> Option<Returned> {
        let is_error = self.is_error.as_bool().unwrap_or(false);
        Some(Returned { call: self.tool_use_id.as_str()?.to_owned(), text: text_of(&self.content), is_error })
    }
}

/// The text of a tool result: a text, or blocks of it.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}
