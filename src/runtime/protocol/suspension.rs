//! Whether a call that makes requests is suspended: one rule for all tools.

use crate::core::requests::request::{Request, RequestResult};
use crate::runtime::RuntimeError;
use crate::store::{Caller, Requests, Store};

/// How a call is handled.
#[derive(Debug, PartialEq)]
pub(super) enum Suspension {
    /// It is new: its requests are recorded before it is suspended.
    Record,
    /// It stays suspended: some of its requests are open.
    Keep,
    /// It returns the results of its requests.
    Return(Vec<(Request, RequestResult)>),
}

impl Suspension {
    /// How `call` is handled, given its records.
    pub(super) fn of(store: &Store, caller: Caller, call: &str) -> Result<Self, RuntimeError> {
        Ok(Self::decide(store.requests(Requests::OfCall(caller.frame, call))?))
    }

    fn decide(known: Vec<(Request, Option<RequestResult>)>) -> Self {
        if known.is_empty() {
            return Self::Record;
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
    use crate::core::requests::question::Form;
    use crate::core::requests::request::RequestKind;

    fn request() -> Request {
        Request {
            id: RequestId::random(),
            frame: FrameId::random(),
            attempt: AttemptId::random(),
            call: Some("toolu_1".to_owned()),
            kind: RequestKind::Ask(Form::text("When?")),
            state: crate::core::requests::state::RequestState::Open,
            made: Timestamp::UNIX_EPOCH,
            progress: Default::default(),
        }
    }

    #[test]
    fn a_call_returns_when_all_that_it_asked_for_is_there() {
        let (one, other) = (request(), request());
        let yes = RequestResult::Text("yes".to_owned());
        let failed = RequestResult::Failed("no".to_owned());
        let decide = |results: [Option<&RequestResult>; 2]| {
            Suspension::decide(vec![(one.clone(), results[0].cloned()), (other.clone(), results[1].cloned())])
        };
        assert_eq!(Suspension::decide(Vec::new()), Suspension::Record);
        assert_eq!(decide([None, None]), Suspension::Keep);
        assert_eq!(decide([Some(&yes), None]), Suspension::Keep);
        assert_eq!(decide([None, Some(&failed)]), Suspension::Keep);
        let both = vec![(one.clone(), yes.clone()), (other.clone(), failed.clone())];
        assert_eq!(decide([Some(&yes), Some(&failed)]), Suspension::Return(both));
    }
}
