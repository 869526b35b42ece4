//! Tests calls that stay open until their results arrive.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::attempt::ending::Ending;
use crate::core::requests::request::RequestResult;
use crate::store::conformance::{Open, fresh};
use crate::store::records::{PrintedRequests, Requests, ResultUse};
use crate::store::testing::{ask, new};

pub(crate) fn a_call_that_lingers_returns_its_result_in_its_own_attempt(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let asked = store.request(caller, Some("toolu_1"), &[ask("When?")]).unwrap()[0];
    let (spawned, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
    let lingers = || store.tree(caller.frame).unwrap().get(caller.frame).unwrap().lingers;
    let until = Timestamp::now() + SignedDuration::from_secs(1000);
    assert_eq!(store.use_results(caller, ResultUse::Awaited(&[spawned], until)).unwrap(), [], "no call has made it");
    assert_eq!(store.use_results(caller, ResultUse::Awaited(&[asked], until)).unwrap(), [asked]);
    assert!(lingers().is_some());
    let answer = RequestResult::Text("Jan 1st".into());
    assert_eq!(
        store.use_results(caller, ResultUse::InTime(&[(asked, answer.clone())])).unwrap(),
        [],
        "it has no result"
    );
    store.answer(asked, "Jan 1st").unwrap();
    assert_eq!(store.use_results(caller, ResultUse::InTime(&[(asked, answer.clone())])).unwrap(), [asked]);
    let returned = store.attempts(caller.frame).unwrap().remove(0);
    assert_eq!((lingers(), returned.lingered, returned.lingers), (None, 1, None));
    assert!(returned.lingered_for < Duration::from_secs(1000), "it was not there until the end");
    assert_eq!(returned.lingered_until(until), returned.lingered_for, "time does not count when no call is open");
    let at_end = store.at_end(caller.frame, caller.attempt).unwrap();
    assert_eq!((at_end.in_time, at_end.looked_up), (vec![asked], vec![]));
    // The call is not open at the end, but its request is not withdrawn.
    store.complete_requests(caller, PrintedRequests { open: Some(&[]), ..PrintedRequests::default() }).unwrap();
    assert_eq!(store.use_results(caller, ResultUse::OfProgram(asked)).unwrap(), [], "its result is given");
    store.end(caller, &Ending::Suspended);
    assert_eq!(store.requests(Requests::OfCall(caller.frame, "toolu_1")).unwrap().len(), 1);
    assert!(store.frame(child).unwrap().is_some());
}

pub(crate) fn the_request_of_a_call_becomes_that_of_a_program(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let asked = store.request(caller, Some("toolu_1"), &[ask("When?")]).unwrap()[0];
    let until = Timestamp::now() + SignedDuration::from_secs(1000);
    store.use_results(caller, ResultUse::Awaited(&[asked], until)).unwrap();
    let open = store.attempts(caller.frame).unwrap().remove(0);
    let since = open.lingers.unwrap().0;
    for (seconds, lingered) in [(-5, 0), (0, 0), (7, 7), (5000, 1000)] {
        let so_far = open.lingered_until(since + SignedDuration::from_secs(seconds)).as_secs();
        // The resolution is one millisecond, and some of them have passed.
        assert!(so_far.abs_diff(lingered) <= 1, "{so_far} s of {lingered} s");
    }
    assert_eq!(store.use_results(caller, ResultUse::OfProgram(asked)).unwrap(), [asked]);
    assert_eq!(store.use_results(caller, ResultUse::OfProgram(asked)).unwrap(), [], "once");
    assert_eq!(store.tree(caller.frame).unwrap().get(caller.frame).unwrap().lingers, None);
    store.complete_requests(caller, PrintedRequests { open: Some(&[]), ..PrintedRequests::default() }).unwrap();
    assert_eq!(store.requests(Requests::One(asked)).unwrap().len(), 1, "it is not the call's any more");
}
