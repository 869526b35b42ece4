//! How an agent is given the results of its requests.

use std::collections::HashSet;

use crate::core::chain::frame::Frame;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Delivery, RequestKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryWay {
    /// Its suspended tool call gets its result as if it had merely taken long.
    BareResult { call: String },
    /// Its suspended tool call returns the result: no prompt is needed.
    ResumedCall,
    /// Its suspended tool calls have their results in its transcript when it continues.
    ResultsInTranscript,
    /// The call at which it was stopped is open again, and is decided on when the agent reaches it.
    RepeatedCall { call: String },
    /// A prompt.
    Prompt,
}

/// What is possible with the suspended calls of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Possible {
    /// Whether there is a copy of its conversation. Claude Code may keep transcripts where agent-cli does not look for them.
    pub has_copy: bool,
    /// Whether such a call can return its result.
    pub hooks: bool,
    /// Whether it would return these results unchanged.
    pub unchanged: bool,
    /// Whether `claude` accepts its result on standard input, and no hook must see it first.
    pub bare: bool,
}

impl DeliveryWay {
    /// The way for the next attempt of `frame`, which gets `notices` in addition to the results.
    pub(crate) fn choose(frame: &Frame, deliveries: &[Delivery], notices: &[String], possible: Possible) -> Self {
        let Possible { has_copy, hooks, unchanged, bare } = possible;
        let permission = deliveries.iter().find(|delivery| matches!(delivery.kind, RequestKind::Permission { .. }));
        if let (true, Some(call)) = (hooks && has_copy, permission.and_then(|delivery| delivery.call.clone())) {
            return Self::RepeatedCall { call };
        }
        let of_suspended = |delivery: &Delivery| delivery.call.is_some() && delivery.call == frame.suspended;
        let Some(last) = deliveries.iter().rev().find_map(|delivery| delivery.call.as_ref()) else {
            return Self::Prompt;
        };
        let is_resumed = hooks
            && notices.is_empty()
            && deliveries.iter().all(returns_by_itself)
            && deliveries.iter().all(of_suspended)
            && unchanged;
        let takes_results =
            hooks && bare && has_copy && frame.situation.takes_result && deliveries.iter().all(is_of_command);
        // Only a command returns the agent's shell to its directory.
        let goes_back = is_resumed && frame.situation.shell.is_some();
        if takes_results && !goes_back {
            let suspended = deliveries.iter().find(|delivery| of_suspended(delivery)).and(frame.suspended.clone());
            Self::BareResult { call: suspended.unwrap_or_else(|| last.clone()) }
        } else if is_resumed {
            Self::ResumedCall
        } else if has_copy {
            Self::ResultsInTranscript
        } else {
            Self::Prompt
        }
    }
}

/// The deliveries, with a shared result only once: questions that were asked together have the same result.
pub(crate) fn one_for_each_batch(deliveries: &[Delivery]) -> Vec<Delivery> {
    let mut seen = HashSet::new();
    let is_new = |delivery: &&Delivery| match &delivery.kind {
        RequestKind::Ask(Form { batch: Some(batch), .. }) => seen.insert(batch.id),
        _ => true,
    };
    deliveries.iter().filter(is_new).cloned().collect()
}

/// Whether it is the result of a command, which is all that its call returns. Claude Code's own tools add text to a person's
/// words, which differs from version to version.
fn is_of_command(delivery: &Delivery) -> bool {
    returns_by_itself(delivery) && delivery.kind.native_question().is_none()
}

