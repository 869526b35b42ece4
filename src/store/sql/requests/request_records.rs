//! Requests: recorded in the name of a running attempt, and delivered when they have a result.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::core::requests::request_state::{RequestEvent, RequestState};
use crate::core::waits::outlook;
use crate::core::waits::wait_progress::WaitProgress;
use crate::store::error::StoreError;
use crate::store::records::{Caller, Requests, Seen};
use crate::store::sql::database::codec::{self, At, Id, from_json};
use crate::store::sql::engine::{Connection, Fault, TxResult};
use crate::store::sql::requests::questions::{expiry, flood};
use crate::store::sql::requests::results::result;
use crate::store::sql::requests::{attach, calls, jobs, questions};
use crate::store::sql::tables::events;
use crate::store::sql::tables::requests::{self, requests};

pub(crate) fn request(
    connection: &Connection,
    caller: Caller,
    call: Option<&str>,
    kinds: &[RequestKind],
) -> TxResult<Vec<RequestId>> {
    requests::check(connection, caller)?;
    let needs_permission = kinds.iter().any(|kind| matches!(kind, RequestKind::Permission { .. }));
    if needs_permission && calls::awaits_permission(connection, caller.attempt)? {
        return Ok(Vec::new());
    }
    flood::check(connection, caller.frame, kinds)?;
    let (now, mut standing) = (codec::now(), Vec::new());
    for kind in kinds {
        standing.extend(record(connection, now, caller, call, kind)?);
    }
    Ok(standing)
}

pub(crate) fn requests(
    connection: &Connection,
    which: Requests<'_>,
) -> TxResult<Vec<(Request, Option<RequestResult>)>> {
    let found = match which {
        Requests::One(request) => {
            requests::all(connection, requests!("WHERE r.id = ?1 AND r.status <> 'withdrawn'"), [Id(request)])?
        }
        Requests::OfCall(frame, call) => calls::of_call(connection, frame, call)?,
        Requests::Undelivered(attempt) => undelivered(connection, attempt)?,
        Requests::Background(frame) => requests::background(connection, frame)?,
        Requests::Jobs(frame) => jobs::jobs(connection, frame)?,
    };
    let with_result = |request: Request| {
        let result = result(connection, &request)?;
        Ok((request, result))
    };
    found.into_iter().map(with_result).collect()
}

pub(crate) fn looked(connection: &Connection, request: RequestId, seen: &Seen<'_>) -> TxResult<bool> {
    let request = requests::load(connection, request)?.ok_or(StoreError::UnknownRequest(request))?;
    if (request.state == RequestState::Open) == matches!(seen, Seen::Filed) {
        return Ok(false);
    }
    match seen {
        Seen::Progress(progress) => note(connection, &request, &request.progress.with(progress)),
        Seen::Try(at, since) => return begin_try(connection, &request, *at, *since),
        Seen::Tried(at, look) => {
            let mut progress = request.progress.clone();
            progress.note(*at, (*look).clone(), Timestamp::now());
            note(connection, &request, &progress)
        }
        Seen::Time(now) => expiry::expire(connection, &request, *now),
        Seen::Form(form) => questions::reword(connection, &request, form),
        Seen::Filed => questions::filed(connection, &request),
    }?;
    Ok(true)
}

/// Records one request of a caller. Returns the recorded one.
fn record(
    connection: &Connection,
    now: At,
    caller: Caller,
    call: Option<&str>,
    kind: &RequestKind,
) -> TxResult<Option<RequestId>> {
    let known = match kind {
        RequestKind::Spawn { child, .. } => return attach::join(connection, now, caller, *child, kind),
        RequestKind::Ask(form) => questions::recorded(connection, caller.attempt, form)?,
        _ => None,
    };
    known.map_or_else(|| requests::insert(connection, now, caller, call, kind), Ok).map(Some)
}

/// Records that a try of a command begins, if the command is due. Returns whether it is.
fn begin_try(connection: &Connection, request: &Request, at: usize, since: Timestamp) -> TxResult<bool> {
    let RequestKind::Wait(wait) = &request.kind else { return Err(StoreError::NotAWait(request.id).into()) };
    let now = Timestamp::now();
    let due = |condition| outlook::to_try(condition, &request.progress, at, since, now);
    if wait.conditions().get(at).and_then(due).is_none() {
        return Ok(false);
    }
    let mut progress = request.progress.clone();
    progress.begin_try(at, now);
    requests::note(connection, request.id, &progress)?;
    Ok(true)
}

