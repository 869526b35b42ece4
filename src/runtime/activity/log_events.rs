//! Events from the log of a frame: requests, pauses and ends are not in the output of `claude`.

use jiff::Timestamp;

use crate::core::agent::usage::rounded_usd;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::events::agent_event::{AgentEvent, AgentEventKind, VERSION};
use crate::core::events::call_line::call_line;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{FrameId, MessageId, RequestId};
use crate::core::requests::request::{External, Request, RequestKind, RequestResult, SpawnForm};
use crate::core::steering::message::Message;
use crate::core::steering::stop_order::{By, Stop, StopKind};
use crate::core::text::escape::shortened;
use crate::store::EventRecord;

/// The event of a log entry, if it describes something that the agent does.
pub(super) fn event(record: &EventRecord) -> Option<AgentEvent> {
    let what = match &record.entry {
        LogEntry::Requested { request, detail, .. } => requested(*request, detail),
        LogEntry::Detached { chain, title, .. } => {
            AgentEventKind::Detached { chain: *chain, summary: shortened(title) }
        }
        LogEntry::Answered { request, .. } | LogEntry::Expired { request, .. } | LogEntry::WaitOver { request } => {
            AgentEventKind::RequestOver { id: *request }
        }
        LogEntry::Ended { to, cost_usd, .. } => ended(to, cost_usd.map(rounded_usd)),
        LogEntry::Stopped { to, .. } | LogEntry::PutOff { to, .. } => ended(to, None),
        LogEntry::Paused { by, reason, .. } => paused(record.frame, *by, reason.clone()),
        _ => return None,
    };
    Some(recorded(record, what))
}

/// The id of the message that a log entry is about.
pub(super) fn message_of(record: &EventRecord) -> Option<MessageId> {
    match &record.entry {
        LogEntry::Message { message, .. } => Some(*message),
        _ => None,
    }
}

/// The event that an agent got a message. `most`: how many bytes of the text are kept; `None`: all.
pub(super) fn message_event(record: &EventRecord, message: &Message, most: Option<usize>) -> AgentEvent {
    let by = match message.sender.as_ref().map(|sender| sender.by) {
        Some(By::Agent(agent)) => agent.to_string(),
        _ => "person".to_owned(),
    };
    let (text, cut) = start_of(&message.text, most);
    let (id, instruction, text) = (message.id, message.instructs, text.to_owned());
    AgentEvent { cut, ..recorded(record, AgentEventKind::Message { id, by, instruction, text }) }
}

/// The requests whose results an attempt was given at their calls, without `claude` printing them.
pub(super) fn placed(record: &EventRecord) -> &[RequestId] {
    match &record.entry {
        LogEntry::Began { placed, .. } => placed,
        _ => &[],
    }
}

/// The event that a call returned `result`; `None`: it belongs to no call. `most`: how many bytes of the text are kept; `None`:
/// all.
pub(super) fn result_event(
    record: &EventRecord,
    request: &Request,
    result: &RequestResult,
    most: Option<usize>,
) -> Option<AgentEvent> {
    let (text, cut) = start_of(result.text(), most);
    let happening = AgentEventKind::tool_result(request.call.clone()?, result.is_failure(), text.to_owned());
    Some(AgentEvent { cut, ..recorded(record, happening) })
}

/// The first bytes of a text, and whether there are more.
fn start_of(text: &str, most: Option<usize>) -> (&str, bool) {
    let longest = most.unwrap_or(usize::MAX).min(text.len());
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], end < text.len())
}

/// For an agent that was not running.
fn paused(frame: FrameId, by: By, reason: Option<String>) -> AgentEventKind {
    let stop = Stop { how: StopKind::Pause, now: false, by, reason, of: frame, report: None };
    AgentEventKind::Paused { waits_for: "resume".to_owned(), message: Some(stop.in_words()), cost_usd: None }
}

fn recorded(record: &EventRecord, what: AgentEventKind) -> AgentEvent {
    AgentEvent {
        version: VERSION,
        at: record.at,
        frame: record.frame,
        attempt: record.entry.attempt(),
        parent_tool_use_id: None,
        context_tokens: None,
        cut: false,
        what,
    }
}

fn requested(id: RequestId, kind: &RequestKind) -> AgentEventKind {
    let form = match kind {
        RequestKind::Spawn { form, .. } => Some(*form).filter(|form| *form != SpawnForm::Call),
        _ => None,
    };
    let (word, summary, child) = match kind {
        RequestKind::Spawn { child, task, .. } => ("spawn", task.clone(), Some(*child)),
        RequestKind::Ask(form) => ("ask", form.question.clone(), None),
        RequestKind::Permission { tool, input, .. } => ("permission", call_line(tool, input, None), None),
        RequestKind::Plan(plan) => ("plan", plan.summary().to_owned(), None),
        RequestKind::Wait(external) => ("wait", awaited(external), None),
    };
    AgentEventKind::Request { id, kind: word.to_owned(), summary: shortened(&summary), child, form }
}

/// Those who show it to people put it on their clock.
fn for_programs(at: Timestamp) -> String {
    format!("{at:.0}")
}

fn awaited(external: &External) -> String {
    match external {
        External::Time(at) => for_programs(*at),
        External::Command(command) => format!("the command {command}"),
        External::Scheduled(scheduled) => for_programs(scheduled.at),
        other => other.in_words(for_programs),
    }
}

