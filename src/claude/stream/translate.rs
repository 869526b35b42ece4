//! Translates a line of `claude`'s output into events that do not depend on its formats.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::claude::stream::event::{self, ResultEvent, StreamBlock, StreamEvent};
use crate::core::agent::usage::{Usage, rounded_usd};
use crate::core::events::agent_event::AgentEventKind;
use crate::core::text::escape::shortened;
use crate::core::text::json;

/// The events of a line, in order, and what applies to all of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Translated {
    /// When it happened, if the line contains a time: only messages do, since 2.1.330.
    pub at: Option<Timestamp>,
    /// The call of the agent that started the subagent which this is about.
    pub parent_tool_use_id: Option<String>,
    /// The tokens in the conversation after this message.
    pub context_tokens: Option<u64>,
    /// Where the agent works, in the line with which `claude` begins.
    pub directory: Option<PathBuf>,
    pub happenings: Vec<AgentEventKind>,
}

/// The events of a line. An empty one, and one that repeats another, has none. `directory`: where the agent works, as far as
/// known.
pub(crate) fn translate(line: &[u8], directory: Option<&Path>) -> Translated {
    match json::read::<StreamEvent>(line) {
        Ok(event) => translate_event(event, directory),
        Err(_) if line.trim_ascii().is_empty() => Translated::default(),
        Err(_) => Translated { happenings: vec![other("unreadable line")], ..Translated::default() },
    }
}

fn translate_event(event: StreamEvent, directory: Option<&Path>) -> Translated {
    let at = event.timestamp.as_str().and_then(|at| at.parse().ok());
    let parent_tool_use_id = text(&event.parent_tool_use_id);
    let context_tokens = context_tokens(&event.message.usage);
    let begins_in = (event.subtype == "init").then(|| event.cwd.as_str().map(PathBuf::from)).flatten();
    let happenings = match event.kind.as_str().unwrap_or_default() {
        "system" => system(&event).into_iter().collect(),
        "assistant" => event.message.content.into_iter().filter_map(|block| said(block, directory)).collect(),
        "user" => event.message.content.iter().filter_map(returned).collect(),
        "rate_limit_event" => rate_limit(&event.rate_limit_info).into_iter().collect(),
        "result" => result(event, directory),
        // Parts of a message that comes as a whole later, repeated inputs, and notes about hooks.
        "stream_event" | "attachment" | "progress" | "command_lifecycle" | "keep_alive" => Vec::new(),
        "" => vec![other("unnamed")],
        kind => vec![other(kind)],
    };
    Translated { at, parent_tool_use_id, context_tokens, directory: begins_in, happenings }
}

fn system(event: &StreamEvent) -> Option<AgentEventKind> {
    let subtype = event.subtype.as_str().unwrap_or_default();
    let number = Value::as_u64;
    Some(match subtype {
        "init" => AgentEventKind::Started {
            model: text(&event.model),
            claude_code_version: text(&event.claude_code_version),
            permission_mode: text(&event.permission_mode),
        },
        "api_retry" => AgentEventKind::ApiRetry {
            retry: number(&event.attempt).unwrap_or(1),
            max_retries: number(&event.max_retries),
            // A fraction in older versions.
            retry_delay_ms: event.retry_delay_ms.as_f64().unwrap_or(0.0).round() as u64,
            error_status: number(&event.error_status),
            error: text(&event.error),
        },
        "compact_boundary" => AgentEventKind::Compaction {
            trigger: text(&event.compact_metadata["trigger"]),
            pre_tokens: number(&event.compact_metadata["pre_tokens"]),
        },
        "task_started" => task(event, "started")?,
        "task_progress" => task(event, "progress")?,
        "task_notification" => task(event, event.status.as_str().unwrap_or("ended"))?,
        // Each of them has an event elsewhere: the end of the turn lists denied calls.
        "status" | "thinking_tokens" | "permission_denied" => return None,
        _ if event.is_of_a_hook() => return None,
        _ => other(&format!("system/{subtype}")),
    })
}

fn task(event: &StreamEvent, status: &str) -> Option<AgentEventKind> {
    let task_id = text(&event.task_id)?;
    let said = [&event.summary, &event.description].into_iter().find_map(|said| said.as_str());
    Some(AgentEventKind::Task {
        task_id,
        status: shortened(status),
        summary: shortened(said.unwrap_or_default().trim()),
    })
}

