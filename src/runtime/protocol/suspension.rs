//! Decides whether a call that makes requests is suspended, by one rule for all tools.

use crate::core::id::AttemptId;
use crate::core::requests::request::{Request, RequestResult};
use crate::core::requests::request_state::{Handover, RequestState};
use crate::runtime::RuntimeError;
use crate::runtime::protocol::printed_call;
use crate::store::{Caller, Requests, Store};

/// How a call is handled.
#[derive(Debug, PartialEq)]
pub(super) enum Suspension {
    /// It is new: its requests are recorded before it is suspended.
    Record,
    /// It stays suspended: some of its requests are open.
    Keep,
    /// It stays suspended, and gets the results of its requests from outside.
    LeaveOpen,
    /// It is another call with the id of an earlier one. The API assigns ids, and may repeat one.
    Repeated,
    /// It returns the results of its requests.
    Return(Vec<(Request, RequestResult)>),
}

/// The message to an agent whose call has the id of an earlier one.
pub(super) const REPEATED: &str = "nothing was run: this call has the id of an earlier call. Make the call again";

impl Suspension {
    /// How `call` is handled, given its records.
    pub(super) fn find(store: &Store, caller: Caller, call: &str) -> Result<Self, RuntimeError> {
        let known = store.requests(Requests::OfCall(caller.frame, call))?;
        let is_earlier = known.iter().any(|(request, _)| request.attempt != caller.attempt);
        // A call of an earlier attempt is asked about again, and returns, before the agent works in this one.
        if is_earlier && printed_call::is_past(store, caller, call)? {
            return Ok(Self::Repeated);
        }
        Ok(Self::decide(known, caller.attempt))
    }

    /// `now`: the attempt in which it is made, or asked about again.
    fn decide(known: Vec<(Request, Option<RequestResult>)>, now: AttemptId) -> Self {
        if known.is_empty() {
            return Self::Record;
        }
        let was_returned = |(request, _): &(Request, Option<RequestResult>)| match request.state {
            RequestState::Delivered { .. } => true,
            RequestState::Delivering { attempt, handover, .. } => attempt == now && handover == Handover::Shown,
            _ => false,
        };
        if known.iter().any(was_returned) {
            return Self::Repeated;
        }
        let comes_by_input = |(request, _): &(Request, Option<RequestResult>)| {
            let RequestState::Delivering { attempt, handover, .. } = request.state else { return false };
            attempt == now && handover == Handover::ByInput
        };
        if known.iter().any(comes_by_input) {
            return Self::LeaveOpen;
        }
        let resolved = known.into_iter().map(|(request, result)| Some((request, result?)));
        resolved.collect::<Option<_>>().map_or(Self::Keep, Self::Return)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::id::{AttemptId, FrameId, RequestId};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::RequestKind;

    fn request() -> Request {
        Request {
            id: RequestId::random(),
            frame: FrameId::random(),
            attempt: AttemptId::random(),
            call: Some("toolu_1".to_owned()),
            kind: RequestKind::Ask(Form::text("When?")),
            state: RequestState::Open,
            made: Timestamp::UNIX_EPOCH,
            progress: Default::default(),
        }
    }

    #[test]
    fn a_call_returns_when_all_that_it_asked_for_is_there() {
        let (one, other) = (request(), request());
        let now = AttemptId::random();
        let yes = RequestResult::Text("yes".to_owned());
        let failed = RequestResult::Failed("no".to_owned());
        let decide = |results: [Option<&RequestResult>; 2]| {
            Suspension::decide(vec![(one.clone(), results[0].cloned()), (other.clone(), results[1].cloned())], now)
        };
        assert_eq!(Suspension::decide(Vec::new(), now), Suspension::Record);
        assert_eq!(decide([None, None]), Suspension::Keep);
        assert_eq!(decide([Some(&yes), None]), Suspension::Keep);
        assert_eq!(decide([None, Some(&failed)]), Suspension::Keep);
        let both = vec![(one.clone(), yes.clone()), (other.clone(), failed.clone())];
        assert_eq!(decide([Some(&yes), Some(&failed)]), Suspension::Return(both));
        for (attempt, handover, stays_open) in [
            (now, Handover::ByInput, true),
            (now, Handover::Returned, false),
            (now, Handover::ToReturn, false),
            (AttemptId::random(), Handover::ByInput, false),
        ] {
            let state = RequestState::Delivering { attempt, resolved: true, handover, used_by: None, expired: false };
            let given = Request { state, ..one.clone() };
            let is_open = Suspension::decide(vec![(given, Some(yes.clone()))], now) == Suspension::LeaveOpen;
            assert_eq!(is_open, stays_open, "{handover:?}");
        }
        let shown = |attempt| RequestState::Delivering {
            attempt,
            resolved: true,
            handover: Handover::Shown,
            used_by: None,
            expired: false,
        };
        let delivered = RequestState::Delivered { attempt: AttemptId::random(), used_by: None, expired: false };
        for (state, is_repeated) in [(delivered, true), (shown(now), true), (shown(AttemptId::random()), false)] {
            let given = Request { state: state.clone(), ..one.clone() };
            let decided = Suspension::decide(vec![(given, Some(yes.clone())), (other.clone(), None)], now);
            assert_eq!(decided == Suspension::Repeated, is_repeated, "{state:?}");
        }
    }
}
