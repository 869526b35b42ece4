//! Stops: recorded for an agent and all below it, and carried out when none of them is running any more.

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{Failure, FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::core::requests::request_state::RequestState;
use crate::core::steering::stop_order::{Stop, StopKind};
use crate::store::records::Ordered;
use crate::store::sql::database::codec::{self, At, Id, from_json, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::{calls, withdraw};
use crate::store::sql::tables::below::below;
use crate::store::sql::tables::requests::{self, requests};
use crate::store::sql::tables::{events, frames, notifications};

pub(crate) fn order_stop(
    connection: &Connection,
    frame: FrameId,
    stop: &Stop,
    reports: &[(FrameId, String)],
) -> TxResult<Ordered> {
    frames::existing(connection, frame)?;
    order(connection, codec::now(), frame, stop, reports, GroupAtTop::Ends)
}

/// The result of the call at which an agent was stopped, if it continues: the call's real result is no longer needed.
pub(crate) fn moot_call(connection: &Connection, frame: &Frame) -> TxResult<Option<Delivery>> {
    let (Some(call), Some(_)) = (&frame.suspended, &frame.outcome) else { return Ok(None) };
    // Existing results are delivered.
    if !calls::of_call(connection, frame.id, call)?.is_empty() {
        return Ok(None);
    }
    let sql = requests!("WHERE r.frame = ?1 AND r.call = ?2 ORDER BY r.seq LIMIT 1");
    let first = requests::all(connection, sql, (Id(frame.id), call))?.pop();
    Ok(first.map(|Request { id, call, kind, .. }| {
        let result = RequestResult::Failed("You were stopped before there was a result.".to_owned());
        Delivery { request: id, call, kind, result }
    }))
}

const BELOW: &str =
    below!("SELECT f.id FROM below CROSS JOIN frames AS f ON f.id = below.id ORDER BY f.depth DESC, f.seq");

const RUNS_BELOW: &str = below!(
    "SELECT 1 FROM below CROSS JOIN frames AS f ON f.id = below.id WHERE f.id <> ?1 AND f.status = 'running' LIMIT 1"
);

/// The nearest first.
const PAUSED_ABOVE: &str = "WITH RECURSIVE above (distance, id, parent, status) AS (
        SELECT 0, id, parent, status FROM frames WHERE id = ?1
        UNION ALL SELECT distance + 1, f.id, f.parent, f.status FROM above CROSS JOIN frames AS f ON f.id = above.parent)
    SELECT id FROM above WHERE distance > 0 AND status = 'paused' ORDER BY distance";

/// What a stop of a group's members does to a group at the top.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupAtTop {
    /// It ends when they have ended, with what each of them has done.
    Ends,
    /// It is stopped, because no agent waits for its reply.
    Stops,
}

/// Records a stop for a frame and all below it, the deepest first.
fn order(
    connection: &Connection,
    now: At,
    top: FrameId,
    stop: &Stop,
    reports: &[(FrameId, String)],
    group: GroupAtTop,
) -> TxResult<Ordered> {
    let below = connection.read_all(BELOW, [Id(top)], |row| id(row, "id"))?;
    let mut ordered = Ordered::default();
    for id in below {
        let frame = frames::existing(connection, id)?;
        // A group has no agent: it ends when its members have ended, and reports what each of them has done, unless its
        // reply is no longer needed.
        let ends_by_itself = id == top && group == GroupAtTop::Ends || stop.how == StopKind::Pause;
        if frame.state.is_over() || frame.task.is_group() && ends_by_itself {
            continue;
        }
        let of_this = reports.iter().find(|(of, _)| *of == id).map(|(_, report)| report.clone());
        let stop = Stop { report: of_this, ..stop.clone() };
        if matches!(frame.state, FrameState::Running { .. }) {
            want(connection, now, id, &stop)?;
            ordered.running.push(id);
        } else if rest(connection, now, &frame, &stop)? {
            ordered.ended.push(id);
        }
    }
    Ok(ordered)
}

