//! Requests that suspend a tool call. One call may make several: each of its questions is one.

use crate::core::id::{AttemptId, FrameId};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::requests::request_state::RequestState;
use crate::store::records::{Caller, PrintedRequests};
use crate::store::sql::database::codec::{self, Id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::{jobs, withdraw};
use crate::store::sql::tables::requests::{self, requests};

pub(crate) fn complete_requests(connection: &Connection, caller: Caller, printed: PrintedRequests<'_>) -> TxResult<()> {
    requests::check(connection, caller)?;
    let now = codec::now();
    if let Some(open) = printed.open {
        withdraw::withdraw_calls(connection, now, caller.attempt, open, printed.returned)?;
    }
    printed.made.iter().try_for_each(|job| jobs::record(connection, now, caller, job))?;
    printed.removed.iter().try_for_each(|job| jobs::remove(connection, now, caller, job))
}

/// The requests that a tool call of a frame has made and that were not withdrawn, in their order.
pub(crate) fn of_call(connection: &Connection, frame: FrameId, call: &str) -> TxResult<Vec<Request>> {
    let sql = requests!("WHERE r.frame = ?1 AND r.call = ?2 AND r.status <> 'withdrawn' ORDER BY r.seq");
    requests::all(connection, sql, (Id(frame), call))
}

/// Whether an attempt was stopped at a call that needs a permission and whose decision has not been delivered, even if the
/// decision exists.
pub(crate) fn awaits_permission(connection: &Connection, attempt: AttemptId) -> TxResult<bool> {
    let sql = requests!(
        "WHERE r.attempt = ?1 AND r.call IS NOT NULL AND r.status IN ('open', 'resolved', 'expired', 'delivering')"
    );
    let made = requests::all(connection, sql, [Id(attempt)])?;
    // A call that lingered was given the decision.
    let came_in_time = |request: &Request| matches!(request.state, RequestState::Delivering { attempt: given, .. } if given == attempt);
    let is_permission = |request: &Request| matches!(request.kind, RequestKind::Permission { .. });
    Ok(made.iter().any(|request| is_permission(request) && !came_in_time(request)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PrintedRequests, RequestKind};
    use crate::core::attempt::ending::Ending;
    use crate::store::error::StoreError;
    use crate::store::records::{Requests, ResultUse};
    use crate::store::testing::{ask, reply, store};

    #[test]
    fn the_questions_of_a_call_are_answered_in_any_order_and_belong_together() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.request(caller, Some("toolu_1"), &[ask("When?"), ask("Where?")]).unwrap();
        store.request(caller, Some("toolu_2"), &[ask("Why?")]).unwrap();
        let asked = store.requests(Requests::OfCall(caller.frame, "toolu_1")).unwrap();
        assert_eq!(asked.iter().map(|(request, _)| &request.kind).collect::<Vec<_>>(), [&ask("When?"), &ask("Where?")]);
        let made = store.start(store.root());
        for call in ["toolu_1", "toolu_2"] {
            store.request(made, Some(call), &[ask("Why?")]).unwrap();
        }
        let printed = PrintedRequests { open: Some(&["toolu_2"]), ..PrintedRequests::default() };
        store.complete_requests(made, printed).unwrap();
        let asked_by = |call| store.requests(Requests::OfCall(made.frame, call)).unwrap().len();
        assert_eq!((asked_by("toolu_1"), asked_by("toolu_2")), (0, 1));
        store.complete_requests(made, PrintedRequests { open: Some(&[]), ..PrintedRequests::default() }).unwrap();
        store.end(caller, &Ending::Suspended);

        store.answer(asked[1].0.id, "here").unwrap();
        let asked = store.requests(Requests::OfCall(caller.frame, "toolu_1")).unwrap();
        assert_eq!(asked.iter().map(|(_, result)| result.is_some()).collect::<Vec<_>>(), [false, true]);
        assert_eq!(store.questions(None, true).unwrap().len(), 2);
    }

    #[test]
    fn a_permission_is_waited_for_though_its_call_has_a_result() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        assert!(!store.at_end(caller.frame, caller.attempt).unwrap().awaits_permission);
        let kind = RequestKind::Permission {
            tool: "Bash".into(),
            input: json!({"command": "touch made"}),
            reason: None,
            place: None,
        };
        assert_eq!(store.request(caller, Some("toolu_1"), std::slice::from_ref(&kind)).unwrap().len(), 1);
        assert_eq!(store.request(caller, Some("toolu_2"), &[kind]).unwrap(), [], "only one call can be repeated");
        for returned in [&[][..], &["toolu_2"]] {
            let printed = PrintedRequests { open: Some(&[]), returned, ..PrintedRequests::default() };
            store.complete_requests(caller, printed).unwrap();
            assert!(store.at_end(caller.frame, caller.attempt).unwrap().awaits_permission);
        }
        let question = store.questions(None, true).unwrap().remove(0);
        assert_eq!(question.question, "Bash: touch made");
        store.answer(question.id, "allow").unwrap();
        assert!(store.at_end(caller.frame, caller.attempt).unwrap().awaits_permission);
        store.end(caller, &Ending::Suspended);
        store.end(store.start(caller.frame), &reply("done"));
        assert!(!store.at_end(caller.frame, caller.attempt).unwrap().awaits_permission);
    }

    #[test]
    fn nobody_is_asked_about_a_call_that_has_run() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let kind = RequestKind::Permission { tool: "Bash".into(), input: json!({}), reason: None, place: None };
        store.request(caller, Some("toolu_1"), &[kind]).unwrap();
        let printed = PrintedRequests { open: Some(&[]), returned: &["toolu_1"], ..PrintedRequests::default() };
        store.complete_requests(caller, printed).unwrap();
        assert!(!store.at_end(caller.frame, caller.attempt).unwrap().awaits_permission);
        assert!(store.questions(None, true).unwrap().is_empty());
    }

    #[test]
    fn a_permission_is_used_in_one_attempt() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "allow").unwrap();
        let first = store.start(frame);
        assert_eq!(store.use_results(first, ResultUse::Permission(question)).unwrap(), [question]);
        assert_eq!(store.use_results(first, ResultUse::Permission(question)).unwrap(), [question]);
        store.end(first, &Ending::Died { worked: false, how: "killed".into() });
        let second = store.start(frame);
        assert_eq!(store.use_results(second, ResultUse::Permission(question)).unwrap(), []);
        assert!(matches!(
            store.use_results(first, ResultUse::Permission(question)),
            Err(StoreError::StaleCaller { .. })
        ));
    }

    #[test]
    fn a_turn_that_has_ended_asks_nothing() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let late = store.request(caller, Some("toolu_1"), &[ask("When?")]);
        assert!(matches!(late, Err(StoreError::StaleCaller { .. })));
        assert_eq!(store.requests(Requests::OfCall(caller.frame, "toolu_1")).unwrap(), []);
    }
}
