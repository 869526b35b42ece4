//! How an agent is given the results of its requests.

use crate::core::chain::frame::Frame;
use crate::core::requests::request::{Delivery, RequestKind, RequestResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryWay {
    /// Its suspended tool call returns the result: no prompt is needed.
    ResumedCall,
    /// Its suspended tool calls have their results in its transcript when it is told to continue.
    ResultsInTranscript,
    /// The call at which it was stopped is open again, and is decided on when the agent reaches it.
    ReopenedCall { call: String },
    /// A prompt.
    Prompt,
}

impl DeliveryWay {
    /// The way for the next attempt of `frame`, which is told `notices` in addition to the results. `hooks`: whether a
    /// suspended call can return its result.
    #[must_use]
    pub(crate) fn of(frame: &Frame, deliveries: &[Delivery], notices: &[String], hooks: bool) -> Self {
        let permission = deliveries.iter().find(|delivery| matches!(delivery.kind, RequestKind::Permission { .. }));
        if let (true, Some(call)) = (hooks, permission.and_then(|delivery| delivery.call.clone())) {
            return Self::ReopenedCall { call };
        }
        let of_suspended = |delivery: &Delivery| delivery.call.is_some() && delivery.call == frame.suspended;
        if deliveries.iter().all(|delivery| delivery.call.is_none()) {
            Self::Prompt
        } else if hooks
            && notices.is_empty()
            && deliveries.iter().all(returns_by_itself)
            && deliveries.iter().all(of_suspended)
            && is_returned(deliveries)
        {
            Self::ResumedCall
        } else {
            Self::ResultsInTranscript
        }
    }
}

/// Whether its call can be resumed to return the result. A plan's cannot, because plans are approved only in an
/// interactive session; nor can a wake-up's, because resuming it would schedule another one.
fn returns_by_itself(delivery: &Delivery) -> bool {
    delivery.kind.scheduled().is_none() && !matches!(delivery.kind, RequestKind::Plan(_))
}

/// Whether the call that made these requests can return their results unchanged.
///
/// The Bash tool trims the output of a command, and replaces it if nothing is left. Both tools write longer results to
/// a file.
fn is_returned(deliveries: &[Delivery]) -> bool {
    const MOST: usize = 30_000;
    let printed_unchanged = |text: &str| !text.is_empty() && text.trim() == text && !text.contains('\0');
    let mut length = 0;
    deliveries.iter().all(|delivery| {
        let (RequestResult::Text(text) | RequestResult::Failed(text)) = &delivery.result;
        length += text.len();
        length <= MOST && (delivery.kind.native_question().is_some() || printed_unchanged(text))
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use jiff::Timestamp;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::agent::situation::Situation;
    use crate::core::chain::frame::Task;
    use crate::core::chain::state::FrameState;
    use crate::core::id::{FrameId, RequestId};

    pub(crate) fn answer(text: &str) -> Delivery {
        Delivery {
            request: RequestId("4f2c1a90-0000-4000-8000-000000000000".parse().unwrap()),
            call: None,
            kind: RequestKind::Ask { question: "When is your birthday?".into(), choices: None },
            result: RequestResult::Text(text.into()),
        }
    }

    pub(crate) fn frame(task: Task) -> Frame {
        let id = FrameId::random();
        Frame {
            id,
            parent: None,
            root: id,
            depth: 1,
            task,
            cwd: "/p".into(),
            launch: Launch::default(),
            state: FrameState::Ready,
            since: Timestamp::UNIX_EPOCH,
            session: id.into(),
            checkpoint: None,
            baseline: None,
            suspended: None,
            situation: Situation::default(),
            trouble: None,
            created: Timestamp::UNIX_EPOCH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{testing::answer, testing::frame};
    use crate::core::chain::frame::Task;
    use crate::core::requests::choices::Choices;

    #[test]
    fn a_call_returns_what_its_tool_can_return() {
        let suspended = |results: &[&str], native: bool| {
            let mut frame = frame(Task::Prompt(String::new()));
            frame.suspended = Some("t1".to_owned());
            let choices = native.then(|| Choices { header: String::new(), multi_select: false, options: Vec::new() });
            let kind = RequestKind::Ask { question: "When?".into(), choices };
            let of = |text: &&str| Delivery { call: Some("t1".into()), kind: kind.clone(), ..answer(text) };
            (frame, results.iter().map(of).collect::<Vec<_>>())
        };
        let way = |results: &[&str], native| {
            let (frame, deliveries) = suspended(results, native);
            DeliveryWay::of(&frame, &deliveries, &[], true)
        };
        let (most, more) = ("x".repeat(30_000), "x".repeat(30_001));
        for (results, native, expected) in [
            (&["Jan 1st"][..], false, DeliveryWay::ResumedCall),
            (&[most.as_str()], false, DeliveryWay::ResumedCall),
            (&[more.as_str()], false, DeliveryWay::ResultsInTranscript),
            (&[""], false, DeliveryWay::ResultsInTranscript),
            (&[" a"], false, DeliveryWay::ResultsInTranscript),
            (&["a\n"], false, DeliveryWay::ResultsInTranscript),
            (&["a\0b"], false, DeliveryWay::ResultsInTranscript),
            (&["", " a"], true, DeliveryWay::ResumedCall),
            (&[&most[..20_000], &most[..10_000]], true, DeliveryWay::ResumedCall),
            (&[&most[..20_000], &most[..10_001]], true, DeliveryWay::ResultsInTranscript),
        ] {
            assert_eq!(way(results, native), expected, "{} of {}", results.len(), results[0].len());
        }
        let (frame, deliveries) = suspended(&["a"], false);
        assert_eq!(
            DeliveryWay::of(&frame, &deliveries, &["a notice".to_owned()], true),
            DeliveryWay::ResultsInTranscript
        );
        assert_eq!(DeliveryWay::of(&frame, &deliveries, &[], false), DeliveryWay::ResultsInTranscript, "without hooks");
        assert_eq!(DeliveryWay::of(&frame, &[answer("a")], &[], true), DeliveryWay::Prompt, "it was not suspended");
        let elsewhere = Frame { suspended: Some("t2".to_owned()), ..frame };
        assert_eq!(DeliveryWay::of(&elsewhere, &deliveries, &[], true), DeliveryWay::ResultsInTranscript);
    }
}
