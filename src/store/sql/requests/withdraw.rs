//! Withdraws requests whose results are no longer needed.

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::requests::request_state::{RequestEvent, RequestState};
use crate::store::sql::database::codec::{At, Id, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::events;
use crate::store::sql::tables::requests::{self, requests};

/// Withdraws the requests of calls that are not `open`, and those for approvals of calls that have `returned`. If a child has begun, or a person
/// has answered, the result is given in a prompt: the hook that held the call open was killed.
pub(crate) fn withdraw_calls(
    connection: &Connection,
    now: At,
    attempt: AttemptId,
    open: &[&str],
    returned: &[&str],
) -> TxResult<()> {
    let sql = requests!("WHERE r.attempt = ?1 AND r.call IS NOT NULL AND r.status <> 'withdrawn' ORDER BY r.seq");
    let stands = |request: &Request| -> TxResult<bool> {
        let has_returned = request.call.as_deref().is_some_and(|call| returned.contains(&call));
        let needs_permission = matches!(request.kind, RequestKind::Permission { .. }) && !has_returned;
        // A call that lingered has returned its result.
        let is_given = matches!(request.state, RequestState::Delivering { .. } | RequestState::Delivered { .. });
        let is_open = request.call.as_deref().is_some_and(|call| open.contains(&call));
        let has_begun = match &request.kind {
            RequestKind::Spawn { child, .. } => has_begun(connection, *child)?,
            RequestKind::Ask(_) | RequestKind::Plan(_) => matches!(request.state, RequestState::Resolved { .. }),
            RequestKind::Permission { .. } | RequestKind::Wait(_) => false,
        };
        Ok(needs_permission || is_given || is_open || has_begun)
    };
    for request in requests::all(connection, sql, [Id(attempt)])? {
        if !stands(&request)? {
            withdraw(connection, now, &request)?;
        }
    }
    Ok(())
}

/// Whether a child, or a member of a group, has had an attempt.
fn has_begun(connection: &Connection, child: FrameId) -> TxResult<bool> {
    let sql = "SELECT 1 AS begun FROM attempts JOIN frames ON frames.id = attempts.frame
         WHERE frames.id = ?1 OR (frames.parent = ?1 AND EXISTS (SELECT 1 FROM frames WHERE id = ?1 AND is_group)) LIMIT 1";
    Ok(connection.read_first(sql, [Id(child)], |_| Ok(()))?.is_some())
}

/// Makes the results that the attempt was given deliverable again.
pub(crate) fn give_back(connection: &Connection, now: At, attempt: AttemptId) -> TxResult<()> {
    for request in requests::delivering(connection, attempt)? {
        requests::advance(connection, now, &request, RequestEvent::GiveBack)?;
    }
    Ok(())
}

/// Makes the results that the attempt was given deliverable again, and withdraws its requests.
pub(crate) fn discard(connection: &Connection, now: At, attempt: AttemptId) -> TxResult<()> {
    give_back(connection, now, attempt)?;
    let sql = requests!("WHERE r.attempt = ?1 AND r.status <> 'withdrawn' ORDER BY r.seq");
    let made = requests::all(connection, sql, [Id(attempt)])?;
    made.iter().try_for_each(|request| withdraw(connection, now, request))
}

/// Whether a frame joined its parent's tree, and was not created by a request of its parent.
fn has_joined(connection: &Connection, frame: FrameId) -> TxResult<bool> {
    let log = events::of_frame(connection, frame)?;
    Ok(log.iter().any(|record| matches!(record.entry, LogEntry::Joined { .. })))
}

pub(crate) fn withdraw(connection: &Connection, now: At, request: &Request) -> TxResult<()> {
    requests::advance(connection, now, request, RequestEvent::Withdraw)?;
    events::append(connection, now, request.frame, &LogEntry::Withdrawn { request: request.id })?;
    match &request.kind {
        RequestKind::Spawn { child, .. } if has_joined(connection, *child)? => Ok(()),
        RequestKind::Spawn { child, .. } => delete_unborn(connection, now, request.frame, *child),
        _ => Ok(()),
    }
}

/// Deletes a child that never ran and that its parent no longer waits for. A group is deleted with its members.
fn delete_unborn(connection: &Connection, now: At, parent: FrameId, child: FrameId) -> TxResult<()> {
    let members: Vec<FrameId> = connection.read_all(
        "SELECT member.id FROM frames AS member JOIN frames AS child ON child.id = member.parent
             WHERE child.id = ?1 AND child.is_group AND child.parent = ?2",
        (Id(child), Id(parent)),
        |row| id(row, "id"),
    )?;
    for member in members {
        delete_unborn(connection, now, child, member)?;
    }
    let sql = "DELETE FROM frames WHERE id = ?1 AND parent = ?2
             AND NOT EXISTS (SELECT 1 FROM attempts WHERE frame = ?1)
             AND NOT EXISTS (SELECT 1 FROM frames WHERE parent = ?1)
             AND NOT EXISTS (SELECT 1 FROM stops WHERE frame = ?1)
             AND NOT EXISTS (SELECT 1 FROM messages WHERE frame = ?1)
             AND NOT EXISTS (SELECT 1 FROM requests WHERE frame = ?2 AND child = ?1 AND status <> 'withdrawn')";
    if connection.change(sql, (Id(child), Id(parent)))? > 0 {
        events::append(connection, now, child, &LogEntry::Deleted { parent })?;
    }
    Ok(())
}