/// The event of a block of a message of the model.
fn said(block: StreamBlock, directory: Option<&Path>) -> Option<AgentEventKind> {
    match block.kind.as_str()? {
        "text" => Some(AgentEventKind::Text { text: text(&block.text)? }),
        "thinking" => Some(AgentEventKind::Thinking { text: text(&block.thinking).unwrap_or_default() }),
        "redacted_thinking" => Some(AgentEventKind::Thinking { text: String::new() }),
        "tool_use" => {
            let (name, input) = (text(&block.name)?, block.input.clone());
            let call = block.into_call_in(directory)?;
            Some(AgentEventKind::ToolUse { id: call.id, name, summary: call.line, input })
        }
        kind => Some(other(&format!("assistant/{kind}"))),
    }
}

/// The event of a block of a message to the model.
fn returned(block: &StreamBlock) -> Option<AgentEventKind> {
    if block.kind != "tool_result" {
        return None;
    }
    let result = block.as_result()?;
    Some(AgentEventKind::tool_result(result.call, result.is_error, result.text))
}

fn rate_limit(info: &Value) -> Option<AgentEventKind> {
    let resets_at = event::limit_resets_at(info);
    Some(AgentEventKind::RateLimit {
        status: text(&info["status"])?,
        rate_limit_type: text(&info["rateLimitType"]),
        resets_at,
    })
}

fn result(event: StreamEvent, directory: Option<&Path>) -> Vec<AgentEventKind> {
    let denied = event.permission_denials.as_array().into_iter().flatten().filter_map(|denial| {
        let (id, tool) = (denial["tool_use_id"].as_str()?, denial["tool_name"].as_str()?);
        let block = StreamBlock {
            id: id.into(),
            name: tool.into(),
            input: denial["tool_input"].clone(),
            ..StreamBlock::default()
        };
        let summary = block.into_call_in(directory)?.line;
        Some(AgentEventKind::PermissionDenied { tool_use_id: id.to_owned(), tool: tool.to_owned(), summary })
    });
    let mut happenings: Vec<_> = denied.collect();
    let (num_turns, duration_ms) = (event.num_turns.as_u64(), event.duration_ms.as_u64());
    let subtype = text(&event.subtype);
    let ResultEvent { is_error, text, deferred, usage, total_cost_usd, .. } = event.into();
    // It is suspended at the call of an earlier turn, and will continue.
    if deferred && usage == Usage::default() {
        return happenings;
    }
    happenings.push(AgentEventKind::Result {
        is_error,
        subtype,
        deferred,
        text,
        usage,
        total_cost_usd: rounded_usd(total_cost_usd),
        num_turns,
        duration_ms,
    });
    happenings
}

/// All tokens of a request count, wherever they came from. The model's own output is only counted at the end.
fn context_tokens(usage: &Value) -> Option<u64> {
    let tokens = |name| usage[name].as_u64();
    let input = tokens("input_tokens")?;
    let cached = [tokens("cache_creation_input_tokens"), tokens("cache_read_input_tokens")].into_iter().flatten();
    Some(cached.fold(input, u64::saturating_add)).filter(|tokens| *tokens > 0)
}

