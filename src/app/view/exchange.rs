//! The views of the history: what agents asked, who answered, and what they did next.

use jiff::Timestamp;
use serde::Serialize;

use crate::app::view::question::AskedForView;
use crate::core::events::agent_event::AgentEvent;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::steering::origin::Origin;
use crate::runtime::RuntimeError;
use crate::runtime::activity::excerpts;
use crate::store::{EventRecord, Exchange, Store};

/// A question with everything on record about it, as `history` lists it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExchangeView {
    pub(crate) id: RequestId,
    /// The agent that asked.
    agent: FrameId,
    pub(crate) chain: FrameId,
    /// The agent's task.
    pub(crate) task: String,
    pub(crate) asked: Timestamp,
    /// What was shown, as it was recorded.
    pub(crate) shown: AskedForView,
    pub(crate) status: CallStatus,
    outcome: Outcome,
    /// The answer in effect.
    answer: Option<String>,
    pub(crate) records: Vec<RecordView>,
    pub(crate) given: Option<GivenView>,
    /// What the agent did first after it got the answer.
    pub(crate) then: Option<AgentEvent>,
}

/// The state of the agent's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum CallStatus {
    Open,
    Resolved,
    Delivering,
    Delivered,
    Expired,
    Withdrawn,
}

/// An answer, a withdrawal or an expiry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecordView {
    pub(crate) at: Timestamp,
    pub(crate) what: RecordKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    /// The answer that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaced: Option<String>,
    /// The answer in effect because none was given in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Origin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum RecordKind {
    Answered,
    AnswerReplaced,
    Expired,
    Withdrawn,
}

/// The outcome of a question, whether or not its agent knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Outcome {
    Open,
    Answered,
    Expired,
    Withdrawn,
}

/// When the agent got the answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GivenView {
    attempt: AttemptId,
    pub(crate) at: Timestamp,
}

/// When the agent got the answer. An agent may have read it while it worked.
fn given_at(exchange: &Exchange) -> Option<Timestamp> {
    let given = exchange.given?;
    Some(exchange.records.last().map_or(given.began, |last| last.at.max(given.began)))
}

impl ExchangeView {
    pub(crate) fn gather(store: &Store, exchange: Exchange) -> Result<Self, RuntimeError> {
        let then = excerpts::reaction(store, &exchange)?;
        let at = given_at(&exchange);
        let given = exchange.given.zip(at).map(|(given, at)| GivenView { attempt: given.attempt, at });
        let outcome = Outcome::new(&exchange.records);
        let answer = match exchange.records.last().map(|last| &last.entry) {
            Some(LogEntry::Answered { answer, .. } | LogEntry::AnswerReplaced { answer, .. }) => Some(answer.clone()),
            _ => None,
        };
        Ok(Self {
            id: exchange.id,
            agent: exchange.frame,
            chain: exchange.root,
            task: exchange.title,
            asked: exchange.asked,
            shown: AskedForView::new(exchange.kind),
            status: CallStatus::new(&exchange.status),
            outcome,
            answer,
            records: exchange.records.into_iter().filter_map(RecordView::new).collect(),
            given,
            then,
        })
    }
}

impl CallStatus {
    /// Parses the name of a request's state.
    fn new(name: &str) -> Self {
        match name {
            "resolved" => Self::Resolved,
            "delivering" => Self::Delivering,
            "delivered" => Self::Delivered,
            "expired" => Self::Expired,
            "withdrawn" => Self::Withdrawn,
            _ => Self::Open,
        }
    }
}

impl RecordView {
    /// `None` if the entry is about something else.
    fn new(EventRecord { at, entry, .. }: EventRecord) -> Option<Self> {
        let by = entry.origin().cloned();
        let record = |what| Self { at, what, answer: None, replaced: None, default: None, by };
        Some(match entry {
            LogEntry::Answered { answer, .. } => Self { answer: Some(answer), ..record(RecordKind::Answered) },
            LogEntry::AnswerReplaced { answer, replaced, .. } => {
                Self { answer: Some(answer), replaced: Some(replaced), ..record(RecordKind::AnswerReplaced) }
            }
            LogEntry::Expired { default, .. } => Self { default, ..record(RecordKind::Expired) },
            LogEntry::Withdrawn { .. } => record(RecordKind::Withdrawn),
            _ => return None,
        })
    }
}

