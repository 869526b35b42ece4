//! Results that an agent receives while it works: the result that its resumed call has yet to return, and results that the
//! agent looks up itself.
//!
//! Normally the hook returns the result of a resumed call. If hooks were switched off in the meantime, or a user's hook has
//! rewritten the call, the call runs as the program that it names, which then must not make a second request.

use jiff::Timestamp;

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::{Request, RequestKind, RequestResult};
use crate::core::requests::request_state::{Handover, RequestEvent, RequestState};
use crate::store::error::StoreError;
use crate::store::records::{AtEnd, Attempts, Caller, ResultUse, Target};
use crate::store::sql::attempts::attempt_records as attempts;
use crate::store::sql::database::codec::{self, At, Id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::calls;
use crate::store::sql::requests::request_records::{deliveries_as, has_undelivered};
use crate::store::sql::requests::results::result;
use crate::store::sql::steering::messages;
use crate::store::sql::tables::events;
use crate::store::sql::tables::requests;

pub(crate) fn use_results(connection: &Connection, caller: Caller, how: ResultUse<'_>) -> TxResult<Vec<RequestId>> {
    requests::check(connection, caller)?;
    let now = codec::now();
    let mut used = Vec::new();
    match how {
        ResultUse::Awaited(requests, until) => return linger(connection, now, caller, requests, until),
        ResultUse::OfProgram(request) => return to_program(connection, caller, request),
        _ => {}
    }
    for (request, event) in to_use(connection, caller, how)? {
        requests::advance(connection, now, &request, event)?;
        let in_time = |results: &'_ [(RequestId, RequestResult)]| {
            results.iter().find(|(made, _)| *made == request.id).map(|(_, read)| read.clone())
        };
        let read = match how {
            ResultUse::LookedUp(_, read) => Some(read.clone()),
            ResultUse::InTime(results) => in_time(results),
            _ => None,
        };
        if let Some(read) = read {
            attempts::give(connection, caller.attempt, request.id, &read)?;
        }
        if let ResultUse::InTime(..) = how {
            end_lingering(connection, now, caller)?;
        }
        if matches!(event, RequestEvent::Use { .. }) {
            let entry = LogEntry::PermissionUsed { request: request.id, attempt: caller.attempt };
            events::append(connection, now, caller.frame, &entry)?;
        }
        used.push(request.id);
    }
    Ok(used)
}

pub(crate) fn at_end(connection: &Connection, frame: FrameId, attempt: AttemptId) -> TxResult<AtEnd> {
    let mut delivering = requests::delivering(connection, attempt)?;
    let has_background =
        requests::background(connection, frame)?.iter().any(|it| !delivering.iter().any(|given| given.id == it.id));
    delivering.retain(|request| handover(request) != Some(Handover::Joined));
    let is_given = |id: &RequestId| delivering.iter().any(|request| request.id == *id);
    let has_jobs = requests::pending(connection, frame)?.iter().any(|it| it.kind.is_job() && !is_given(&it.id));
    let shown = delivering.iter().filter(|it| handover(it) == Some(Handover::Shown));
    let was_looked_up = |request: &Request| handover(request) == Some(Handover::LookedUp);
    let looked_up = delivering.iter().filter(|request| was_looked_up(request));
    let in_time = delivering.iter().filter(|request| request.attempt == attempt && !was_looked_up(request));
    Ok(AtEnd {
        given: deliveries_as(connection, &delivering, &attempts::given(connection, attempt)?)?,
        looked_up: looked_up.map(|request| request.id).collect(),
        in_time: in_time.map(|request| request.id).collect(),
        shown: shown.map(|request| request.id).collect(),
        has_open: has_jobs || has_undelivered(connection, attempt)?,
        has_background,
        awaits_permission: calls::awaits_permission(connection, attempt)?,
        messages: messages::given_in(connection, attempt)?,
    })
}

