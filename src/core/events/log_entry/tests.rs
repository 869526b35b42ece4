//! The JSON of each kind of entry. Databases contain it, and `show --json` prints it: fields may be added, but not removed.

use serde_json::json;

use super::*;
use crate::core::chain::frame_state::{Failure, FailureKind, Wait};
use crate::core::requests::question_form::Form;

const ID: uuid::Uuid = uuid::Uuid::nil();
const PATH: &str = "/bin/claude";

fn frame() -> FrameId {
    FrameId(ID)
}

/// One of each kind, with optional fields (`some`) or without.
pub(crate) fn every_kind(text: &str, some: bool, to: &FrameState) -> Vec<LogEntry> {
    let (request, attempt, session) = (RequestId(ID), AttemptId(ID), SessionId(ID));
    let (from, to) = (FrameState::Ready, to.clone());
    let text = text.to_owned();
    let maybe = some.then(|| text.clone());
    let by = if some { By::Agent(frame()) } else { By::Person };
    let origin = Origin { uid: 7, user: maybe.clone(), agent: some.then(frame), orphaned: some, ..Origin::default() };
    let expires_at = some.then_some(Timestamp::UNIX_EPOCH);
    let form = Form { default: maybe.clone(), expires_at, ..Form::text(&text) };
    let detail = Box::new(RequestKind::Ask(form));
    let launch = Launch { claude: PATH.into(), model: maybe.clone(), ..Launch::default() };
    let limits = Limits { max_budget_usd: some.then_some(0.25), ..Limits::default() };
    vec![
        LogEntry::Created {
            parent: some.then(frame),
            title: text.clone(),
            to: to.clone(),
            checkpoint: some.then_some(attempt),
        },
        LogEntry::Joined { parent: frame() },
        LogEntry::Detached { attempt: AttemptId(ID), chain: frame(), title: "ins2.md".into() },
        LogEntry::Deleted { parent: frame() },
        LogEntry::Began {
            attempt,
            session,
            resumed: some.then_some(session),
            runner: 42,
            delivering: vec![request; usize::from(some)],
            placed: vec![request; usize::from(some)],
            mode: maybe.clone(),
            from: from.clone(),
            to: to.clone(),
        },
        LogEntry::Ended {
            attempt: some.then_some(attempt),
            outcome: text.clone(),
            kept: some.then_some(true),
            cost_usd: some.then_some(0.25),
            from: from.clone(),
            to: to.clone(),
        },
        LogEntry::PutOff { why: text.clone(), from: from.clone(), to: to.clone() },
        LogEntry::TriedAgain { from: from.clone(), to: to.clone() },
        LogEntry::Continued { from: from.clone(), to: to.clone() },
        LogEntry::Paused { from: from.clone(), to: to.clone(), by, reason: maybe.clone() },
        LogEntry::Stopped { from: from.clone(), to: to.clone(), by, reason: maybe.clone() },
        LogEntry::Instructed { from, to },
        LogEntry::Message { message: MessageId(ID), by },
        LogEntry::Requested { request, attempt, detail: detail.clone() },
        LogEntry::Reworded { request, detail },
        LogEntry::Answered { request, answer: text.clone(), by: origin.clone() },
        LogEntry::AnswerReplaced { request, answer: text.clone(), replaced: text.clone(), by: origin },
        LogEntry::Expired { request, expires_at, default: maybe },
        LogEntry::WaitOver { request },
        LogEntry::Withdrawn { request },
        LogEntry::PermissionUsed { request, attempt },
        LogEntry::NameLost { name: text.clone(), to: frame() },
        LogEntry::Limits { from: Limits::default(), to: limits },
        LogEntry::Launch { from: Box::default(), to: Box::new(launch) },
        LogEntry::SetAside { session, other: session },
        LogEntry::Other(RecordedEntry {
            kind: "from_next_year".to_owned(),
            detail: json!({"text": text, "some": some}),
        }),
    ]
}

/// States with something in them.
pub(crate) fn states(text: &str) -> [FrameState; 4] {
    let failure = Failure { kind: FailureKind::Error, message: text.to_owned() };
    let wait = Wait::Retry { tries: 2, why: text.to_owned() };
    [
        FrameState::Done,
        FrameState::Failed { failure },
        FrameState::Waiting { wait: wait.clone() },
        FrameState::Running { waited: Some(wait) },
    ]
}