/// Records the progress of an external wait, and its end if that is reached.
fn note(connection: &Connection, request: &Request, progress: &WaitProgress) -> TxResult<()> {
    let is_over = match &request.kind {
        RequestKind::Wait(wait) => progress.is_over(wait),
        RequestKind::Ask(form) if form.answered_in().is_some() => false,
        _ => return Err(StoreError::NotAWait(request.id).into()),
    };
    requests::note(connection, request.id, progress)?;
    if !is_over {
        return Ok(());
    }
    let now = codec::now();
    requests::advance(connection, now, request, RequestEvent::Resolve)?;
    events::append(connection, now, request.frame, &LogEntry::WaitOver { request: request.id })
}

/// Whether one of `requests` keeps the agent that has made them from continuing.
pub(crate) fn any_open(connection: &Connection, requests: &[Request]) -> TxResult<bool> {
    for request in requests.iter().filter(|request| !request.kind.is_job() && !request.kind.is_background()) {
        let is_child_over = |child| Ok::<_, Fault>(state_of(connection, child)?.is_none_or(|state| state.is_over()));
        if !request.is_over(is_child_over)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn state_of(connection: &Connection, frame: FrameId) -> TxResult<Option<FrameState>> {
    connection.read_first("SELECT coalesce(outcome, state) AS state FROM frames WHERE id = ?1", [Id(frame)], |row| {
        from_json(row, "state")
    })
}

/// The requests of an attempt whose results its agent has not been given.
fn undelivered(connection: &Connection, attempt: AttemptId) -> TxResult<Vec<Request>> {
    let sql = requests!(
        "WHERE r.attempt = ?1 AND r.status IN ('open', 'resolved', 'expired', 'delivering')
         AND r.delivered_in IS DISTINCT FROM ?1 ORDER BY r.seq"
    );
    requests::all(connection, sql, [Id(attempt)])
}

pub(crate) fn has_undelivered(connection: &Connection, attempt: AttemptId) -> TxResult<bool> {
    Ok(undelivered(connection, attempt)?.iter().any(|request| !request.kind.is_background()))
}

/// The results of those requests that have one.
pub(crate) fn deliveries(connection: &Connection, of: &[Request]) -> TxResult<Vec<Delivery>> {
    deliveries_as(connection, of, &HashMap::new())
}

/// Like [`deliveries`], but does not look up a `known` result.
pub(crate) fn deliveries_as(
    connection: &Connection,
    of: &[Request],
    known: &HashMap<RequestId, RequestResult>,
) -> TxResult<Vec<Delivery>> {
    let mut deliveries = Vec::new();
    for request in of {
        if let Some(result) =
            known.get(&request.id).cloned().map_or_else(|| result(connection, request), |it| Ok(Some(it)))?
        {
            let (call, kind) = (request.call.clone(), request.kind.clone());
            deliveries.push(Delivery { request: request.id, call, kind, result });
        }
    }
    Ok(deliveries)
}

#[cfg(test)]
mod tests {
    use crate::core::requests::request::External;
    use std::path::PathBuf;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::limits::{LimitReached, Limits};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::question_form::answer_file::Posted;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn a_child_stands_below_its_parent() {
        let (_temp, store) = store();
        let caller = store.start(store.create_root(&new("root")).unwrap());
        let mut wanted = new("child");
        wanted.limits = Limits { max_depth: 1, max_agents: 1, ..Limits::default() };
        let (_, child) = store.request_child(caller, None, &wanted, "child").unwrap();
        let child = store.frame(child).unwrap().unwrap();
        assert_eq!((child.parent, child.root, child.depth), (Some(caller.frame), caller.frame, 2));
        assert_eq!((store.chain_of(child.id).unwrap().limits, child.state), (Limits::default(), FrameState::Ready));
        let tree = store.tree(caller.frame).unwrap();
        assert_eq!(tree.children(caller.frame), [child.id]);
        assert_eq!(tree.get(caller.frame).unwrap().requests.len(), 1);
        assert_eq!(store.tree(child.id).unwrap().leaves_up().len(), 1);
    }

    #[test]
    fn a_question_that_was_posted_is_asked_once_in_an_attempt() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let post = |id: &str| {
            let posted = Posted { dir: "/q".into(), id: id.to_owned(), trouble: None };
            let kind = RequestKind::Ask(Form { posted: Some(posted), ..Form::text("When?") });
            store.request(caller, None, &[kind]).unwrap()
        };
        let first = post("q1");
        assert_eq!(post("q1"), first);
        assert_ne!(post("q2"), first);
        assert_eq!(store.tree(caller.frame).unwrap().get(caller.frame).unwrap().requests.len(), 2);
    }

    #[test]
    fn what_was_seen_of_a_file_is_no_answer_to_the_question_in_it() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let in_file = RequestKind::Ask(Form { file: Some("/q.md".into()), ..Form::text("When?") });
        let asked = store.request(caller, None, &[in_file, RequestKind::Ask(Form::text("Where?"))]).unwrap();
        let looked = |question| store.looked(question, &Seen::Progress(&WaitProgress::default()));
        looked(asked[0]).unwrap();
        assert!(matches!(looked(asked[1]), Err(StoreError::NotAWait(_))));
        assert_eq!(store.result_of(asked[0]).unwrap(), None);
    }

    #[test]
    fn a_tree_grows_up_to_its_limits() {
        let (_temp, store) = store();
        let mut root = new("root");
        root.limits = Limits { max_depth: 2, max_agents: 3, ..Limits::default() };
        let caller = store.start(store.create_root(&root).unwrap());
        let (_, child) = store.request_child(caller, None, &new("a"), "a").unwrap();
        store.request_child(caller, None, &new("b"), "b").unwrap();
        let error = store.request_child(caller, None, &new("c"), "c").unwrap_err();
        assert!(matches!(error, StoreError::Limit(LimitReached::Agents(3))), "{error}");
        store.end(caller, &Ending::Suspended);
        let error = store.request_child(store.start(child), None, &new("d"), "d").unwrap_err();
        assert!(matches!(error, StoreError::Limit(LimitReached::Depth(2))), "{error}");
        assert_eq!(store.tree(caller.frame).unwrap().leaves_up().len(), 3);
    }

    #[test]
    fn results_come_in_the_order_of_the_requests() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, good) = store.request_child(caller, None, &new("good"), "good").unwrap();
        let (_, bad) = store.request_child(caller, None, &new("bad"), "bad").unwrap();
        let (_, gone) = store.request_child(caller, None, &new("gone"), "gone").unwrap();
        store.execute("DELETE FROM frames WHERE id = ?1", [Id(gone)]);
        let waits = [
            External::File(PathBuf::from("/srv/a file")),
            External::Time(Timestamp::UNIX_EPOCH),
            External::Command("true".into()),
        ];
        let waits = waits.map(|wait| store.request(caller, None, &[RequestKind::Wait(wait)]).unwrap()[0]);
        assert!(store.has_undelivered_requests(caller.attempt).unwrap());
        store.end(caller, &Ending::Suspended);
        for wait in waits {
            store.resolve_wait(wait).unwrap();
            store.resolve_wait(wait).unwrap();
        }
        store.end(store.start(bad), &Ending::Error("max turns".into()));
        store.end(store.start(good), &reply("42\n"));
        let results: Vec<_> = store.deliveries(caller.frame).unwrap().into_iter().map(|done| done.result).collect();
        let text = |text: &str| RequestResult::Text(text.into());
        let failed = |text: &str| RequestResult::Failed(text.into());
        let expected = [
            text("42\n"),
            failed("max turns"),
            failed("that agent no longer exists"),
            text("it exists: /srv/a file"),
            text("the time has come"),
            text("the command succeeded"),
        ];
        assert_eq!(results, expected);
        assert!(store.has_undelivered_requests(caller.attempt).unwrap());
        store.end(store.start(caller.frame), &reply("over"));
        assert!(!store.has_undelivered_requests(caller.attempt).unwrap());
        let over = store
            .events(caller.frame, 0)
            .unwrap()
            .into_iter()
            .filter(|event| matches!(event.entry, LogEntry::WaitOver { .. }))
            .count();
        assert_eq!(over, 3);
    }

    #[test]
    fn only_external_waits_are_seen_to_be_over() {
        let (_temp, store) = store();
        let (_, question) = store.asking("When?");
        assert!(matches!(store.resolve_wait(question), Err(StoreError::NotAWait(id)) if id == question));
        assert!(matches!(store.resolve_wait(RequestId::random()), Err(StoreError::UnknownRequest(_))));
        assert_eq!(store.questions(None, true).unwrap().len(), 1);
    }
}
