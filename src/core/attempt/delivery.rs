//! How an agent is given the results of its requests.

use crate::core::chain::frame::Frame;
use crate::core::requests::request::{Delivery, RequestKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryWay {
    /// Its suspended tool call returns the result: no prompt is needed.
    ResumedCall,
    /// Its suspended tool calls have their results in its transcript when it is told to continue.
    ResultsInTranscript,
    /// The call at which it was stopped is open again, and is decided on when the agent reaches it.
    RepeatedCall { call: String },
    /// A prompt.
    Prompt,
}

impl DeliveryWay {
    /// The way for the next attempt of `frame`, which is told `notices` in addition to the results. `hooks`: whether a
    /// suspended call can return its result; `unchanged`: whether it would return these results exactly as they are.
    #[must_use]
    pub(crate) fn of(frame: &Frame, deliveries: &[Delivery], notices: &[String], hooks: bool, unchanged: bool) -> Self {
        let permission = deliveries.iter().find(|delivery| matches!(delivery.kind, RequestKind::Permission { .. }));
        if let (true, Some(call)) = (hooks, permission.and_then(|delivery| delivery.call.clone())) {
            return Self::RepeatedCall { call };
        }
        let of_suspended = |delivery: &Delivery| delivery.call.is_some() && delivery.call == frame.suspended;
        if deliveries.iter().all(|delivery| delivery.call.is_none()) {
            Self::Prompt
        } else if hooks
            && notices.is_empty()
            && deliveries.iter().all(returns_by_itself)
            && deliveries.iter().all(of_suspended)
            && unchanged
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

#[cfg(test)]
pub(crate) mod testing {
    use jiff::Timestamp;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::agent::situation::Situation;
    use crate::core::chain::frame::Task;
    use crate::core::chain::state::FrameState;
    use crate::core::id::{FrameId, RequestId};
    use crate::core::requests::question::Form;
    use crate::core::requests::request::RequestResult;

    pub(crate) fn answer(text: &str) -> Delivery {
        Delivery {
            request: RequestId("4f2c1a90-0000-4000-8000-000000000000".parse().unwrap()),
            call: None,
            kind: RequestKind::Ask(Form::text("When is your birthday?")),
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
            outcome: None,
            created: Timestamp::UNIX_EPOCH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{testing::answer, testing::frame};
    use crate::core::chain::frame::Task;

    #[test]
    fn only_a_call_that_can_return_exactly_its_results_is_resumed() {
        let mut frame = frame(Task::Prompt(String::new()));
        frame.suspended = Some("t1".to_owned());
        let of_call = |call: Option<&str>| Delivery { call: call.map(str::to_owned), ..answer("a") };
        let deliveries = [of_call(Some("t1"))];
        let notices = ["a notice".to_owned()];
        for (deliveries, notices, hooks, unchanged, expected) in [
            (&deliveries[..], &[][..], true, true, DeliveryWay::ResumedCall),
            (&deliveries, &[], true, false, DeliveryWay::ResultsInTranscript),
            (&deliveries, &[], false, true, DeliveryWay::ResultsInTranscript),
            (&deliveries, &notices, true, true, DeliveryWay::ResultsInTranscript),
            (&[of_call(Some("t2"))], &[], true, true, DeliveryWay::ResultsInTranscript),
            (&[of_call(None)], &[], true, true, DeliveryWay::Prompt),
        ] {
            let way = DeliveryWay::of(&frame, deliveries, notices, hooks, unchanged);
            assert_eq!(way, expected, "{deliveries:?}, {notices:?}, hooks: {hooks}, unchanged: {unchanged}");
        }
    }
}