fn other(name: &str) -> AgentEventKind {
    AgentEventKind::Other { name: shortened(name) }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The events of a line, as JSON.
    fn json_of(line: &str) -> Vec<Value> {
        translate(line.as_bytes(), None).happenings.iter().map(|what| serde_json::to_value(what).unwrap()).collect()
    }

    #[test]
    fn the_lines_of_a_turn_are_events_one_by_one() {
        let init = r#"{"type":"system","subtype":"init","model":"claude-opus-4-8","permissionMode":"acceptEdits","claude_code_version":"2.1.330"}"#;
        assert_eq!(
            json_of(init),
            [
                json!({"type": "started", "model": "claude-opus-4-8", "claude_code_version": "2.1.330", "permission_mode": "acceptEdits"})
            ]
        );
        let message = r#"{"type":"assistant","message":{"model":"claude-opus-4-8","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls\nx"}}],"usage":{"input_tokens":5,"cache_read_input_tokens":70,"output_tokens":1}},"parent_tool_use_id":"t0","timestamp":"2026-11-21T20:53:18.825Z"}"#;
        let whole = translate(message.as_bytes(), None);
        assert_eq!(whole.at, Some("2026-11-21T20:53:18.825Z".parse().unwrap()));
        assert_eq!((whole.parent_tool_use_id.as_deref(), whole.context_tokens), (Some("t0"), Some(75)));
        assert_eq!(
            json_of(message),
            [
                json!({"type": "thinking", "text": "hm"}),
                json!({"type": "text", "text": "Let me look."}),
                json!({"type": "tool_use", "id": "t1", "name": "Bash", "summary": "Bash: ls …", "input": {"command": "ls\nx"}}),
            ]
        );
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"\n a\nb"}],"is_error":true},{"type":"text","text":"x"}]}}"#;
        assert_eq!(
            json_of(result),
            [
                json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true, "summary": "a", "content": "\n a\nb"})
            ]
        );
    }

    #[test]
    fn a_retry_is_read_as_either_version_prints_it() {
        for delay in ["518", "518.05776372018863"] {
            let line = format!(
                r#"{{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"retry_delay_ms":{delay},"error_status":529,"error":"overloaded"}}"#
            );
            assert_eq!(
                json_of(&line),
                [
                    json!({"type": "api_retry", "retry": 1, "max_retries": 3, "retry_delay_ms": 518, "error_status": 529, "error": "overloaded"})
                ]
            );
        }
    }

    #[test]
    fn the_end_of_a_turn_lists_what_was_denied() {
        let line = r#"{"usage":{"output_tokens":20},"permission_denials":[{"tool_name":"Write","tool_use_id":"t2","tool_input":{"file_path":"/x"}},{}],"is_error":false,"num_turns":2,"subtype":"success","result":"hi","type":"result","duration_ms":240,"total_cost_usd":0.5,"stop_reason":"tool_deferred"}"#;
        let events = json_of(line);
        assert_eq!(
            events[0],
            json!({"type": "permission_denied", "tool_use_id": "t2", "tool": "Write", "summary": "Write /x"})
        );
        assert_eq!((events.len(), &events[1]["type"], &events[1]["deferred"]), (2, &json!("result"), &json!(true)));
        assert_eq!((&events[1]["usage"]["output_tokens"], &events[1]["duration_ms"]), (&json!(20), &json!(240)));
    }

    #[test]
    fn limits_tasks_and_compactions_are_events() {
        for (line, expected) in [
            (
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795298091,"rateLimitType":"five_hour"}}"#,
                json!({"type": "rate_limit", "status": "rejected", "rate_limit_type": "five_hour", "resets_at": "2026-11-21T21:54:51Z"}),
            ),
            (
                r#"{"type":"system","subtype":"task_started","task_id":"b1","description":"the server\n"}"#,
                json!({"type": "task", "task_id": "b1", "status": "started", "summary": "the server"}),
            ),
            (
                r#"{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed","summary":"over"}"#,
                json!({"type": "task", "task_id": "b1", "status": "completed", "summary": "over"}),
            ),
            (
                r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":155000}}"#,
                json!({"type": "compaction", "trigger": "auto", "pre_tokens": 155_000}),
            ),
        ] {
            assert_eq!(json_of(line), [expected]);
        }
    }

    #[test]
    fn what_is_new_is_named_and_what_repeats_is_skipped() {
        for (line, name) in [
            (r#"{"type":"system","subtype":"next_year","x":1}"#, "system/next_year"),
            (r#"{"type":"novelty"}"#, "novelty"),
            (r#"{"type":7}"#, "unnamed"),
            ("{}", "unnamed"),
            ("[1]", "unnamed"),
            ("garbage\u{1b}", "unreadable line"),
            (r#"{"type":"assistant","message":{"content":[{"type":"server_tool_use"}]}}"#, "assistant/server_tool_use"),
        ] {
            assert_eq!(json_of(line), [json!({"type": "other", "name": name})], "{line}");
        }
        assert_eq!(translate(b"{\"type\":\"text\xff\"}", None).happenings.len(), 1);
        for line in [
            "",
            "  ",
            r#"{"type":"stream_event"}"#,
            r#"{"type":"system","subtype":"status"}"#,
            r#"{"type":"system","subtype":"hook_started"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text"}, 7, {"type":"tool_use","id":1}]}}"#,
            r#"{"type":"user","message":{"content":"a prompt"}}"#,
        ] {
            assert_eq!(json_of(line), Vec::<Value>::new(), "{line}");
        }
    }
}
