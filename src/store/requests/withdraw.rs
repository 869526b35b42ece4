//! Requests that are withdrawn: nobody waits for them any more.

use rusqlite::Connection;
use serde_json::json;

use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::Wish;
use crate::failpoint::Step;
use crate::store::database::codec::{self, At, Id, from_json, id, maybe_id};
use crate::store::database::store::Store;
use crate::store::error::Fault;
use crate::store::error::Result;
use crate::store::tables::events;

impl Store {
    /// Withdraws the requests of an attempt whose tool calls were not suspended after all: another hook denied or changed
    /// them. `open` are the calls that have no result. Those that need a permission have one, that they were denied.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn withdraw_calls(&self, attempt: AttemptId, open: &[&str]) -> Result<()> {
        self.write(Step::WithdrawCalls, |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, child, frame, call, wish FROM requests
                 WHERE attempt = ?1 AND call IS NOT NULL AND withdrawn IS NULL ORDER BY seq",
            )?;
            let made = statement
                .query_map([Id(attempt)], |row| {
                    let needs_permission = matches!(from_json(row, "wish")?, Wish::Permission { .. });
                    let stands = needs_permission || open.contains(&row.get::<_, String>("call")?.as_str());
                    Ok((id(row, "frame")?, stands, (id(row, "id")?, maybe_id(row, "child")?)))
                })?
                .collect::<rusqlite::Result<Vec<(FrameId, bool, Made)>>>()?;
            for (frame, stands, request) in made {
                if !stands {
                    withdraw(connection, codec::now(), frame, &[request])?;
                }
            }
            Ok(())
        })
    }
}

/// What the attempt was told is told again.
pub(crate) fn untold(connection: &Connection, attempt: AttemptId) -> std::result::Result<(), Fault> {
    connection.prepare_cached("UPDATE requests SET carried_by = NULL WHERE carried_by = ?1")?.execute([Id(attempt)])?;
    Ok(())
}

/// What the attempt was told is told again, and what it asked for, nobody asked for.
pub(crate) fn discard(
    connection: &Connection,
    now: At,
    frame: FrameId,
    attempt: AttemptId,
) -> std::result::Result<(), Fault> {
    untold(connection, attempt)?;
    let made: Vec<Made> = connection
        .prepare_cached("SELECT id, child FROM requests WHERE attempt = ?1 AND withdrawn IS NULL ORDER BY seq")?
        .query_map([Id(attempt)], |row| Ok((id(row, "id")?, maybe_id(row, "child")?)))?
        .collect::<rusqlite::Result<_>>()?;
    withdraw(connection, now, frame, &made)
}

/// A request, and the child that was made for it.
type Made = (RequestId, Option<FrameId>);

pub(crate) fn withdraw(
    connection: &Connection,
    now: At,
    frame: FrameId,
    made: &[Made],
) -> std::result::Result<(), Fault> {
    for (request, child) in made {
        connection.prepare_cached("UPDATE requests SET withdrawn = ?2 WHERE id = ?1")?.execute((Id(*request), now))?;
        events::append(connection, now, frame, "withdrawn", &json!({"request": request}))?;
        if let Some(child) = child {
            delete_unborn(connection, now, frame, *child)?;
        }
    }
    Ok(())
}

/// Deletes a child that never ran and that its parent does not wait for any more. A group goes with its members.
fn delete_unborn(connection: &Connection, now: At, parent: FrameId, child: FrameId) -> std::result::Result<(), Fault> {
    let members: Vec<FrameId> = connection
        .prepare_cached(
            "SELECT member.id FROM frames AS member JOIN frames AS child ON child.id = member.parent
             WHERE child.id = ?1 AND child.is_group AND child.parent = ?2",
        )?
        .query_map((Id(child), Id(parent)), |row| id(row, "id"))?
        .collect::<rusqlite::Result<_>>()?;
    for member in members {
        delete_unborn(connection, now, child, member)?;
    }
    let deleted = connection
        .prepare_cached(
            "DELETE FROM frames WHERE id = ?1 AND parent = ?2
             AND NOT EXISTS (SELECT 1 FROM attempts WHERE frame = ?1)
             AND NOT EXISTS (SELECT 1 FROM frames WHERE parent = ?1)
             AND NOT EXISTS (SELECT 1 FROM requests WHERE frame = ?2 AND child = ?1 AND withdrawn IS NULL)",
        )?
        .execute((Id(child), Id(parent)))?;
    if deleted > 0 {
        events::append(connection, now, child, "deleted", &json!({"parent": parent}))?;
    }
    Ok(())
}
