//! What agents asked, who answered, and what they did then.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::app::view::question::AskedForView;
use crate::core::events::agent_event::AgentEvent;
use crate::core::events::log_entry::{LogEntry, Recorded};
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::runtime::RuntimeError;
use crate::runtime::activity::next_deed;
use crate::store::{EventRecord, Exchange, Store};

/// A question with everything on record about it, as `history` lists it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExchangeView {
    id: RequestId,
    /// The agent that asked.
    agent: FrameId,
    chain: FrameId,
    /// The agent's task.
    task: String,
    asked: Timestamp,
    /// What was shown, as it was recorded.
    shown: AskedForView,
    /// How far the agent's call is.
    status: String,
    outcome: Outcome,
    /// The answer that counts.
    answer: Option<String>,
    records: Vec<RecordView>,
    given: Option<GivenView>,
    /// What the agent did first once it had the answer.
    then: Option<AgentEvent>,
}

/// An answer, a withdrawal or an expiry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RecordView {
    at: Timestamp,
    what: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    answer: Value,
    /// The answer that this one replaced.
    #[serde(skip_serializing_if = "Value::is_null")]
    replaced: Value,
    /// The answer that counts because none was given in time.
    #[serde(skip_serializing_if = "Value::is_null")]
    default: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    by: Value,
}

/// What happened to a question, whether or not its agent knows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Outcome {
    Open,
    Answered,
    Expired,
    Withdrawn,
}

/// When the agent had the answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GivenView {
    attempt: AttemptId,
    at: Timestamp,
}

/// When the agent had the answer: it may have read it while it worked.
pub(crate) fn given_at(exchange: &Exchange) -> Option<Timestamp> {
    let given = exchange.given?;
    Some(exchange.records.last().map_or(given.began, |last| last.at.max(given.began)))
}

impl ExchangeView {
    pub(crate) fn gather(store: &Store, exchange: Exchange) -> Result<Self, RuntimeError> {
        let then = next_deed::after(store, &exchange)?;
        let at = given_at(&exchange);
        let given = exchange.given.zip(at).map(|(given, at)| GivenView { attempt: given.attempt, at });
        let outcome = Outcome::new(&exchange.records);
        let answer = match exchange.records.last().map(|last| &last.entry) {
            Some(LogEntry::Answered { answer, .. } | LogEntry::AnswerReplaced { answer, .. }) => Some(answer.clone()),
            _ => None,
        };
        let records: serde_json::Result<_> = exchange.records.into_iter().map(RecordView::new).collect();
        let records =
            records.map_err(|error| RuntimeError::Io { what: "read the log".to_owned(), source: error.into() })?;
        Ok(Self {
            id: exchange.id,
            agent: exchange.frame,
            chain: exchange.root,
            task: exchange.title,
            asked: exchange.asked,
            shown: AskedForView::new(exchange.kind),
            status: exchange.status,
            outcome,
            answer,
            records,
            given,
            then,
        })
    }
}

impl RecordView {
    fn new(EventRecord { at, entry, .. }: EventRecord) -> serde_json::Result<Self> {
        let Recorded { kind: what, detail } = entry.recorded()?;
        let field = |name: &str| detail.get(name).cloned().unwrap_or_default();
        let (answer, replaced, default, by) = (field("answer"), field("replaced"), field("default"), field("by"));
        Ok(Self { at, what, answer, replaced, default, by })
    }
}

impl Outcome {
    /// The last record says it: an answer can still be withdrawn with its question.
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
    use crate::core::steering::origin::Origin;

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
}