#[test]
fn the_json_of_each_kind() {
    const KINDS: [(&str, &str); 26] = [
        ("created", r#"{"parent":null,"title":"x","to":{"state":"done"},"checkpoint":null}"#),
        ("joined", r#"{"parent":ID}"#),
        ("detached", r#"{"attempt":ID,"chain":ID,"title":"ins2.md"}"#),
        ("deleted", r#"{"parent":ID}"#),
        (
            "began",
            r#"{"attempt":ID,"session":ID,"resumed":null,"runner":42,"delivering":[],"placed":[],"mode":null,FROM_TO}"#,
        ),
        ("ended", r#"{"outcome":"x",FROM_TO}"#),
        ("put_off", r#"{"why":"x",FROM_TO}"#),
        ("tried_again", "{FROM_TO}"),
        ("continued", "{FROM_TO}"),
        ("paused", r#"{FROM_TO,"by":"person","reason":null}"#),
        ("stopped", r#"{FROM_TO,"by":"person","reason":null}"#),
        ("instructed", "{FROM_TO}"),
        ("message", r#"{"message":ID,"by":"person"}"#),
        ("requested", r#"{"request":ID,"attempt":ID,"detail":{"ask":FORM}}"#),
        ("reworded", r#"{"request":ID,"detail":{"ask":FORM}}"#),
        ("answered", r#"{"request":ID,"answer":"x","by":ORIGIN}"#),
        ("answer_replaced", r#"{"request":ID,"answer":"x","replaced":"x","by":ORIGIN}"#),
        ("expired", r#"{"request":ID,"expires_at":null,"default":null}"#),
        ("wait_over", r#"{"request":ID}"#),
        ("withdrawn", r#"{"request":ID}"#),
        ("permission_used", r#"{"request":ID,"attempt":ID}"#),
        ("name_lost", r#"{"name":"x","to":ID}"#),
        ("limits", r#"{"from":LIMITS,"to":LIMITS}"#),
        ("launch", r#"{"from":LAUNCH "","to":LAUNCH "/bin/claude"}"#),
        ("set_aside", r#"{"session":ID,"other":ID}"#),
        ("from_next_year", r#"{"text":"x","some":false}"#),
    ];
    // What these contain belongs to other modules.
    let part = |value: serde_json::Result<String>| value.unwrap();
    let form = part(serde_json::to_string(&Form::text("x")));
    let origin = part(serde_json::to_string(&Origin { uid: 7, ..Origin::default() }));
    let limits = part(serde_json::to_string(&Limits::default()));
    let launch = |claude: &str| part(serde_json::to_string(&Launch { claude: claude.into(), ..Launch::default() }));
    let entries = every_kind("x", false, &FrameState::Done);
    assert_eq!(entries.len(), KINDS.len());
    for (entry, (kind, detail)) in entries.iter().zip(KINDS) {
        let expected = detail
            .replace("FROM_TO", r#""from":{"state":"ready"},"to":{"state":"done"}"#)
            .replace("ID", &format!("\"{ID}\""))
            .replace("FORM", &form)
            .replace("ORIGIN", &origin)
            .replace("LIMITS", &limits)
            .replace(r#"LAUNCH """#, &launch(""))
            .replace(r#"LAUNCH "/bin/claude""#, &launch(PATH));
        let recorded = entry.recorded().unwrap();
        assert_eq!((recorded.kind.as_str(), recorded.detail.to_string()), (kind, expected));
        let shown = serde_json::to_string(entry).unwrap();
        assert_eq!(shown, format!(r#"{{"kind":"{kind}","detail":{}}}"#, recorded.detail));
    }
}

#[test]
fn of_the_end_of_an_attempt_more_is_recorded_than_of_that_of_a_group() {
    let ended = every_kind("x", true, &FrameState::Done).swap_remove(5).recorded().unwrap().detail.to_string();
    let states = r#""from":{"state":"ready"},"to":{"state":"done"}"#;
    assert_eq!(ended, format!(r#"{{"attempt":"{ID}","outcome":"x","kept":true,"cost_usd":0.25,{states}}}"#));
}

#[test]
fn what_a_newer_version_records_is_kept_as_it_is() {
    let states = json!({"from": {"state": "ready"}, "to": {"state": "from_next_year"}});
    for (kind, detail) in [("from_next_year", json!(7)), ("tried_again", states), ("joined", json!({"below": 1}))] {
        let recorded = RecordedEntry { kind: kind.to_owned(), detail };
        assert_eq!(LogEntry::from(recorded.clone()), LogEntry::Other(recorded));
    }
}