/// The requests that an attempt can use like this, each with its event.
fn to_use(connection: &Connection, caller: Caller, how: ResultUse<'_>) -> TxResult<Vec<(Request, RequestEvent)>> {
    let given = || requests::delivering(connection, caller.attempt);
    Ok(match how {
        ResultUse::Returned(meant) => {
            let is_meant = |it: &Request| it.frame == caller.frame && is_to_return(it) && meant.contains(&it.id);
            given()?.into_iter().find(is_meant).map(|request| (request, RequestEvent::Return)).into_iter().collect()
        }
        ResultUse::Shown(shown) => {
            let shown = given()?.into_iter().filter(|request| shown.contains(&request.id));
            shown.map(|request| (request, RequestEvent::Show)).collect()
        }
        ResultUse::LookedUp(made, read) => {
            let is_it = |request: &Request| match (made, &request.kind) {
                (Target::Frame(frame), RequestKind::Spawn { child, .. }) => frame == *child,
                (made, _) => made == Target::Request(request.id),
            };
            made_and_read(connection, caller, is_it, read, Handover::LookedUp)?
        }
        ResultUse::InTime(results) => {
            let mut used = Vec::new();
            for (made, read) in results {
                used.extend(made_and_read(connection, caller, |it| it.id == *made, read, Handover::ToReturn)?);
            }
            if used.len() == results.len() { used } else { Vec::new() }
        }
        ResultUse::Permission(request) => {
            let request = requests::load(connection, request)?.ok_or(StoreError::UnknownRequest(request))?;
            let event = RequestEvent::Use { attempt: caller.attempt };
            if request.state.clone().after(event).is_ok() { vec![(request, event)] } else { Vec::new() }
        }
        ResultUse::Awaited(..) | ResultUse::OfProgram(_) => Vec::new(),
    })
}

/// The undelivered requests whose result is `read`.
fn made_and_read(
    connection: &Connection,
    caller: Caller,
    is_it: impl Fn(&Request) -> bool,
    read: &RequestResult,
    handover: Handover,
) -> TxResult<Vec<(Request, RequestEvent)>> {
    let mut used = Vec::new();
    for request in undelivered(connection, caller)?.into_iter().filter(is_it) {
        // A failed child may have been retried since.
        if result(connection, &request)?.as_ref() == Some(read) {
            let event = requests::deliver(&request, caller.attempt, handover);
            used.push((request, event));
        }
    }
    Ok(used)
}

/// The requests that the attempt made, or that are for agents in its background, and that it has not been given.
fn undelivered(connection: &Connection, caller: Caller) -> TxResult<Vec<Request>> {
    let mut undelivered = requests::pending(connection, caller.frame)?;
    undelivered.retain(|request| {
        let is_delivering = matches!(request.state, RequestState::Delivering { .. });
        !is_delivering && (request.attempt == caller.attempt || request.kind.is_background())
    });
    Ok(undelivered)
}

/// Records that a call stays open for its requests.
fn linger(
    connection: &Connection,
    now: At,
    caller: Caller,
    requests: &[RequestId],
    until: Timestamp,
) -> TxResult<Vec<RequestId>> {
    let mut made = undelivered(connection, caller)?;
    made.retain(|request| request.call.is_some() && requests.contains(&request.id));
    if !made.is_empty() {
        end_lingering(connection, now, caller)?;
        connection.run(
            "UPDATE attempts SET lingers = ?2, lingers_until = ?3, lingered = lingered + 1 WHERE id = ?1",
            (Id(caller.attempt), now, At(until)),
        )?;
    }
    Ok(made.into_iter().map(|request| request.id).collect())
}

fn end_lingering(connection: &Connection, now: At, caller: Caller) -> TxResult<()> {
    for attempt in attempts::attempts(connection, Attempts::RunningOf(caller.frame))? {
        connection.run(
            "UPDATE attempts SET lingered_for = ?2, lingers = NULL, lingers_until = NULL WHERE id = ?1",
            (Id(attempt.id), i64::try_from(attempt.lingered_until(now.0).as_millis()).unwrap_or(i64::MAX)),
        )?;
    }
    Ok(())
}