fn ended(state: &FrameState, cost_usd: Option<f64>) -> AgentEventKind {
    let waits_for = |what: &str| AgentEventKind::Paused { waits_for: what.to_owned(), message: None, cost_usd };
    let message = match state {
        FrameState::Failed { failure } => Some(failure.message.trim().to_owned()),
        _ => None,
    };
    match state {
        FrameState::Done | FrameState::Failed { .. } | FrameState::Cancelled => {
            AgentEventKind::Ended { status: state.name().to_owned(), message, cost_usd }
        }
        FrameState::Waiting { wait: Wait::Requests } => waits_for("requests"),
        FrameState::Waiting { wait: Wait::UsageLimit { .. } } => waits_for("usage_limit"),
        FrameState::Waiting { wait: Wait::Retry { .. } | Wait::Restart { .. } } => waits_for("retry"),
        FrameState::Waiting { wait: Wait::AgentDecides } => waits_for("agent_decides"),
        FrameState::Paused { .. } => waits_for("resume"),
        FrameState::Ready | FrameState::Running { .. } => waits_for("ready"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind};
    use crate::core::id::AttemptId;
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::SpawnForm;

    const ID: uuid::Uuid = uuid::uuid!("4f2c1a90-0000-4000-8000-000000000000");

    fn record(entry: LogEntry) -> EventRecord {
        EventRecord { seq: 1, at: Timestamp::UNIX_EPOCH, frame: FrameId(ID), entry }
    }

    fn event_json(entry: LogEntry) -> Value {
        event(&record(entry)).map_or(Value::Null, |event| serde_json::to_value(event.what).unwrap())
    }

    #[test]
    fn requests_are_events_in_short() {
        let request = RequestId(ID);
        let asked = |kind: RequestKind| {
            event_json(LogEntry::Requested { request, attempt: AttemptId(ID), detail: Box::new(kind) })
        };
        let expected =
            |kind: &str, summary: &str| json!({"type": "request", "id": ID, "kind": kind, "summary": summary});
        assert_eq!(asked(RequestKind::Ask(Form::text("When?\nWhere?"))), expected("ask", "When?⏎Where?"));
        let wait = RequestKind::Wait(External::Command("true".into()));
        assert_eq!(asked(wait), expected("wait", "the command true"));
        let input = json!({"command": "rm x"});
        let permission = RequestKind::Permission { tool: "Bash".into(), input, reason: None, place: None };
        assert_eq!(asked(permission), expected("permission", "Bash: rm x"));
        for (form, said) in [
            (SpawnForm::Call, Value::Null),
            (SpawnForm::Handoff, json!("handoff")),
            (SpawnForm::Background, json!("background")),
        ] {
            let spawn = asked(RequestKind::Spawn { child: FrameId(ID), task: "ins2.md".into(), form, json: false });
            assert_eq!((&spawn["child"], &spawn["summary"]), (&json!(ID), &json!("ins2.md")));
            assert_eq!((&spawn["kind"], &spawn["form"]), (&json!("spawn"), &said));
        }
        let detached = LogEntry::Detached { attempt: AttemptId(ID), chain: FrameId(ID), title: "ins2.md".into() };
        assert_eq!(event_json(detached), json!({"type": "detached", "chain": ID, "summary": "ins2.md"}));
        assert_eq!(event_json(LogEntry::WaitOver { request }), json!({"type": "request_over", "id": ID}));
    }

    #[test]
    fn the_end_of_an_attempt_is_a_pause_or_an_end() {
        let ended = |to: FrameState| {
            let (attempt, from) = (Some(AttemptId(ID)), FrameState::Running { waited: None });
            let (outcome, kept, cost_usd) = ("reply".to_owned(), Some(true), Some(0.5));
            event_json(LogEntry::Ended { attempt, outcome, kept, cost_usd, from, to })
        };
        assert_eq!(ended(FrameState::Done), json!({"type": "ended", "status": "done", "cost_usd": 0.5}));
        let failure = Failure { kind: FailureKind::Error, message: " 529\n".into() };
        assert_eq!(ended(FrameState::Failed { failure })["message"], "529");
        let waiting = FrameState::Waiting { wait: Wait::Requests };
        assert_eq!(ended(waiting), json!({"type": "paused", "waits_for": "requests", "cost_usd": 0.5}));
        assert_eq!(event_json(LogEntry::Joined { parent: FrameId(ID) }), Value::Null);
    }

    #[test]
    fn what_others_do_to_an_agent_that_waits_is_an_event() {
        let (from, reason) = (FrameState::Ready, None);
        let failure = Failure { kind: FailureKind::Stopped, message: "stopped by a person: late".into() };
        let (to, by) = (FrameState::Failed { failure }, By::Person);
        let stopped = event_json(LogEntry::Stopped { from: from.clone(), to, by, reason: reason.clone() });
        assert_eq!(stopped, json!({"type": "ended", "status": "failed", "message": "stopped by a person: late"}));
        let (to, by) = (FrameState::Paused { waited: None }, By::Agent(FrameId(ID)));
        let paused = event_json(LogEntry::Paused { from, to, by, reason });
        assert_eq!(paused, json!({"type": "paused", "waits_for": "resume", "message": "paused by agent 4f2c1a90"}));
        let (id, made, sender) = (MessageId::random(), Timestamp::UNIX_EPOCH, None);
        let (text, reply) = ("für alle".to_owned(), None);
        let message = Message { id, made, delivered_in: None, instructs: true, sender, text, reply };
        let record = record(LogEntry::Message { message: id, by: By::Person });
        assert_eq!(message_of(&record), Some(id));
        let event = message_event(&record, &message, Some(2));
        let expected = json!({"type": "message", "id": id, "by": "person", "instruction": true, "text": "f"});
        assert_eq!((event.cut, serde_json::to_value(event.what).unwrap()), (true, expected));
        assert!(!message_event(&record, &message, None).cut);
    }
}
