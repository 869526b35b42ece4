//! The events of `--output-format stream-json`, as 2.1.330 prints them, shortened to what somebody might read.

use std::env;
use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::version;

/// The tokens of a message: a thousand, and those that `STAND_IN_CACHES` writes to the prompt cache for five minutes.
fn usage() -> Value {
    let mut usage = json!({"input_tokens": 1000, "output_tokens": 1});
    if let Some(tokens) = env::var("STAND_IN_CACHES").ok().and_then(|tokens| tokens.parse::<u64>().ok()) {
        usage["cache_creation_input_tokens"] = tokens.into();
        usage["cache_creation"] = json!({"ephemeral_5m_input_tokens": tokens, "ephemeral_1h_input_tokens": 0});
    }
    usage
}

/// The model of messages that are errors of Claude Code's own.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// Prints the events of a session.
pub(crate) struct Events {
    session: String,
    model: String,
}

/// The last event. Its keys are in the order in which 2.1.330 prints them: `type` is not the first.
#[derive(Serialize)]
struct ResultEvent<'a> {
    duration_api_ms: u32,
    stop_reason: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    deferred_tool_use: Value,
    session_id: &'a str,
    total_cost_usd: f64,
    usage: Value,
    #[serde(rename = "modelUsage")]
    model_usage: Value,
    permission_denials: [(); 0],
    #[serde(skip_serializing_if = "str::is_empty")]
    terminal_reason: &'a str,
    is_error: bool,
    api_error_status: Option<u16>,
    num_turns: u32,
    subtype: &'a str,
    #[serde(flatten)]
    text: Value,
    r#type: &'a str,
    duration_ms: u32,
    uuid: Uuid,
    result_index: u32,
}

/// How a session ends.
pub(crate) enum End<'a> {
    /// With a reply.
    Reply(&'a str),
    /// With an error that Claude Code words as a reply.
    ApiError(&'a str),
    /// With an error of the API of this status; 0: there was no answer.
    Api(u16, &'a str),
    /// With an error of another kind.
    Errors(&'a str),
    /// A hook stopped it.
    Stopped,
    /// A hook deferred a call: its id, name and input.
    Deferred(&'a Value),
}

impl Events {
    /// For one session.
    pub(crate) fn new(session: &str, model: &str) -> Self {
        Self { session: session.to_owned(), model: model.to_owned() }
    }

    /// The session.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The first event.
    pub(crate) fn init(&self, permission_mode: &str) -> Result<()> {
        print(&json!({
            "type": "system",
            "subtype": "init",
            "cwd": env::current_dir()?.to_string_lossy(),
            "session_id": self.session,
            "tools": ["Bash", "Read"],
            "mcp_servers": [],
            "model": self.model,
            "permissionMode": permission_mode,
            "claude_code_version": version::version(),
            "uuid": Uuid::new_v4(),
        }))
    }

    /// The permission mode has changed.
    pub(crate) fn mode(&self, mode: &str) -> Result<()> {
        print(&json!({
            "type": "system",
            "subtype": "status",
            "session_id": self.session,
            "permissionMode": mode,
            "uuid": Uuid::new_v4(),
        }))
    }

    /// A part of the message `id` of the model.
    pub(crate) fn assistant(&self, id: &str, block: &Value) -> Value {
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [block],
            "stop_reason": null,
            "usage": usage(),
        })
    }

    /// A message of the model or to it. `uuid`: the name of its line in the transcript.
    pub(crate) fn message(&self, kind: &str, message: &Value, uuid: Uuid) -> Result<()> {
        print(&json!({
            "type": kind,
            "message": message,
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": uuid,
        }))
    }

    /// An event that is neither a message nor a call.
    pub(crate) fn attachment(&self, attachment: &Value) -> Result<()> {
        print(&json!({
            "type": "attachment",
            "attachment": attachment,
            "session_id": self.session,
            "uuid": Uuid::new_v4(),
        }))
    }

    /// An error of the API, worded as a message.
    pub(crate) fn api_error(&self, status: u16, message: &Value, uuid: Uuid) -> Result<()> {
        let kind = match status {
            0 | 500.. => "server_error",
            429 => "rate_limit",
            401 | 403 => "authentication_failed",
            404 => "model_not_found",
            _ => "unknown",
        };
        print(&json!({
            "type": "assistant",
            "message": message,
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": uuid,
            "error": kind,
        }))
    }

    /// Something runs in the background.
    pub(crate) fn task_started(&self, call: &str, description: &str) -> Result<()> {
        print(&json!({
            "type": "system",
            "subtype": "task_started",
            "task_id": "b1",
            "tool_use_id": call,
            "description": description,
            "session_id": self.session,
            "uuid": Uuid::new_v4(),
        }))
    }

    /// The limit of a subscription.
    pub(crate) fn rate_limit(&self, resets_at: i64) -> Result<()> {
        print(&json!({
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour"},
            "uuid": Uuid::new_v4(),
            "session_id": self.session,
        }))
    }

    /// The last event. `answers` are those of this process, `all_answers` those of the whole session: newer versions
    /// count what a session cost before it was resumed.
    pub(crate) fn result(&self, end: &End<'_>, answers: u32, all_answers: u32) -> Result<()> {
        let (text, subtype, terminal_reason) = match end {
            End::Reply(text) => (json!({"result": text}), "success", "completed"),
            End::ApiError(text) | End::Api(_, text) => (json!({"result": text}), "success", "api_error"),
            End::Errors(text) => (json!({"errors": [text]}), "error_during_execution", "aborted_tools"),
            End::Stopped => (json!({"result": ""}), "success", "hook_stopped"),
            // A resume that defers again prints no reason.
            End::Deferred(_) => (json!({"result": ""}), "success", if answers == 0 { "" } else { "tool_deferred" }),
        };
        let deferred = match end {
            End::Deferred(call) => Some(*call),
            _ => None,
        };
        print(&ResultEvent {
            duration_api_ms: 32,
            stop_reason: if deferred.is_some() { "tool_deferred" } else { "end_turn" },
            deferred_tool_use: deferred.cloned().unwrap_or_default(),
            session_id: &self.session,
            total_cost_usd: f64::from(all_answers) / 100.0,
            usage: json!({
                "input_tokens": 1000 * answers,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 20 * answers,
            }),
            model_usage: match env::var("STAND_IN_WINDOW").ok().and_then(|window| window.parse::<u64>().ok()) {
                Some(window) => json!({&self.model: {"contextWindow": window}}),
                None => json!({}),
            },
            permission_denials: [],
            terminal_reason,
            api_error_status: match end {
                End::Api(status, _) => Some(*status).filter(|status| *status > 0),
                _ => None,
            },
            is_error: matches!(end, End::ApiError(_) | End::Api(..) | End::Errors(_)),
            num_turns: answers,
            subtype,
            text,
            r#type: "result",
            duration_ms: 240,
            uuid: Uuid::new_v4(),
            result_index: 0,
        })
    }
}

/// An error that Claude Code words as a message of a model that does not exist.
pub(crate) fn synthetic(text: &str) -> Value {
    json!({
        "id": Uuid::new_v4(),
        "type": "message",
        "role": "assistant",
        "model": SYNTHETIC,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "stop_sequence",
        "usage": {"input_tokens": 0, "output_tokens": 0},
    })
}

fn print(event: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    Ok(stdout.flush()?)
}
