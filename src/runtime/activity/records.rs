//! What this program recorded about a frame, as events: requests, pauses and ends are not in what `claude` printed.

use serde::Deserialize;
use serde_json::Value;

use crate::core::chain::state::{FrameState, Wait};
use crate::core::events::agent_event::{AgentEvent, Happening, VERSION};
use crate::core::id::{AttemptId, MessageId, RequestId};
use crate::core::requests::request::{External, Request, RequestKind, RequestResult};
use crate::core::steering::message::Message;
use crate::core::steering::stop::{By, Stop, StopKind};
use crate::core::text::escape::shortened;
use crate::store::EventRecord;

/// The event of an entry of the log, if it tells anything of what the agent does.
pub(super) fn event(record: &EventRecord) -> Option<AgentEvent> {
    let detail = &record.detail;
    let what = match record.kind.as_str() {
        "requested" => requested(detail)?,
        "answered" | "expired" | "wait_over" => Happening::RequestOver { id: parsed(&detail["request"])? },
        "ended" | "stopped" | "put_off" => ended(detail)?,
        "paused" => paused(record)?,
        _ => return None,
    };
    Some(recorded(record, what))
}

/// The id of the message that an entry of the log is about.
pub(super) fn message_of(record: &EventRecord) -> Option<MessageId> {
    if record.kind == "message" { parsed(&record.detail["message"]) } else { None }
}

/// The event that an agent was told something. `most`: how many bytes of the text are kept; `None`: all.
pub(super) fn message_event(record: &EventRecord, message: &Message, most: Option<usize>) -> AgentEvent {
    let by = match message.sender.as_ref().map(|sender| sender.by) {
        Some(By::Agent(agent)) => agent.to_string(),
        _ => "person".to_owned(),
    };
    let (text, cut) = start_of(&message.text, most);
    let (id, instruction, text) = (message.id, message.instructs, text.to_owned());
    AgentEvent { cut, ..recorded(record, Happening::Message { id, by, instruction, text }) }
}

/// The requests whose result an attempt was given at their calls, which `claude` does not print.
pub(super) fn placed(record: &EventRecord) -> Vec<RequestId> {
    if record.kind == "began" { parsed(&record.detail["placed"]).unwrap_or_default() } else { Vec::new() }
}

/// The event that a call returned `result`; `None`: no call asked for it. `most`: how many bytes of the text are kept; `None`: all.
pub(super) fn result_event(
    record: &EventRecord,
    request: &Request,
    result: &RequestResult,
    most: Option<usize>,
) -> Option<AgentEvent> {
    let (text, cut) = start_of(result.text(), most);
    let happening = Happening::tool_result(request.call.clone()?, result.is_failure(), text.to_owned());
    Some(AgentEvent { cut, ..recorded(record, happening) })
}

/// The first bytes of a text, and whether there are more.
fn start_of(text: &str, most: Option<usize>) -> (&str, bool) {
    let longest = most.unwrap_or(usize::MAX).min(text.len());
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], end < text.len())
}

/// Of an agent that did not run.
fn paused(record: &EventRecord) -> Option<Happening> {
    let (by, reason) = (parsed(&record.detail["by"])?, parsed(&record.detail["reason"]).unwrap_or_default());
    let stop = Stop { how: StopKind::Pause, now: false, by, reason, of: record.frame, report: None };
    Some(Happening::Paused { waits_for: "resume".to_owned(), message: Some(stop.in_words()), cost_usd: None })
}

fn recorded(record: &EventRecord, what: Happening) -> AgentEvent {
    let detail = &record.detail;
    AgentEvent {
        version: VERSION,
        at: record.at,
        frame: record.frame,
        attempt: parsed::<AttemptId>(&detail["attempt"]),
        parent_tool_use_id: None,
        context_tokens: None,
        cut: false,
        what,
    }
}

fn requested(detail: &Value) -> Option<Happening> {
    let id = parsed::<RequestId>(&detail["request"])?;
    let (kind, summary, child) = match parsed::<RequestKind>(detail.get("detail").or(detail.get("wish"))?)? {
        RequestKind::Spawn { child, task } => ("spawn", task, Some(child)),
        RequestKind::Ask(form) => ("ask", form.question, None),
        RequestKind::Permission { tool, input, .. } => {
            let input = input["command"].as_str().map_or_else(|| input.to_string(), str::to_owned);
            ("permission", format!("{tool}: {input}"), None)
        }
        RequestKind::Plan(_) => ("plan", "an approval of its plan".to_owned(), None),
        RequestKind::Wait(external) => ("wait", awaited(&external), None),
    };
    Some(Happening::Request { id, kind: kind.to_owned(), summary: shortened(&summary), child })
}

fn awaited(external: &External) -> String {
    match external {
        External::Time(at) => format!("{at:.0}"),
        External::Command(command) => format!("the command {command}"),
        External::Scheduled(scheduled) => format!("{:.0}", scheduled.at),
        other => other.in_words(),
    }
}