/// Pauses or ends a frame that is not running. Returns whether that changed anything.
fn rest(connection: &Connection, now: At, frame: &Frame, stop: &Stop) -> TxResult<bool> {
    let is_paused = matches!(frame.state, FrameState::Paused { .. });
    if stop.how == StopKind::Stop && runs_below(connection, frame.id)? {
        // It ends when nothing below it is running any more. Until then it is paused.
        want(connection, now, frame.id, stop)?;
        if !is_paused {
            frames::advance(connection, frame, FrameEvent::Pause, now.0)?;
        }
        return Ok(true);
    }
    if is_paused && stop.how == StopKind::Pause {
        return Ok(false);
    }
    want(connection, now, frame.id, stop)?;
    carry_out(connection, now, frame)?;
    Ok(true)
}

/// Carries out the stop of a frame that is not running.
fn carry_out(connection: &Connection, now: At, frame: &Frame) -> TxResult<()> {
    let Some(stop) = open(connection, frame.id)? else { return Ok(()) };
    let event = match stop.how {
        StopKind::Pause => FrameEvent::Pause,
        StopKind::Stop => FrameEvent::Stop(Failure::from_stop(&stop)),
    };
    let state = frames::advance(connection, frame, event, now.0)?;
    let (from, to, by, reason) = (frame.state.clone(), state.clone(), stop.by, stop.reason.clone());
    let entry = match stop.how {
        StopKind::Pause => LogEntry::Paused { from, to, by, reason },
        StopKind::Stop => LogEntry::Stopped { from, to, by, reason },
    };
    events::append(connection, now, frame.id, &entry)?;
    notifications::note_state(connection, now, frame, &state, stop.is_timeout())?;
    is_over(connection, now, frame, &stop)
}

/// The consequences of a stop that was carried out.
fn is_over(connection: &Connection, now: At, frame: &Frame, stop: &Stop) -> TxResult<()> {
    connection.run("UPDATE stops SET ended = ?2 WHERE frame = ?1 AND ended IS NULL", (Id(frame.id), now))?;
    if stop.how == StopKind::Pause {
        return Ok(());
    }
    // A child's reply is delivered if the agent is continued. No other result is needed.
    let is_moot = |kind: &RequestKind| !matches!(kind, RequestKind::Spawn { .. });
    for request in requests::pending(connection, frame.id)? {
        if request.state == RequestState::Open && is_moot(&request.kind) {
            withdraw::withdraw(connection, now, &request)?;
        }
    }
    if let Some(report) = stop.report.as_ref().filter(|_| frame.outcome.is_none()) {
        frames::set_reply(connection, frame.id, report)?;
    }
    Ok(())
}

/// Carries out stops after an attempt of `before` has ended and its frame has entered the state `after`. Runs in the
/// transaction that records this. `report`: what the agent has done so far.
pub(crate) fn settled(
    connection: &Connection,
    now: At,
    before: &Frame,
    after: &FrameState,
    report: Option<&str>,
) -> TxResult<()> {
    if let Some(stop) = open(connection, before.id)? {
        let stop = Stop { report: report.map(str::to_owned), ..stop };
        // The attempt ended in another way before the stop took effect.
        let was_faster = !(after.was_stopped() || matches!(after, FrameState::Paused { .. }));
        let how = if was_faster { StopKind::Pause } else { stop.how };
        is_over(connection, now, before, &Stop { how, ..stop.clone() })?;
        if !was_faster {
            // Its agent may have started others since it was asked to stop.
            order(connection, now, before.id, &Stop { report: None, ..stop }, &[], GroupAtTop::Ends)?;
        }
    }
    for paused in connection.read_all(PAUSED_ABOVE, [Id(before.id)], |row| id(row, "id"))? {
        let frame = frames::load(connection, paused)?.filter(|frame| matches!(frame.state, FrameState::Paused { .. }));
        if let Some(frame) = frame
            && !runs_below(connection, frame.id)?
        {
            carry_out(connection, now, &frame)?;
        }
    }
    Ok(())
}