impl Outcome {
    /// The last record determines the outcome. For example, an answered question can still be withdrawn.
    fn new(records: &[EventRecord]) -> Self {
        match records.last().map(|last| &last.entry) {
            Some(LogEntry::Answered { .. } | LogEntry::AnswerReplaced { .. }) => Self::Answered,
            Some(LogEntry::Expired { .. }) => Self::Expired,
            Some(LogEntry::Withdrawn { .. }) => Self::Withdrawn,
            _ => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::requests::request_state::RequestState;

    #[test]
    fn the_last_record_is_the_outcome() {
        let request = RequestId(uuid::Uuid::nil());
        let answered = LogEntry::Answered { request, answer: "x".into(), by: Origin::default() };
        let replaced =
            LogEntry::AnswerReplaced { request, answer: "y".into(), replaced: "x".into(), by: Origin::default() };
        let withdrawn = LogEntry::Withdrawn { request };
        for (entries, expected) in [
            (vec![], Outcome::Open),
            (vec![answered.clone(), replaced], Outcome::Answered),
            (vec![LogEntry::Expired { request, expires_at: None, default: None }], Outcome::Expired),
            (vec![answered, withdrawn], Outcome::Withdrawn),
        ] {
            let record = |entry| EventRecord { seq: 1, at: Timestamp::UNIX_EPOCH, frame: FrameId(request.0), entry };
            let records: Vec<_> = entries.into_iter().map(record).collect();
            assert_eq!(Outcome::new(&records), expected);
        }
    }

    #[test]
    fn a_state_of_a_request_has_its_own_name() {
        let names = ["open", "resolved", "delivering", "delivered", "expired", "withdrawn"];
        let printed = names.map(|name| serde_json::to_value(CallStatus::new(name)).unwrap());
        assert_eq!(printed, names.map(serde_json::Value::from));
        assert_eq!(CallStatus::new(RequestState::Open.name()), CallStatus::Open);
        assert_eq!(CallStatus::new(RequestState::Expired.name()), CallStatus::Expired);
    }

    #[test]
    fn a_record_has_the_keys_of_its_kind() {
        let request = RequestId(uuid::Uuid::nil());
        let json = |entry| {
            let record = EventRecord { seq: 1, at: Timestamp::UNIX_EPOCH, frame: FrameId(request.0), entry };
            let mut json = serde_json::to_value(RecordView::new(record)).unwrap();
            let by = json.as_object_mut().and_then(|json| json.remove("by"));
            (json, by.map(|by| by["process"].clone()))
        };
        let by = Origin { process: 7, ..Origin::default() };
        let at = "1970-01-01T00:00:00Z";
        for (entry, expected, is_by) in [
            (
                LogEntry::Answered { request, answer: "x".into(), by: by.clone() },
                serde_json::json!({"at": at, "what": "answered", "answer": "x"}),
                true,
            ),
            (
                LogEntry::AnswerReplaced { request, answer: "y".into(), replaced: "x".into(), by },
                serde_json::json!({"at": at, "what": "answer_replaced", "answer": "y", "replaced": "x"}),
                true,
            ),
            (
                LogEntry::Expired { request, expires_at: None, default: Some("z".into()) },
                serde_json::json!({"at": at, "what": "expired", "default": "z"}),
                false,
            ),
            (LogEntry::Withdrawn { request }, serde_json::json!({"at": at, "what": "withdrawn"}), false),
            (LogEntry::WaitOver { request }, serde_json::Value::Null, false),
        ] {
            assert_eq!(json(entry), (expected, is_by.then(|| 7.into())));
        }
    }
}