fn ended(detail: &Value) -> Option<Happening> {
    let cost_usd = detail["cost_usd"].as_f64();
    let waits_for = |what: &str| Happening::Paused { waits_for: what.to_owned(), message: None, cost_usd };
    let state = parsed::<FrameState>(&detail["to"])?;
    let message = match &state {
        FrameState::Failed { failure } => Some(failure.message.trim().to_owned()),
        _ => None,
    };
    Some(match state {
        FrameState::Done | FrameState::Failed { .. } | FrameState::Cancelled => {
            Happening::Ended { status: state.name().to_owned(), message, cost_usd }
        }
        FrameState::Waiting { wait: Wait::Requests } => waits_for("requests"),
        FrameState::Waiting { wait: Wait::UsageLimit { .. } } => waits_for("usage_limit"),
        FrameState::Waiting { wait: Wait::Retry { .. } | Wait::Restart { .. } } => waits_for("retry"),
        FrameState::Waiting { wait: Wait::AgentDecides } => waits_for("agent_decides"),
        FrameState::Paused { .. } => waits_for("resume"),
        FrameState::Ready | FrameState::Running { .. } => waits_for("ready"),
    })
}

fn parsed<T: for<'a> Deserialize<'a>>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::core::id::FrameId;

    const ID: &str = "4f2c1a90-0000-4000-8000-000000000000";

    fn event_json(kind: &str, detail: Value) -> Value {
        let (at, frame) = (Timestamp::UNIX_EPOCH, FrameId(uuid::Uuid::nil()));
        let event = event(&EventRecord { seq: 1, at, frame, kind: kind.to_owned(), detail });
        event.map_or(Value::Null, |event| serde_json::to_value(event.what).unwrap())
    }

    #[test]
    fn requests_are_events_in_short() {
        let asked = |kind: Value| event_json("requested", json!({"request": ID, "attempt": ID, "detail": kind}));
        let expected =
            |kind: &str, summary: &str| json!({"type": "request", "id": ID, "kind": kind, "summary": summary});
        assert_eq!(asked(json!({"ask": {"question": "When?\nWhere?"}})), expected("ask", "When?⏎Where?"));
        assert_eq!(asked(json!({"wait": {"command": "true"}})), expected("wait", "the command true"));
        let permission = json!({"permission": {"tool": "Bash", "input": {"command": "rm x"}}});
        assert_eq!(asked(permission), expected("permission", "Bash: rm x"));
        let spawn = asked(json!({"spawn": {"child": ID, "task": "ins2.md"}}));
        assert_eq!((&spawn["child"], &spawn["summary"]), (&json!(ID), &json!("ins2.md")));
        assert_eq!(event_json("wait_over", json!({"request": ID})), json!({"type": "request_over", "id": ID}));
    }

    #[test]
    fn the_end_of_an_attempt_is_a_pause_or_an_end() {
        let ended = |to: Value| event_json("ended", json!({"attempt": ID, "cost_usd": 0.5, "to": to}));
        assert_eq!(ended(json!({"state": "done"})), json!({"type": "ended", "status": "done", "cost_usd": 0.5}));
        let failed = json!({"state": "failed", "failure": {"kind": "error", "message": " 529\n"}});
        assert_eq!(ended(failed)["message"], "529");
        let waiting = json!({"state": "waiting", "wait": {"for": "requests"}});
        assert_eq!(ended(waiting), json!({"type": "paused", "waits_for": "requests", "cost_usd": 0.5}));
        assert_eq!(ended(json!({"state": "next year"})), Value::Null);
        assert_eq!(event_json("created", json!({})), Value::Null);
    }

    #[test]
    fn what_others_do_to_an_agent_that_waits_is_an_event() {
        let failure = json!({"kind": "stopped", "message": "stopped by a person: late"});
        let stopped = event_json("stopped", json!({"by": "person", "to": {"state": "failed", "failure": failure}}));
        assert_eq!(stopped, json!({"type": "ended", "status": "failed", "message": "stopped by a person: late"}));
        let paused = event_json("paused", json!({"by": {"agent": ID}, "reason": null, "to": {"state": "paused"}}));
        assert_eq!(paused, json!({"type": "paused", "waits_for": "resume", "message": "paused by agent 4f2c1a90"}));
        let (id, made, sender) = (MessageId::random(), Timestamp::UNIX_EPOCH, None);
        let (text, reply) = ("für alle".to_owned(), None);
        let message = Message { id, made, delivered_in: None, instructs: true, sender, text, reply };
        let record = EventRecord {
            seq: 1,
            at: made,
            frame: FrameId(uuid::Uuid::nil()),
            kind: "message".to_owned(),
            detail: json!({"message": id}),
        };
        assert_eq!(message_of(&record), Some(id));
        let event = message_event(&record, &message, Some(2));
        let expected = json!({"type": "message", "id": id, "by": "person", "instruction": true, "text": "f"});
        assert_eq!((event.cut, serde_json::to_value(event.what).unwrap()), (true, expected));
        assert!(!message_event(&record, &message, None).cut);
    }
}
