//! The rows of requests, and the one place that changes their state.

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::{Request, RequestKind, SpawnForm};
use crate::core::requests::request_state::{Handover, RequestEvent, RequestState};
use crate::core::waits::wait_progress::WaitProgress;
use crate::store::error::StoreError;
use crate::store::records::Caller;
use crate::store::sql::database::codec::{self, At, Id, from_json, id, maybe_json, time};
use crate::store::sql::engine::{Connection, Row, TxResult, Values};
use crate::store::sql::tables::{chains, events, frames, notifications};

/// A query for requests. The states in which an agent has not been given the result are `open`, `resolved`, `expired` and
/// `delivering`.
macro_rules! requests {
    ($($condition:literal),+) => {
        concat!("SELECT r.id, r.frame, r.attempt, r.call, r.detail, r.state, r.made, r.looked FROM requests AS r ", $($condition),+)
    };
}
pub(crate) use requests;

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Request> {
    Ok(Request {
        id: id(row, "id")?,
        frame: id(row, "frame")?,
        attempt: id(row, "attempt")?,
        call: row.get("call")?,
        kind: from_json(row, "detail")?,
        state: from_json(row, "state")?,
        made: time(row, "made")?,
        progress: maybe_json(row, "looked")?.unwrap_or_default(),
    })
}

/// The requests that a [query](requests) finds.
pub(crate) fn all(connection: &Connection, sql: &str, parameters: impl Values) -> TxResult<Vec<Request>> {
    connection.read_all(sql, parameters, from_row)
}

/// One request.
pub(crate) fn load(connection: &Connection, request: RequestId) -> TxResult<Option<Request>> {
    connection.read_first(requests!("WHERE r.id = ?1"), [Id(request)], from_row)
}

/// The requests of a frame whose results its agent has not been given.
pub(crate) fn pending(connection: &Connection, frame: FrameId) -> TxResult<Vec<Request>> {
    let sql =
        requests!("WHERE r.frame = ?1 AND r.status IN ('open', 'resolved', 'expired', 'delivering') ORDER BY r.seq");
    all(connection, sql, [Id(frame)])
}

/// Like [`pending`], but only for agents in its background.
pub(crate) fn background(connection: &Connection, frame: FrameId) -> TxResult<Vec<Request>> {
    let mut pending = pending(connection, frame)?;
    pending.retain(|request| request.kind.is_background());
    Ok(pending)
}

/// The requests whose results an attempt is being given.
pub(crate) fn delivering(connection: &Connection, attempt: AttemptId) -> TxResult<Vec<Request>> {
    let sql = requests!("WHERE r.delivered_in = ?1 AND r.status = 'delivering' ORDER BY r.seq");
    all(connection, sql, [Id(attempt)])
}

/// Only the running attempt of a frame may make requests: no other would receive the result.
pub(crate) fn check(connection: &Connection, caller: Caller) -> TxResult<()> {
    if connection.host().is_some()
        && let Some(frame) = frames::load(connection, caller.frame)?
    {
        chains::check_host(connection, frame.root)?;
    }
    let running = connection.finds(
        "SELECT 1 FROM attempts WHERE id = ?1 AND frame = ?2 AND ended IS NULL",
        (Id(caller.attempt), Id(caller.frame)),
    )?;
    let stale = || StoreError::StaleCaller { frame: caller.frame, attempt: caller.attempt };
    if running { Ok(()) } else { Err(stale().into()) }
}

/// Records an open request.
pub(crate) fn insert(
    connection: &Connection,
    now: At,
    caller: Caller,
    call: Option<&str>,
    kind: &RequestKind,
) -> TxResult<RequestId> {
    let request = RequestId::random();
    let paths: Vec<&Path> = match kind {
        RequestKind::Wait(wait) => wait.files().collect(),
        _ => Vec::new(),
    };
    connection.run(
        "INSERT INTO requests (id, frame, attempt, made, since, state, detail, call)
             VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7)",
        (
            Id(request),
            Id(caller.frame),
            Id(caller.attempt),
            now,
            codec::json(&RequestState::Open, &[])?,
            codec::json(kind, &paths)?,
            call,
        ),
    )?;
    let entry = LogEntry::Requested { request, attempt: caller.attempt, detail: Box::new(kind.clone()) };
    events::append(connection, now, caller.frame, &entry)?;
    notifications::note_request(connection, now, caller.frame, request, kind)?;
    Ok(request)
}

