//! Requests: recorded in the name of a running attempt, and delivered when they are over.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::core::requests::state::{RequestEvent, RequestState};
use crate::core::waits::progress::Progress;
use crate::store::database::codec::{self, Id, from_json};
use crate::store::database::store::Store;
use crate::store::error::Fault;
use crate::store::error::{Result, StoreError};
use crate::store::requests::posted;
use crate::store::requests::questions::expiry;
use crate::store::requests::results::result;
use crate::store::tables::caller::Caller;
use crate::store::tables::events;
use crate::store::tables::requests;

use crate::core::chain::state::FrameState;
use crate::failpoint::Step;

/// What can be seen of an open request from outside.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// How far an external wait is.
    Progress(&'a Progress),
    /// What time it is: a question may have expired.
    Time(Timestamp),
    /// The form that a question's file has now.
    Form(&'a Form),
}

impl Store {
    /// Records what an agent asks for: an answer, something outside, or the reply of a frame that exists. `call` is the
    /// tool call that is suspended until it is there. A posted question that was recorded before is not recorded again.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`], a path that is not valid UTF-8, or a database that cannot be written.
    pub fn request(&self, caller: Caller, call: Option<&str>, kind: &RequestKind) -> Result<RequestId> {
        self.write(Step::Request, |connection| {
            requests::check(connection, caller)?;
            if let RequestKind::Ask(form) = kind
                && let Some(recorded) = posted::recorded(connection, caller.attempt, form)?
            {
                return Ok(recorded);
            }
            requests::insert(connection, codec::now(), caller, call, kind)
        })
    }

    /// Whether an attempt made requests whose results its agent has not been given. They may be there.
    pub fn has_undelivered_requests(&self, attempt: AttemptId) -> Result<bool> {
        self.query(|connection| has_undelivered(connection, attempt))
    }

    /// The result of a request, delivered or not; `None` if it is open or was withdrawn.
    pub fn result_of(&self, request: RequestId) -> Result<Option<RequestResult>> {
        self.read(|connection| {
            match requests::load(connection, request)?.filter(|request| request.state != RequestState::Withdrawn) {
                Some(request) => result(connection, &request),
                None => Ok(None),
            }
        })
    }

    /// Records what somebody has seen who looked at an open request. Nothing changes for one that was over before.
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownRequest`], [`StoreError::NotAWait`], or the database cannot be written.
    pub fn looked(&self, request: RequestId, seen: &Seen<'_>) -> Result<()> {
        let step = match seen {
            Seen::Progress(_) => Step::Looked,
            Seen::Time(_) => Step::Expire,
            Seen::Form(_) => Step::Reword,
        };
        self.write(step, |connection| {
            let request = requests::load(connection, request)?.ok_or(StoreError::UnknownRequest(request))?;
            if request.state != RequestState::Open {
                return Ok(());
            }
            match seen {
                Seen::Progress(progress) => note(connection, &request, progress),
                Seen::Time(now) => expiry::expire(connection, &request, *now),
                Seen::Form(form) => posted::reword(connection, &request, form),
            }
        })
    }
}

/// Records how far an external wait is, and that it is over if that is so.
fn note(connection: &Connection, request: &Request, progress: &Progress) -> std::result::Result<(), Fault> {
    let RequestKind::Wait(wait) = &request.kind else { return Err(StoreError::NotAWait(request.id).into()) };
    requests::note(connection, request.id, progress)?;
    if !progress.is_over(wait) {
        return Ok(());
    }
    let now = codec::now();
    requests::advance(connection, now, request, RequestEvent::Resolve)?;
    events::append(connection, now, request.frame, "wait_over", &json!({"request": request.id}))
}

/// Whether one of `requests` keeps the agent that has made them from going on.
pub(crate) fn any_open(connection: &Connection, requests: &[Request]) -> std::result::Result<bool, Fault> {
    for request in requests.iter().filter(|request| !request.kind.is_job()) {
        let is_child_over = |child| Ok::<_, Fault>(state_of(connection, child)?.is_none_or(|state| state.is_over()));
        if !request.is_over(is_child_over)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn state_of(connection: &Connection, frame: FrameId) -> std::result::Result<Option<FrameState>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT ifnull(outcome, state) AS state FROM frames WHERE id = ?1")?;
    Ok(statement.query_row([Id(frame)], |row| from_json(row, "state")).optional()?)
}

pub(super) fn has_undelivered(connection: &Connection, attempt: AttemptId) -> std::result::Result<bool, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM requests WHERE attempt = ?1 AND status IN ('open', 'resolved', 'expired', 'delivering')
         AND delivered_in IS NOT ?1",
    )?;
    Ok(statement.exists([Id(attempt)])?)
}

/// The results of those requests that have one.
pub(super) fn deliveries(connection: &Connection, of: &[Request]) -> std::result::Result<Vec<Delivery>, Fault> {
    let mut deliveries = Vec::new();
    for request in of {
        if let Some(result) = result(connection, request)? {
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
        let gone = RequestKind::Spawn { child: FrameId::random(), task: "gone".into() };
        store.request(caller, None, &gone).unwrap();
        let waits = [
            External::File(PathBuf::from("/srv/a file")),
            External::Time(Timestamp::UNIX_EPOCH),
            External::Command("true".into()),
        ];
        let waits = waits.map(|wait| store.request(caller, None, &RequestKind::Wait(wait)).unwrap());
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
        let over = store.events(caller.frame, 0).unwrap().into_iter().filter(|event| event.kind == "wait_over").count();
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