/// Stops agents that worked in the background of callers which have ended without their results. `reports`: as
/// [`Records::order_stop`](crate::store::records::Records::order_stop) takes them.
pub(crate) fn left_behind(
    connection: &Connection,
    now: At,
    background: impl Iterator<Item = Request>,
    reports: &[(FrameId, String)],
) -> TxResult<()> {
    for request in background {
        let RequestKind::Spawn { child, .. } = request.kind else { continue };
        let stop = Stop::of_left_behind(request.frame, child);
        order(connection, now, child, &stop, reports, GroupAtTop::Stops)?;
    }
    Ok(())
}

fn runs_below(connection: &Connection, frame: FrameId) -> TxResult<bool> {
    connection.finds(RUNS_BELOW, [Id(frame)])
}

/// Records a stop of a frame, combined with an earlier open one.
fn want(connection: &Connection, now: At, frame: FrameId, stop: &Stop) -> TxResult<()> {
    let before = open(connection, frame)?;
    let text = |stop: &Stop| codec::json(stop, &[]);
    match before {
        Some(before) => connection.run(
            "UPDATE stops SET stop = ?2 WHERE frame = ?1 AND ended IS NULL",
            (Id(frame), text(&before.and(stop.clone()))?),
        )?,
        None => connection
            .run("INSERT INTO stops (frame, asked, stop) VALUES (?1, ?2, ?3)", (Id(frame), now, text(stop)?))?,
    };
    Ok(())
}

/// The stop of a frame that was not carried out yet.
pub(crate) fn open(connection: &Connection, frame: FrameId) -> TxResult<Option<Stop>> {
    connection.read_first("SELECT stop FROM stops WHERE frame = ?1 AND ended IS NULL", [Id(frame)], |row| {
        from_json(row, "stop")
    })
}

const ALL_OPEN: &str = "SELECT frame, stop FROM stops WHERE ended IS NULL";

pub(crate) fn all_open(connection: &Connection) -> TxResult<Vec<(FrameId, Stop)>> {
    connection.read_all(ALL_OPEN, [], |row| Ok((id(row, "frame")?, from_json(row, "stop")?)))
}

/// Announces [`all_open`].
pub(crate) fn send_ahead(connection: &Connection) -> TxResult<()> {
    connection.send_ahead(ALL_OPEN, [])
}

/// The last stop of a frame.
pub(crate) fn last(connection: &Connection, frame: FrameId) -> TxResult<Option<Stop>> {
    connection.read_first("SELECT stop FROM stops WHERE frame = ?1 ORDER BY seq DESC LIMIT 1", [Id(frame)], |row| {
        from_json(row, "stop")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::steering::stop_order::By;
    use crate::store::records::NewGroup;
    use crate::store::testing::{new, store};

    #[test]
    fn a_group_that_is_stopped_ends_with_its_members_and_one_that_nobody_waits_for_at_once() {
        let (_temp, store) = store();
        let stopped = |is_top: bool| {
            let root = store.start(store.root());
            let tasks = vec!["a".into(), "b".into()];
            let group = NewGroup { members: vec![new("a"), new("b")], cwd: "/srv".into(), tasks };
            let (_, group) = store.request_child(root, None, &group, "a b").unwrap();
            store.end(root, &Ending::Suspended);
            let of = if is_top { group } else { root.frame };
            let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of, report: None };
            let ordered = store.order_stop(of, &stop, &[]).unwrap();
            assert_eq!(ordered.running, []);
            (ordered.ended.len(), ordered.ended.contains(&group))
        };
        assert_eq!(stopped(true), (2, false));
        assert_eq!(stopped(false), (4, true));
    }

    #[test]
    fn an_agent_that_rests_is_not_paused_again() {
        let (_temp, store) = store();
        let frame = store.root();
        let pause = Stop { how: StopKind::Pause, now: false, by: By::Person, reason: None, of: frame, report: None };
        assert_eq!(store.order_stop(frame, &pause, &[]).unwrap().ended, [frame]);
        assert_eq!(store.order_stop(frame, &pause, &[]).unwrap(), Ordered::default());
        assert_eq!(store.try_again(frame).unwrap(), FrameState::Ready);
    }
}
