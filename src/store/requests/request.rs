//! Requests: recorded in the name of a running attempt, and delivered when they are over.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::core::requests::state::{RequestEvent, RequestState};
use crate::core::waits::outlook;
use crate::core::waits::progress::{Look, Progress};
use crate::store::database::codec::{self, At, Id, from_json};
use crate::store::database::store::Store;
use crate::store::error::{Fault, Result, StoreError, TxResult};
use crate::store::requests::questions::{expiry, flood};
use crate::store::requests::results::result;
use crate::store::requests::{attach, calls, jobs, posted};
use crate::store::tables::caller::Caller;
use crate::store::tables::events;
use crate::store::tables::requests::{self, requests};

use crate::core::chain::state::FrameState;
use crate::failpoint::Step;

/// Which requests are meant, of those that were not withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests<'a> {
    One(RequestId),
    /// Those that a tool call of a frame has made.
    OfCall(FrameId, &'a str),
    /// Those that an attempt has made, and whose results its agent has not been given. They may be there.
    Undelivered(AttemptId),
    /// The jobs of a frame whose prompts have not been delivered.
    Jobs(FrameId),
}

/// What can be seen of a request from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// How far an external wait is, or what is known about the file of a question. It is added to what is recorded.
    Progress(&'a Progress),
    /// That the command at this place is tried from now on, if it is still due. One without an interval is due if it was not tried
    /// since this time.
    Try(usize, Timestamp),
    /// How such a try has ended.
    Tried(usize, &'a Look),
    /// What time it is: a question may have expired.
    Time(Timestamp),
    /// The form that a question's file has now.
    Form(&'a Form),
    /// That the files of a question which is over say so, or never will.
    Filed,
}

impl Store {
    /// Records what an agent asks for, all of it or nothing: an answer, a permission, something outside, or the reply of a chain
    /// that exists. `call` is the tool call that is suspended until it is there. Returns the requests, none of
    ///
    /// * a permission, if the attempt was stopped for another one: only one call can be repeated
    /// * a reply that nobody has to wait for in its name: that of a frame of its own tree that it did not join, or that is over
    ///
    /// What the agent has asked for already stands: a question that it has posted, a chain that it waits for.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`], [`StoreError::TooManyQuestions`], a path that is not valid UTF-8, or a database that cannot be written; for the reply of a chain
    /// [`StoreError::Limit`] when the tree would be too large, [`StoreError::UnknownFrame`] if the caller's session has not started it.
    pub fn request(&self, caller: Caller, call: Option<&str>, kinds: &[RequestKind]) -> Result<Vec<RequestId>> {
        let joins = kinds.iter().any(|kind| matches!(kind, RequestKind::Spawn { .. }));
        self.write(if joins { Step::Join } else { Step::Request }, |connection| {
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
        })
    }

    /// Requests in their order, each with its result if it is over.
    pub fn requests(&self, which: Requests<'_>) -> Result<Vec<(Request, Option<RequestResult>)>> {
        self.read(|connection| {
            let found = match which {
                Requests::One(request) => {
                    requests::all(connection, requests!("WHERE r.id = ?1 AND r.status <> 'withdrawn'"), [Id(request)])?
                }
                Requests::OfCall(frame, call) => calls::of_call(connection, frame, call)?,
                Requests::Undelivered(attempt) => undelivered(connection, attempt)?,
                Requests::Jobs(frame) => jobs::jobs(connection, frame)?,
            };
            let with_result = |request: Request| {
                let result = result(connection, &request)?;
                Ok((request, result))
            };
            found.into_iter().map(with_result).collect()
        })
    }

    /// Records what somebody has seen who looked at a request. Nothing changes for one that was over before, nor is one filed
    /// before it is over. Returns whether it was recorded.
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownRequest`], [`StoreError::NotAWait`], or the database cannot be written.
    pub(crate) fn looked(&self, request: RequestId, seen: &Seen<'_>) -> Result<bool> {
        let step = match seen {
            Seen::Progress(_) | Seen::Try(..) | Seen::Tried(..) => Step::Looked,
            Seen::Time(_) => Step::Expire,
            Seen::Form(_) => Step::Reword,
            Seen::Filed => Step::Filed,
        };
        self.write(step, |connection| {
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
                Seen::Form(form) => posted::reword(connection, &request, form),
                Seen::Filed => posted::filed(connection, &request),
            }?;
            Ok(true)
        })
    }
}

/// Records one request of a caller. Returns the one that stands then.
fn record(
    connection: &Connection,
    now: At,
    caller: Caller,
    call: Option<&str>,
    kind: &RequestKind,
) -> TxResult<Option<RequestId>> {
    let known = match kind {
        RequestKind::Spawn { child, .. } => return attach::join(connection, now, caller, *child, kind),
        RequestKind::Ask(form) => posted::recorded(connection, caller.attempt, form)?,
        _ => None,
    };
    known.map_or_else(|| requests::insert(connection, now, caller, call, kind), Ok).map(Some)
}

/// Records that a command is tried from now on, if it is due. Returns whether it is.
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

/// Records how far an external wait is, and that it is over if that is so.
fn note(connection: &Connection, request: &Request, progress: &Progress) -> TxResult<()> {
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

/// Whether one of `requests` keeps the agent that has made them from going on.
pub(crate) fn any_open(connection: &Connection, requests: &[Request]) -> TxResult<bool> {
    for request in requests.iter().filter(|request| !request.kind.is_job()) {
        let is_child_over = |child| Ok::<_, Fault>(state_of(connection, child)?.is_none_or(|state| state.is_over()));
        if !request.is_over(is_child_over)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn state_of(connection: &Connection, frame: FrameId) -> TxResult<Option<FrameState>> {
    let mut statement =
        connection.prepare_cached("SELECT ifnull(outcome, state) AS state FROM frames WHERE id = ?1")?;
    Ok(statement.query_row([Id(frame)], |row| from_json(row, "state")).optional()?)
}

/// Those of an attempt whose results its agent has not been given.
fn undelivered(connection: &Connection, attempt: AttemptId) -> TxResult<Vec<Request>> {
    let sql = requests!(
        "WHERE r.attempt = ?1 AND r.status IN ('open', 'resolved', 'expired', 'delivering')
         AND r.delivered_in IS NOT ?1 ORDER BY r.seq"
    );
    requests::all(connection, sql, [Id(attempt)])
}

pub(super) fn has_undelivered(connection: &Connection, attempt: AttemptId) -> TxResult<bool> {
    Ok(!undelivered(connection, attempt)?.is_empty())
}

/// The results of those requests that have one.
pub(super) fn deliveries(connection: &Connection, of: &[Request]) -> TxResult<Vec<Delivery>> {
    deliveries_as(connection, of, &HashMap::new())
}

/// The same. A result that is `known` is not looked up.
pub(super) fn deliveries_as(
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
    use crate::core::posted::place::Posted;
    use crate::core::requests::question::Form;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn a_child_stands_below_its_parent() {
        let (_temp, store) = store();
        let caller = store.start(store.create_root(&new("root")).unwrap());
        let mut wanted = new("child");
        wanted.limits = Limits { max_depth: 1, max_frames: 1, ..Limits::default() };
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
        let looked = |question| store.looked(question, &Seen::Progress(&Progress::default()));
        looked(asked[0]).unwrap();
        assert!(matches!(looked(asked[1]), Err(StoreError::NotAWait(_))));
        assert_eq!(store.result_of(asked[0]).unwrap(), None);
    }

    #[test]
    fn a_tree_grows_up_to_its_limits() {
        let (_temp, store) = store();
        let mut root = new("root");
        root.limits = Limits { max_depth: 2, max_frames: 3, ..Limits::default() };
        let caller = store.start(store.create_root(&root).unwrap());
        let (_, child) = store.request_child(caller, None, &new("a"), "a").unwrap();
        store.request_child(caller, None, &new("b"), "b").unwrap();
        let error = store.request_child(caller, None, &new("c"), "c").unwrap_err();
        assert!(matches!(error, StoreError::Limit(LimitReached::Frames(3))), "{error}");
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
        store.connection.execute("DELETE FROM frames WHERE id = ?1", [Id(gone)]).unwrap();
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
            failed("its frame is gone"),
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
