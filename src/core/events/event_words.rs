//! Events of agents in a few words, not escaped.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::core::agent::usage::{Usage, usd};
use crate::core::events::activity::api_error;
use crate::core::events::agent_event::AgentEventKind;
use crate::core::id::FrameId;
use crate::core::requests::request::SpawnForm;

/// The words for an event that has no text of its own; `None`: it has one, which each view shows in its own way.
pub(crate) fn plain(what: &AgentEventKind, zone: &TimeZone) -> Option<String> {
    Some(match what {
        AgentEventKind::Started { model, claude_code_version, permission_mode } => {
            let version = claude_code_version.as_ref().map(|version| format!("Claude Code {version}"));
            let parts: Vec<_> = [model.clone(), version, permission_mode.clone()].into_iter().flatten().collect();
            format!("started: {}", parts.join(", "))
        }
        AgentEventKind::ApiRetry { retry, max_retries, retry_delay_ms, error_status, error } => {
            let of = max_retries.map(|max| format!(" of {max}")).unwrap_or_default();
            let error = error.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
            let seconds = *retry_delay_ms as f64 / 1000.0;
            format!("{}{error}, try {retry}{of} in {seconds:.1} s", api_error(*error_status))
        }
        AgentEventKind::RateLimit { status, rate_limit_type, resets_at } => {
            let kind = rate_limit_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
            let resets = resets_at.map(|time| format!(", resets at {}", with_date(time, zone))).unwrap_or_default();
            format!("usage limit{kind}: {status}{resets}")
        }
        AgentEventKind::Request { kind, summary, .. } if kind == "wait" => match summary.parse() {
            Ok(at) => format!("waits until {}", with_date(at, zone)),
            Err(_) => format!("waits for {summary}"),
        },
        AgentEventKind::Request { kind, summary, child, form, .. } => requested(kind, summary, *child, *form),
        AgentEventKind::Detached { chain, summary } => format!("starts the chain {} {summary}", chain.short()),
        AgentEventKind::RequestOver { id } => format!("request {} has its result", id.short()),
        AgentEventKind::PermissionDenied { summary, .. } => format!("denied: {summary}"),
        AgentEventKind::Task { status, summary, .. } => format!("task {status}: {summary}"),
        AgentEventKind::Compaction { pre_tokens, .. } => {
            let of = pre_tokens.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
            format!("conversation{of} was compacted")
        }
        AgentEventKind::Result { is_error: false, usage, total_cost_usd, duration_ms, .. } => {
            turn_ended(usage, *total_cost_usd, *duration_ms)
        }
        AgentEventKind::Paused { message: Some(message), .. } => message.clone(),
        AgentEventKind::Paused { waits_for, .. } => paused(waits_for).to_owned(),
        AgentEventKind::Ended { message: None, status, .. } if status == "cancelled" => "interrupted".to_owned(),
        AgentEventKind::Ended { message: None, status, .. } => status.clone(),
        AgentEventKind::Other { name } => format!("({name})"),
        AgentEventKind::Text { .. }
        | AgentEventKind::Thinking { .. }
        | AgentEventKind::ToolUse { .. }
        | AgentEventKind::ToolResult { .. }
        | AgentEventKind::Message { .. }
        | AgentEventKind::Result { .. }
        | AgentEventKind::Ended { .. } => return None,
    })
}

fn with_date(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn turn_ended(usage: &Usage, cost_usd: f64, duration_ms: Option<u64>) -> String {
    let took = duration_ms.map(|ms| format!("{:.1} s, ", ms as f64 / 1000.0)).unwrap_or_default();
    let input = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
    // Claude Code adds up the costs of a session, and not its tokens.
    format!("turn ended: {took}{input} tokens in, {} out; {} in this session", usage.output_tokens, usd(cost_usd))
}

fn requested(kind: &str, summary: &str, child: Option<FrameId>, form: Option<SpawnForm>) -> String {
    match (kind, child) {
        ("spawn", Some(child)) => match form {
            Some(SpawnForm::Handoff) => format!("hands off to {} {summary}", child.short()),
            Some(SpawnForm::Background) => format!("spawns {} {summary} in the background", child.short()),
            Some(SpawnForm::Call) | None => format!("spawns {} {summary}", child.short()),
        },
        ("ask", _) => format!("asks: {summary}"),
        ("permission", _) => format!("needs approval: {summary}"),
        ("plan", _) => format!("needs approval of its plan: {summary}"),
        (kind, _) => format!("{kind}: {summary}"),
    }
}

/// The state that the agent is in then, in the words of lists.
fn paused(waits_for: &str) -> &'static str {
    match waits_for {
        "usage_limit" => "waits for the usage limit to reset",
        "retry" => "waits for its next try",
        "agent_decides" => "can continue: the agent decides whether it does",
        "ready" => "can continue: it has ended without a result",
        _ => "waits",
    }
}