/// Moves a request to the state after `event`. Nothing else changes a state.
pub(crate) fn advance(
    connection: &Connection,
    now: At,
    request: &Request,
    event: RequestEvent,
) -> TxResult<RequestState> {
    let state = request.state.clone().after(event)?;
    if state != request.state {
        connection.run(
            "UPDATE requests SET state = ?2, since = ?3 WHERE id = ?1",
            (Id(request.id), codec::json(&state, &[])?, now),
        )?;
    }
    if let RequestEvent::Deliver { attempt, .. } = event {
        join(connection, now, request, attempt)?;
    }
    Ok(state)
}

/// The result of a wait contains the results of the agents that it waited for.
fn join(connection: &Connection, now: At, wait: &Request, attempt: AttemptId) -> TxResult<()> {
    let RequestKind::Wait(external) = &wait.kind else { return Ok(()) };
    let ended = wait.progress.ended_agents(external);
    for request in background(connection, wait.frame)? {
        let RequestKind::Spawn { child, .. } = request.kind else { continue };
        let is_joined = if ended.contains(&child) {
            // One that was continued since has another result.
            let goes_on = "SELECT 1 FROM frames WHERE id = ?1 AND seen_status NOT IN ('done', 'failed')";
            !connection.finds(goes_on, [Id(child)])?
        } else {
            let members: Vec<FrameId> = connection.read_all(MEMBERS, [Id(child)], |row| id(row, "id"))?;
            let joined = joined_members(connection, wait.frame, child)?;
            !members.is_empty() && members.iter().all(|member| joined.contains(member))
        };
        if is_joined {
            let event = deliver(&request, attempt, Handover::Joined);
            advance(connection, now, &request, event)?;
        }
    }
    Ok(())
}

const MEMBERS: &str =
    "SELECT m.id FROM frames AS g CROSS JOIN frames AS m ON m.parent = g.id WHERE g.id = ?1 AND g.is_group";

/// The members of a group in the background of `caller` whose results the caller has got by waiting for them.
pub(crate) fn joined_members(connection: &Connection, caller: FrameId, group: FrameId) -> TxResult<HashSet<FrameId>> {
    const WAITS: &str = "SELECT r.detail, r.looked, r.since FROM requests AS r
         WHERE r.frame = ?1 AND r.status IN ('delivering', 'delivered') AND r.looked IS NOT NULL";
    const ENDED: &str = "SELECT m.id, m.since FROM frames AS g CROSS JOIN frames AS m ON m.parent = g.id
         WHERE g.id = ?1 AND g.is_group AND m.seen_status IN ('done', 'failed')";
    let waits: Vec<(RequestKind, WaitProgress, Timestamp)> = connection.read_all(WAITS, [Id(caller)], |row| {
        Ok((from_json(row, "detail")?, from_json(row, "looked")?, time(row, "since")?))
    })?;
    let mut members: Vec<(FrameId, Timestamp)> =
        connection.read_all(ENDED, [Id(group)], |row| Ok((id(row, "id")?, time(row, "since")?)))?;
    members.retain(|(member, ended)| {
        waits.iter().any(|(kind, progress, given)| match kind {
            // A member that was continued since has another result.
            RequestKind::Wait(wait) => ended <= given && progress.ended_agents(wait).contains(member),
            _ => false,
        })
    });
    Ok(members.into_iter().map(|(member, _)| member).collect())
}

/// Records the progress of a wait.
pub(crate) fn note(connection: &Connection, request: RequestId, progress: &WaitProgress) -> TxResult<()> {
    connection.run("UPDATE requests SET looked = ?2 WHERE id = ?1", (Id(request), codec::json(progress, &[])?))
}

/// Turns handoffs of this frame into ordinary calls: its agent must continue.
pub(crate) fn revoke_handoffs(connection: &Connection, frame: FrameId) -> TxResult<()> {
    for request in pending(connection, frame)? {
        if let RequestKind::Spawn { child, task, form: SpawnForm::Handoff, json } = request.kind {
            let call = RequestKind::Spawn { child, task, form: SpawnForm::Call, json };
            let sql = "UPDATE requests SET detail = ?2 WHERE id = ?1";
            connection.run(sql, (Id(request.id), codec::json(&call, &[])?))?;
        }
    }
    Ok(())
}

/// The event of giving a result to an attempt.
pub(crate) fn deliver(request: &Request, attempt: AttemptId, handover: Handover) -> RequestEvent {
    RequestEvent::Deliver { attempt, handover, of_child: matches!(request.kind, RequestKind::Spawn { .. }) }
}