/// Records that the result of a request is no longer expected by the call that made it.
fn to_program(connection: &Connection, caller: Caller, request: RequestId) -> TxResult<Vec<RequestId>> {
    if !undelivered(connection, caller)?.iter().any(|made| made.id == request && made.call.is_some()) {
        return Ok(Vec::new());
    }
    connection.run("UPDATE requests SET call = NULL WHERE id = ?1", [Id(request)])?;
    end_lingering(connection, codec::now(), caller)?;
    Ok(vec![request])
}

fn is_to_return(request: &Request) -> bool {
    matches!(handover(request), Some(Handover::ToReturn | Handover::ByInput))
}

fn handover(request: &Request) -> Option<Handover> {
    match request.state {
        RequestState::Delivering { handover, .. } => Some(handover),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::requests::request::{RequestResult, SpawnForm};
    use crate::store::records::{AskedFor, NewAttempt};
    use crate::store::testing::{ask, attempt, new, reply, store};

    #[test]
    fn a_result_is_returned_once_and_by_the_running_attempt_only() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        let new = NewAttempt { resumed_calls: vec![(question, Handover::ToReturn)], ..attempt(store.results(frame)) };
        store.begin(frame, &new).unwrap();
        let caller = Caller { frame, attempt: new.id };
        let returned = |caller, meant: &[RequestId]| store.use_results(caller, ResultUse::Returned(meant));
        assert!(returned(Caller { frame: store.root(), ..caller }, &[question]).is_err());
        assert_eq!(returned(caller, &[RequestId::random()]).unwrap(), []);
        assert_eq!(returned(caller, &[question]).unwrap(), [question]);
        assert_eq!(returned(caller, &[question]).unwrap(), []);

        store.end(caller, &reply("SGN_PEND_ONGOING"));
        let again = NewAttempt { resumed_calls: vec![(question, Handover::ToReturn)], ..attempt(store.results(frame)) };
        store.begin(frame, &again).unwrap();
        let caller = Caller { frame, attempt: again.id };
        assert_eq!(returned(caller, &[question]).unwrap(), [question]);
        store.end(caller, &reply("SGN_PEND_ONGOING"));
        let last = NewAttempt { resumed_calls: vec![(question, Handover::ToReturn)], ..attempt(store.results(frame)) };
        store.begin(frame, &last).unwrap();
        let caller = Caller { frame, attempt: last.id };
        store.end(caller, &reply("over"));
        assert!(returned(caller, &[question]).is_err());
    }

    #[test]
    fn what_the_agent_has_read_itself_is_given_again_only_if_its_session_is_not_kept() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.answer(question, "Jan 1st").unwrap();
        store.end(store.start(child), &reply("done"));
        for (made, read) in [(Target::Request(question), "Jan 1st"), (Target::Frame(child), "done")] {
            assert!(store.has_undelivered_requests(caller.attempt).unwrap());
            let looked_up = |read: &str| {
                store.use_results(caller, ResultUse::LookedUp(made, &RequestResult::Text(read.into()))).unwrap().len()
            };
            assert_eq!((looked_up("something else"), looked_up(read), looked_up(read)), (0, 1, 0));
        }
        assert!(!store.has_undelivered_requests(caller.attempt).unwrap());
        assert_eq!(store.at_end(caller.frame, caller.attempt).unwrap().looked_up.len(), 2);
        store.end(caller, &reply("over"));
        assert_eq!(store.deliveries(caller.frame).unwrap(), []);

        let first = store.start(store.root());
        let question = store.request(first, None, &[ask("When?")]).unwrap()[0];
        store.end(first, &Ending::Suspended);
        store.answer(question, "Jan 1st").unwrap();
        let later = Caller { frame: first.frame, attempt: first.attempt };
        let read = RequestResult::Text("Jan 1st".into());
        assert!(store.use_results(later, ResultUse::LookedUp(Target::Request(question), &read)).is_err());
        assert_eq!(store.deliveries(first.frame).unwrap().len(), 1, "that attempt is over");
    }

    #[test]
    fn a_failure_that_was_read_is_what_was_given_unless_the_child_was_tried_again_before() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (request, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        let fails = || store.end(store.start(child), &Ending::Error("max turns".into()));
        fails();
        let read = RequestResult::Failed("max turns".into());
        let looked_up = || store.use_results(caller, ResultUse::LookedUp(Target::Frame(child), &read)).unwrap();
        store.try_again(child).unwrap();
        assert_eq!(looked_up(), [], "it runs again, and its parent gets what comes of that");
        fails();
        assert_eq!(looked_up(), [request]);
        assert!(store.try_again(child).is_err(), "its failure is handled once");
        let given = store.at_end(caller.frame, caller.attempt).unwrap().given;
        let given: Vec<_> = given.into_iter().map(|delivery| delivery.result).collect();
        assert_eq!(given, std::slice::from_ref(&read));
    }

    #[test]
    fn a_result_is_shown_in_one_attempt_of_its_own_frame() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        let new = attempt(store.results(frame));
        store.begin(frame, &new).unwrap();
        let caller = Caller { frame, attempt: new.id };
        assert!(store.at_end(frame, new.id).unwrap().shown.is_empty());
        let shown = |caller, ids: &[RequestId]| store.use_results(caller, ResultUse::Shown(ids));
        assert_eq!(shown(caller, &[question, RequestId::random()]).unwrap(), [question]);
        assert_eq!(store.at_end(frame, new.id).unwrap().shown, [question]);
        store.end(caller, &reply("SGN_PEND_ONGOING"));
        assert!(shown(caller, &[question]).is_err());
        let again = attempt(store.results(frame));
        store.begin(frame, &again).unwrap();
        assert!(store.at_end(frame, again.id).unwrap().shown.is_empty());
    }

    /// What may happen to an agent with others in its background.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        /// One of them replies.
        Ends(usize),
        /// The agent works, and pauses.
        Works,
        /// It is killed before it has said anything.
        IsKilled,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// In whatever order agents in the background end and their caller continues or is killed.
        #[test]
        fn each_result_of_an_agent_in_the_background_is_delivered_once(
            order in prop::collection::vec(
                prop_oneof![(0..3_usize).prop_map(Happens::Ends), Just(Happens::Works), Just(Happens::IsKilled)],
                0..12,
            ),
        ) {
            let (_temp, store) = store();
            let mut caller = store.start(store.root());
            let mut children = Vec::new();
            for title in ["a", "b", "c"] {
                let (form, call, json, detached) = (SpawnForm::Background, None, false, None);
                let asked = AskedFor { caller, call, title, form, json, detached };
                children.push(store.ask_for(asked, &new(title)).unwrap());
            }
            store.end(caller, &Ending::Suspended);
            let mut ended = HashSet::new();
            let mut delivered = Vec::new();
            let rest = (0..3).map(Happens::Ends).chain([Happens::Works, Happens::Works]);
            for happens in order.into_iter().chain(rest) {
                match happens {
                    Happens::Ends(at) if ended.insert(at) => {
                        let child = store.start(children[at].1);
                        store.end(child, &reply("done"));
                    }
                    Happens::Ends(_) => {}
                    Happens::Works => {
                        let given = store.results(caller.frame);
                        caller = store.start(caller.frame);
                        store.end(caller, &Ending::Suspended);
                        delivered.extend(given.into_iter().map(|(request, _)| request));
                    }
                    Happens::IsKilled => {
                        caller = store.start(caller.frame);
                        store.end(caller, &Ending::Died { how: "killed".to_owned(), worked: false });
                    }
                }
            }
            let mut expected: Vec<_> = children.iter().map(|(request, _)| *request).collect();
            expected.sort_unstable();
            delivered.sort_unstable();
            prop_assert_eq!(delivered, expected);
        }
    }
}