/// Whether its call can be resumed to return the result. A plan's cannot, because plans are approved only in an interactive
/// session; nor can a wake-up's, because resuming it would schedule another one.
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
    use crate::core::chain::frame_state::FrameState;
    use crate::core::id::{FrameId, RequestId};
    use crate::core::requests::question_form::Form;
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
            pushed: None,
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
            afresh: None,
            outcome: None,
            created: Timestamp::UNIX_EPOCH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::answer, testing::frame, *};
    use crate::core::agent::situation::Situation;
    use crate::core::chain::frame::Task;
    use crate::core::requests::question_form::Form;

    #[test]
    fn only_a_call_that_can_return_exactly_its_results_is_resumed() {
        let mut frame = frame(Task::Prompt(String::new()));
        frame.suspended = Some("t1".to_owned());
        let of_call = |call: Option<&str>| Delivery { call: call.map(str::to_owned), ..answer("a") };
        let deliveries = [of_call(Some("t1"))];
        let notices = ["a notice".to_owned()];
        let asked =
            |bare: bool, takes_result: bool, shell: Option<&str>, deliveries: &[Delivery], notices: &[String]| {
                let situation = Situation { takes_result, shell: shell.map(Into::into), ..Situation::default() };
                let frame = Frame { situation, ..frame.clone() };
                let possible = Possible { has_copy: true, hooks: true, unchanged: true, bare };
                DeliveryWay::choose(&frame, deliveries, notices, possible)
            };
        let bare = |call: &str| DeliveryWay::BareResult { call: call.to_owned() };
        let (both, others) = ([of_call(Some("t1")), of_call(Some("t2"))], [of_call(Some("t2")), of_call(None)]);
        let native =
            Delivery { kind: RequestKind::Ask(Form { native: true, ..Form::text("When?") }), ..of_call(Some("t1")) };
        assert_eq!(asked(true, true, None, &deliveries, &[]), bare("t1"));
        assert_eq!(asked(true, true, None, &deliveries, &notices), bare("t1"), "a notice stands beside it");
        assert_eq!(asked(true, true, None, &both, &[]), bare("t1"), "the one at which it is suspended");
        assert_eq!(asked(true, true, None, &others, &[]), bare("t2"));
        assert_eq!(asked(true, true, None, &[of_call(None)], &[]), DeliveryWay::Prompt, "no call waits");
        assert_eq!(asked(false, true, None, &deliveries, &[]), DeliveryWay::ResumedCall, "its claude cannot");
        assert_eq!(asked(true, false, None, &deliveries, &[]), DeliveryWay::ResumedCall, "something ran beside it");
        assert_eq!(asked(true, true, None, &[native], &[]), DeliveryWay::ResumedCall, "the tool has its own words");
        let moved = Some("/elsewhere");
        assert_eq!(asked(true, true, moved, &deliveries, &[]), DeliveryWay::ResumedCall, "a command moves its shell");
        assert_eq!(asked(true, true, moved, &both, &[]), bare("t1"), "no command would");

        for (deliveries, notices, hooks, unchanged, expected) in [
            (&deliveries[..], &[][..], true, true, DeliveryWay::ResumedCall),
            (&deliveries, &[], true, false, DeliveryWay::ResultsInTranscript),
            (&deliveries, &[], false, true, DeliveryWay::ResultsInTranscript),
            (&deliveries, &notices, true, true, DeliveryWay::ResultsInTranscript),
            (&[of_call(Some("t2"))], &[], true, true, DeliveryWay::ResultsInTranscript),
            (&[of_call(None)], &[], true, true, DeliveryWay::Prompt),
        ] {
            let possible = Possible { has_copy: true, hooks, unchanged, bare: false };
            let way = DeliveryWay::choose(&frame, deliveries, notices, possible);
            assert_eq!(way, expected, "{deliveries:?}, {notices:?}, hooks: {hooks}, unchanged: {unchanged}");
        }
        frame.situation.takes_result = true;
        let possible = |hooks| Possible { has_copy: false, hooks, unchanged: true, bare: true };
        let without_copy = |hooks| DeliveryWay::choose(&frame, &deliveries, &[], possible(hooks));
        assert_eq!([without_copy(true), without_copy(false)], [DeliveryWay::ResumedCall, DeliveryWay::Prompt]);
    }
}
