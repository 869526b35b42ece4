//! An event of an agent: the basis of every view of a running chain. `docs/events.md` describes its JSON.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::core::agent::usage::Usage;
use crate::core::id::{AttemptId, FrameId, MessageId, RequestId};
use crate::core::requests::request::SpawnForm;
use crate::core::text::escape::shortened;

/// The version of the JSON format. It changes when the meaning of a field changes or a field is removed, not when one is added.
pub(crate) const VERSION: u32 = 1;

/// Something that an agent did, or that happened to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AgentEvent {
    pub version: u32,
    pub at: Timestamp,
    #[serde(rename = "agent")]
    pub frame: FrameId,
    /// The attempt that it belongs to; `None` if it is only about the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// The agent's tool call that started the subagent which this is about; `None`: the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_use_id: Option<String>,
    /// The tokens in the conversation after this message, if Claude Code reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Whether long texts in it were truncated. They end with `…`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    #[serde(flatten)]
    pub what: AgentEventKind,
}

/// The content of an [`AgentEvent`]. Names follow the events of Claude Code if there is one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum AgentEventKind {
    /// `claude` is ready to work.
    Started {
        model: Option<String>,
        claude_code_version: Option<String>,
        permission_mode: Option<String>,
    },
    Text {
        text: String,
    },
    /// May be empty: newer models do not reveal their thoughts.
    Thinking {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// The tool and its input on one short, escaped line.
        summary: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        is_error: bool,
        /// The first line of `content`, short and escaped.
        summary: String,
        content: String,
    },
    /// The API refused a request, and Claude Code tries again.
    ApiRetry {
        /// Which retry comes next, from 1.
        retry: u64,
        max_retries: Option<u64>,
        retry_delay_ms: u64,
        /// The HTTP status; `None`: there was no response.
        error_status: Option<u64>,
        error: Option<String>,
    },
    /// A usage limit is near, reached or lifted.
    RateLimit {
        status: String,
        rate_limit_type: Option<String>,
        resets_at: Option<Timestamp>,
    },
    /// The agent asked for something that it may have to wait for.
    Request {
        id: RequestId,
        /// `spawn`, `ask`, `permission`, `plan` or `wait`.
        kind: String,
        /// What it asked for on one short, escaped line.
        summary: String,
        /// The agent whose reply it asked for, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        child: Option<FrameId>,
        /// How it called that agent, unless it waits for the reply.
        #[serde(skip_serializing_if = "Option::is_none")]
        form: Option<SpawnForm>,
    },
    /// The agent has started a chain of its own, for which nobody waits.
    Detached {
        chain: FrameId,
        /// The task on one short, escaped line.
        summary: String,
    },
    /// The result of its request is available.
    RequestOver {
        id: RequestId,
    },
    /// It was sent a message, which it reads later.
    Message {
        id: MessageId,
        /// `person`, or the id of the agent above that sent it.
        by: String,
        /// Whether it continued a finished agent.
        instruction: bool,
        text: String,
    },
    PermissionDenied {
        tool_use_id: String,
        tool: String,
        summary: String,
    },
    /// A subagent or a command in the background.
    Task {
        task_id: String,
        /// `started`, `progress`, or how it ended, in Claude Code's word.
        status: String,
        summary: String,
    },
    /// Claude Code replaced the conversation by a summary of it.
    Compaction {
        trigger: Option<String>,
        pre_tokens: Option<u64>,
    },
    /// `claude` ended a turn. There may be more than one in an attempt.
    Result {
        is_error: bool,
        subtype: Option<String>,
        /// Whether the turn ended because the agent waits inside a tool call.
        deferred: bool,
        text: String,
        usage: Usage,
        /// US dollars, as Claude Code counts them; newer versions include what the session had cost before.
        total_cost_usd: f64,
        num_turns: Option<u64>,
        duration_ms: Option<u64>,
    },
    /// The attempt ended, and the agent waits without a process.
    Paused {
        /// `requests`, `usage_limit`, `retry`, `agent_decides`, `resume`, or `ready` if it only has to be resumed.
        waits_for: String,
        /// Who paused it and why, if it was paused while it waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// What the attempt cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// The attempt ended, and the agent is done, failed or was stopped.
    Ended {
        /// `done`, `failed` or `cancelled`.
        status: String,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// What the attempt cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// An event that this version does not know, by its name in Claude Code: `system/notification`.
    Other {
        name: String,
    },
}

impl AgentEventKind {
    /// A call returned `content`.
    pub(crate) fn tool_result(tool_use_id: String, is_error: bool, content: String) -> Self {
        // Read puts a tab after the number of each line.
        let first = content.trim().lines().next().unwrap_or_default().replace('\t', "  ");
        Self::ToolResult { summary: shortened(&first), tool_use_id, is_error, content }
    }
}
