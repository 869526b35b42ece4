//! Formats the history of an agent for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::output::format::{one_line, past};
use crate::core::chain::frame_state::FrameState;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::core::requests::request::{RequestKind, SpawnForm};
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::By;

/// The most events to show. `--json` contains older ones.
const MOST: usize = 30;

/// Formats the newest events as lines, the oldest first, each with its age.
pub(crate) fn lines<'a>(
    events: impl ExactSizeIterator<Item = (Timestamp, &'a LogEntry)>,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<String> {
    let earlier = events.len().saturating_sub(MOST);
    let more = (earlier > 0).then(|| format!("… {earlier} earlier: --json has them"));
    let shown = events.skip(earlier).map(|(at, entry)| format!("{}: {}", past(at, now, zone), words(entry)));
    more.into_iter().chain(shown).collect()
}

fn words(entry: &LogEntry) -> String {
    match entry {
        LogEntry::Created { to, .. } => format!("created, {}", to.name()),
        LogEntry::Joined { .. } => "joined".to_owned(),
        LogEntry::Detached { chain, title, .. } => {
            format!("detached {} as the chain {}", one_line(title), chain.short())
        }
        LogEntry::Deleted { .. } => "deleted".to_owned(),
        LogEntry::Began { from: FrameState::Ready, .. } => "began".to_owned(),
        LogEntry::Began { .. } | LogEntry::Continued { .. } => "continued".to_owned(),
        LogEntry::Requested { request, detail, .. } => format!("{} ({})", requested(detail), request.short()),
        LogEntry::Reworded { .. } => "reworded".to_owned(),
        LogEntry::Ended { outcome, kept, to, .. } => {
            let discarded = if *kept == Some(false) { ", discarded" } else { "" };
            format!("ended its turn: {}{discarded}, {}", one_line(outcome), to.name())
        }
        LogEntry::Answered { request, by, .. } => format!("was answered {}{}", request.short(), by_origin(by)),
        LogEntry::AnswerReplaced { request, by, .. } => {
            format!("was given another answer to {}{}", request.short(), by_origin(by))
        }
        LogEntry::Stopped { by, reason, .. } => format!("was stopped{}{}", by_whom(*by), because(reason.as_deref())),
        LogEntry::Paused { by, reason, .. } => format!("was paused{}{}", by_whom(*by), because(reason.as_deref())),
        LogEntry::PutOff { why, .. } => format!("could not be started: {}", one_line(why)),
        LogEntry::TriedAgain { to, .. } => format!("is to be retried, {}", to.name()),
        LogEntry::Expired { request, default: Some(default), .. } => {
            format!("got the default of {}, which expired: {}", request.short(), one_line(default))
        }
        LogEntry::Expired { request, .. } => format!("got no answer to {}, which expired", request.short()),
        LogEntry::WaitOver { request } => format!("got what it waited for ({})", request.short()),
        LogEntry::Withdrawn { request } => format!("no longer asks for {}", request.short()),
        LogEntry::PermissionUsed { .. } => "made the call that was allowed".to_owned(),
        LogEntry::NameLost { name, to } => format!("is no longer named {}: {} is", one_line(name), to.short()),
        LogEntry::Limits { .. } => "was given other limits".to_owned(),
        LogEntry::Launch { .. } => "was given other launch options".to_owned(),
        LogEntry::Message { by, .. } => format!("was sent a message{}", by_whom(*by)),
        LogEntry::Instructed { .. } => "was given a new instruction".to_owned(),
        LogEntry::AfreshWanted {} => "is to start afresh".to_owned(),
        LogEntry::Afresh { new_session, .. } => format!("starts afresh in the session {new_session}"),
        LogEntry::SetAside { .. } => "set aside".to_owned(),
        LogEntry::Other(recorded) => one_line(&recorded.kind.replace('_', " ")),
    }
}

fn requested(kind: &RequestKind) -> String {
    match kind {
        RequestKind::Ask(form) => format!("asked: {}", one_line(&form.question)),
        RequestKind::Spawn { task, form: SpawnForm::Handoff, .. } => format!("handed off to {}", one_line(task)),
        RequestKind::Spawn { task, form: SpawnForm::Background, .. } => {
            format!("started {} in the background", one_line(task))
        }
        RequestKind::Spawn { task, .. } => format!("started {}", one_line(task)),
        RequestKind::Wait(_) => "began to wait".to_owned(),
        RequestKind::Permission { tool, .. } => format!("asked for approval of {}", one_line(tool)),
        RequestKind::Plan(plan) => format!("asked for approval of its plan: {}", one_line(plan.summary())),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default()
}

fn by_whom(by: By) -> String {
    match by {
        By::Agent(agent) => by_agent(agent),
        By::Person | By::Timeout(_) => String::new(),
    }
}

fn by_agent(agent: FrameId) -> String {
    format!(" by agent {}", agent.short())
}

/// Names the person or agent that did it, as far as this is recorded.
fn by_origin(origin: &Origin) -> String {
    if let Some(agent) = origin.agent {
        return by_agent(agent);
    }
    let user = origin.user.as_deref().map(|user| format!(" by {}", one_line(user))).unwrap_or_default();
    let file = origin.file.as_ref().map(|file| format!(" in the file {}", one_line(&file.path.display().to_string())));
    let page = origin.page.as_ref().map(|page| format!(" on the {}", one_line(&page.in_words())));
    user + &file.or(page).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::events::log_entry::RecordedEntry;
    use crate::core::id::{AttemptId, RequestId};
    use crate::core::requests::question_form::Form;

    const ID: uuid::Uuid = uuid::uuid!("4f2c1a90-0000-4000-8000-000000000001");

    #[test]
    fn an_event_is_a_sentence_without_its_subject() {
        let (request, attempt) = (RequestId(ID), AttemptId(ID));
        let answered = |by: Origin| LogEntry::Answered { request, answer: "x".into(), by };
        let detail = Box::new(RequestKind::Ask(Form::text("When?\u{1b}")));
        let (outcome, from) = ("reply".to_owned(), FrameState::Running { waited: None });
        let (kept, cost_usd, to) = (Some(false), Some(0.5), FrameState::Done);
        for (entry, expected) in [
            (
                LogEntry::Created { parent: None, title: "x".into(), to: FrameState::Ready, checkpoint: None },
                "created, ready",
            ),
            (LogEntry::Requested { request, attempt, detail }, "asked: When?\\u{1b} (4f2c1a90)"),
            (
                LogEntry::Ended { attempt: Some(attempt), outcome, kept, cost_usd, from, to },
                "ended its turn: reply, discarded, done",
            ),
            (answered(Origin { user: Some("me".into()), ..Origin::default() }), "was answered 4f2c1a90 by me"),
            (
                answered(Origin { agent: Some(FrameId(ID)), ..Origin::default() }),
                "was answered 4f2c1a90 by agent 4f2c1a90",
            ),
            (LogEntry::Other(RecordedEntry { kind: "from_next_year".into(), detail: json!(7) }), "from next year"),
        ] {
            assert_eq!(words(&entry), expected);
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let (now, entry) = (Timestamp::UNIX_EPOCH, LogEntry::Joined { parent: FrameId(ID) });
        let events = vec![(now, &entry); 32];
        let lines = lines(events.into_iter(), now, &TimeZone::UTC);
        assert_eq!((lines.len(), lines[0].as_str()), (31, "… 2 earlier: --json has them"));
        assert_eq!(lines[1], "00:00 (0 s ago): joined");
    }
}
