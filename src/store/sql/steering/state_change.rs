//! Changes of an agent's state between attempts: retried, continued, put off.

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::core::requests::request::RequestKind;
use crate::core::requests::request_state::RequestState;
use crate::store::error::StoreError;
use crate::store::records::StateChange;
use crate::store::sql::database::codec::{self, At, Id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::{groups, handoffs, request_records};
use crate::store::sql::steering::stops;
use crate::store::sql::tables::{events, frames, notifications, requests};

pub(crate) fn change_state(
    connection: &Connection,
    frame: FrameId,
    change: StateChange<'_>,
) -> TxResult<Option<FrameState>> {
    let now = codec::now();
    match change {
        StateChange::EndGroup => groups::end(connection, now, frame),
        StateChange::EndHandoff => handoffs::end(connection, now, frame),
        StateChange::TryAgain { top } => try_again(connection, now, frame, top).map(Some),
        StateChange::PutOff(why) => put_off(connection, now, frame, why),
    }
}

/// Makes a frame wait for its next try because its attempt could not begin; `why` is the reason. A frame that is running,
/// is already backing off or has ended does not change: another process was first.
pub(crate) fn put_off(connection: &Connection, now: At, frame: FrameId, why: &str) -> TxResult<Option<FrameState>> {
    let before = frames::existing(connection, frame)?;
    if !can_be_put_off(&before, now.0) {
        return Ok(None);
    }
    let state = frames::advance(connection, &before, FrameEvent::PutOff(why.to_owned()), now.0)?;
    let entry = LogEntry::PutOff { why: why.to_owned(), from: before.state.clone(), to: state.clone() };
    events::append(connection, now, frame, &entry)?;
    notifications::note_state(connection, now, &before, &state, false)?;
    Ok(Some(state))
}

fn can_be_put_off(frame: &Frame, now: jiff::Timestamp) -> bool {
    match &frame.state {
        FrameState::Ready => true,
        FrameState::Waiting { wait } => wait.paused_until(frame.since, now).is_none(),
        _ => false,
    }
}

/// Continues a paused frame, or retries one that failed, was cancelled or backs off, once its results exist. A group is
/// retried with its failed members. A paused frame that must stop does not change.
///
/// The result that a parent gets for a child must agree with the child's next state: a failure is handled once, by the
/// parent or by a retry. A child whose failure is being delivered does not change. A child whose failure was delivered is
/// only retried if it is itself resumed, as the `top`.
///
/// # Errors
///
/// [`StoreError::Illegal`] if none of this applies, or [`StoreError::FailureDelivered`].
pub(crate) fn try_again(connection: &Connection, now: At, frame: FrameId, top: FrameId) -> TxResult<FrameState> {
    let before = frames::existing(connection, frame)?;
    if matches!(before.state, FrameState::Failed { .. }) && is_failure_delivered(connection, frame, top)? {
        return Err(StoreError::FailureDelivered(frame).into());
    }
    if matches!(before.state, FrameState::Failed { .. }) {
        forget_failure(connection, &before)?;
        keep_told_failure(connection, &before)?;
    }
    if matches!(before.state, FrameState::Paused { .. }) {
        return continue_paused(connection, now, &before);
    }
    let members = groups::members(connection, before.id, &before.task)?;
    for member in members.iter().filter(|member| member.failure().is_some() && !member.state.was_stopped()) {
        try_again(connection, now, member.id, top)?;
    }
    let open_members = members.iter().any(|member| member.state != FrameState::Done);
    let open_requests = open_members || request_records::any_open(connection, &requests::pending(connection, frame)?)?;
    let state = frames::advance(connection, &before, FrameEvent::TryAgain { open_requests }, now.0)?;
    events::append(connection, now, frame, &LogEntry::TriedAgain { from: before.state, to: state.clone() })?;
    Ok(state)
}

/// Makes waits for the end of a frame or of its group wait for its next end.
///
/// # Errors
///
/// [`StoreError::FailureDelivered`] if such a wait has already ended.
fn forget_failure(connection: &Connection, frame: &Frame) -> TxResult<()> {
    let (mut ended, mut above) = (vec![frame.id], frame.parent);
    if let Some(parent) = above.map(|id| frames::load(connection, id)).transpose()?.flatten()
        && parent.task.is_group()
    {
        ended.push(parent.id);
        above = parent.parent;
    }
    let waits = above.map(|caller| requests::pending(connection, caller)).transpose()?.unwrap_or_default();
    for wait in waits {
        let RequestKind::Wait(external) = &wait.kind else { continue };
        let mut progress = wait.progress.clone();
        ended.iter().for_each(|ended| progress.forget_end(external, *ended));
        if progress == wait.progress {
            continue;
        }
        if wait.state != RequestState::Open {
            return Err(StoreError::FailureDelivered(frame.id).into());
        }
        requests::note(connection, wait.id, &progress)?;
    }
    Ok(())
}

/// Makes the failure that its caller was told of the outcome of an agent: as after an instruction, only a person waits for what it does
/// now, and its chain stays open until it has ended.
fn keep_told_failure(connection: &Connection, frame: &Frame) -> TxResult<()> {
    if frame.task.is_group() || !deliveries(connection, frame.id)?.iter().any(|status| status == DELIVERED) {
        return Ok(());
    }
    let sql = "UPDATE frames SET outcome = coalesce(outcome, ?2) WHERE id = ?1";
    connection.run(sql, (Id(frame.id), codec::json(&frame.state, &[])?))
}

/// Whether the agent that asked for a frame, or for its group, was told of its end, or is being told.
fn is_failure_delivered(connection: &Connection, frame: FrameId, top: FrameId) -> TxResult<bool> {
    Ok(deliveries(connection, frame)?.iter().any(|status| status != DELIVERED || frame != top))
}

const DELIVERED: &str = "delivered";

/// The states of the requests for a frame, or for its group, whose results have been or are being delivered.
fn deliveries(connection: &Connection, frame: FrameId) -> TxResult<Vec<String>> {
    let sql = "SELECT r.status FROM frames AS f LEFT JOIN frames AS p ON p.id = f.parent AND p.is_group
                   JOIN requests AS r ON r.child IN (f.id, p.id)
                   WHERE f.id = ?1 AND r.status IN ('delivering', 'delivered')";
    connection.read_all(sql, [Id(frame)], |row| row.get("status"))
}

/// Continues a paused agent, unless it must stop. Returns its state.
fn continue_paused(connection: &Connection, now: At, before: &Frame) -> TxResult<FrameState> {
    if stops::open(connection, before.id)?.is_some() {
        return Ok(before.state.clone());
    }
    let state = frames::advance(connection, before, FrameEvent::Continue, now.0)?;
    let entry = LogEntry::Continued { from: before.state.clone(), to: state.clone() };
    events::append(connection, now, before.id, &entry)?;
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::frame_state::Wait;
    use crate::core::notifications::occasion::Occasion;
    use crate::core::requests::request::RequestResult;
    use crate::core::requests::request_state::RequestState;
    use crate::store::Store;
    use crate::store::outbox::{Notifications, Subscribing, Subscription};
    use crate::store::records::{Caller, NewAttempt, Requests, StateChange};
    use crate::store::testing::{attempt, new, reply, store};

    #[test]
    fn a_frame_is_put_off_once_at_a_time_and_a_person_hears_of_it_once() {
        let (_temp, store) = store();
        let wanted = Subscription { config: "/c".into(), events: vec![Occasion::Failed] };
        store.outbox().subscribe(&Subscribing::To(wanted.clone())).unwrap();
        let root = store.root();
        for _ in 0..2 {
            store.change_state(root, StateChange::PutOff("no claude")).unwrap();
            let wait = Wait::Restart { tries: 1, why: "no claude".into() };
            assert_eq!(store.frame(root).unwrap().unwrap().state, FrameState::Waiting { wait });
        }
        store.try_again(root).unwrap();
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        let told: Vec<_> =
            store.outbox().list(Notifications::Newest(9)).unwrap().into_iter().map(|told| told.status).collect();
        assert_eq!(told, ["pending"]);
        store.try_again(root).unwrap();
        let caller = store.start(root);
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        assert_eq!(store.end(caller, &reply("done")), FrameState::Done);
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        assert_eq!(store.frame(root).unwrap().unwrap().state, FrameState::Done);
        assert_eq!(store.outbox().claim(jiff::SignedDuration::ZERO).unwrap(), None, "it is no longer so");
    }

    /// A process that wakes the parent, step by step.
    struct Waking<'a> {
        store: &'a Store,
        parent: FrameId,
        read: Option<NewAttempt>,
        runs: Option<Caller>,
    }

    impl Waking<'_> {
        fn reads(&mut self) {
            let results = self.store.results(self.parent);
            self.read = Some(attempt(results)).filter(|read| !read.given.is_empty());
        }

        fn begins(&mut self) {
            let Some(new) = self.read.take() else { return };
            match self.store.begin(self.parent, &new) {
                Ok(()) => self.runs = Some(Caller { frame: self.parent, attempt: new.id }),
                Err(error) => assert!(matches!(error, StoreError::ResultChanged(_)), "{error}"),
            }
        }

        fn ends(&mut self) {
            if let Some(caller) = self.runs.take() {
                let given = self.store.at_end(caller.frame, caller.attempt).unwrap().given;
                let failed = RequestResult::Failed("no disk".into());
                assert_eq!(given.into_iter().map(|delivery| delivery.result).collect::<Vec<_>>(), [failed]);
                self.store.end(caller, &Ending::Suspended);
            }
        }
    }

    /// A parent that waits for a failed child: the parent, the request, and the child.
    fn failed_child(store: &Store) -> (FrameId, crate::core::id::RequestId, FrameId) {
        let caller = store.start(store.root());
        let (request, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(caller, &Ending::Suspended);
        store.end(store.start(child), &Ending::Error("no disk".into()));
        (caller.frame, request, child)
    }

    #[test]
    fn a_failure_is_handled_by_the_parent_or_by_another_try_whenever_that_comes() {
        // The other command comes before each of the steps in which the parent is woken, and after the last.
        for at in 0..4 {
            let (_temp, store) = store();
            let (parent, request, child) = failed_child(&store);
            let mut waking = Waking { store: &store, parent, read: None, runs: None };
            let mut is_again = false;
            for step in 0..4 {
                if step == at {
                    let again = store.change_state(child, StateChange::TryAgain { top: parent });
                    is_again = again.is_ok();
                    let is_told = matches!(again, Err(StoreError::FailureDelivered(id)) if id == child);
                    assert!(is_again || is_told, "{at}: {again:?}");
                }
                match step {
                    0 => waking.reads(),
                    1 => waking.begins(),
                    2 => waking.ends(),
                    _ => {}
                }
                // A parent is told of a failure only if the child has failed.
                let state = store.requests(Requests::One(request)).unwrap().remove(0).0.state;
                let is_told = matches!(state, RequestState::Delivering { .. } | RequestState::Delivered { .. });
                let has_failed = store.frame(child).unwrap().unwrap().state.name() == "failed";
                assert!(!is_told || has_failed, "{at}, {step}: {state:?}");
            }
            assert_eq!(is_again, at < 2, "{at}");
            if is_again {
                store.end(store.start(child), &reply("done after all"));
                let text = RequestResult::Text("done after all".into());
                assert_eq!(store.results(parent), [(request, text)]);
            }
        }
    }

    #[test]
    fn a_child_whose_failure_was_delivered_is_tried_again_by_whoever_names_it() {
        let (_temp, store) = store();
        let (parent, _, child) = failed_child(&store);
        let caller = store.start(parent);
        let again = |top| store.change_state(child, StateChange::TryAgain { top });
        assert!(matches!(again(child), Err(StoreError::FailureDelivered(_))), "it is being delivered");
        store.end(caller, &reply("over"));
        assert!(matches!(again(parent), Err(StoreError::FailureDelivered(_))));
        assert!(again(child).is_ok());
    }
}
