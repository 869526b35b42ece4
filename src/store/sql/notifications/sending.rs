//! Sending notifications: each is claimed by one process at a time, and claimed again if that process dies.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::core::chain::backoff::{NEVER_LATER, next_try};
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::id::{FrameId, NotificationId};
use crate::core::notifications::occasion::Occasion;
use crate::core::notifications::payload::{About, Agent, Chain};
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::outbox::{Claimed, SendOutcome};
use crate::store::sql::database::codec::{self, At, Id, from_json, id, maybe_id, time};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, Row, TxResult};

// A claim is stored as the time until which no other process may claim the notification. If that time is too far away, the
// clock was set back.
const DUE: &str = "SELECT n.id, n.frame, n.event, n.request, n.made, n.failures, n.detail,
       f.root, f.title, f.state, f.since, f.parent, top.title AS chain_title, top.cwd, c.name,
       r.status AS request_status, c.max_budget_usd AS max_usd,
       EXISTS (SELECT 1 FROM attempts AS a WHERE a.frame = n.frame AND a.ended IS NULL) AS runs
     FROM notifications AS n JOIN frames AS f ON f.id = n.frame JOIN frames AS top ON top.id = f.root
       JOIN chains AS c ON c.root = f.root LEFT JOIN requests AS r ON r.id = n.request
     WHERE n.status = 'pending' AND (n.due <= ?1 OR n.due > ?2) ORDER BY n.due, n.seq LIMIT 1";

pub(crate) fn claim(store: &Database, lasts: SignedDuration) -> Result<Option<Claimed>> {
    // Most checks find nothing, and a write wakes every process that watches the database.
    if store.query(|connection| Ok(due(connection, codec::now())?.is_none()))? {
        return Ok(None);
    }
    store.write(Step::ClaimNotification, |connection| {
        let now = codec::now();
        while let Some((claimed, is_outdated)) = due(connection, now)? {
            let id = claimed.about.id;
            if is_outdated {
                over(connection, now, id, "outdated")?;
                continue;
            }
            let until = At(now.0.saturating_add(lasts).unwrap_or(now.0));
            connection
                .run("UPDATE notifications SET due = ?2, claim = ?3 WHERE id = ?1", (Id(id), until, &claimed.claim))?;
            return Ok(Some(claimed));
        }
        Ok(None)
    })
}

pub(crate) fn end(connection: &Connection, claimed: &Claimed, outcome: SendOutcome<'_>) -> TxResult<Option<Timestamp>> {
    let (now, id) = (codec::now(), claimed.about.id);
    let failures: Option<u32> = connection.read_first(
        "SELECT failures FROM notifications WHERE id = ?1 AND claim = ?2 AND status = 'pending'",
        (Id(id), &claimed.claim),
        |row| row.get(0),
    )?;
    let Some(failures) = failures else { return Ok(None) };
    let (failures, why, next) = match outcome {
        SendOutcome::Sent => {
            over(connection, now, id, "sent")?;
            return Ok(None);
        }
        SendOutcome::Failed(why) => (failures + 1, Some(why), next_try(failures + 1, now.0)),
        SendOutcome::GivenBack => (failures, None, Some(now.0)),
    };
    connection.run(
        "UPDATE notifications SET failures = ?2, why = coalesce(?3, why), due = coalesce(?4, due) WHERE id = ?1",
        (Id(id), failures, why, next.map(At)),
    )?;
    if next.is_none() {
        over(connection, now, id, "failed")?;
    }
    Ok(next)
}

fn over(connection: &Connection, now: At, id: NotificationId, status: &str) -> TxResult<()> {
    connection.run("UPDATE notifications SET status = ?2, ended = ?3 WHERE id = ?1", (Id(id), status, now))
}

/// The next notification that is due, and whether it is outdated.
fn due(connection: &Connection, now: At) -> TxResult<Option<(Claimed, bool)>> {
    let never = At(now.0.saturating_add(NEVER_LATER).unwrap_or(now.0));
    connection.read_first(DUE, (now, never), |row| Ok((claimed(row)?, is_outdated(row, now.0)?)))
}

fn claimed(row: &Row<'_>) -> rusqlite::Result<Claimed> {
    let event: String = row.get("event")?;
    // Only this program writes names, and it knows all of them.
    let event = Occasion::named(&event).unwrap_or(Occasion::Question);
    let about = About {
        id: id(row, "id")?,
        event,
        at: time(row, "made")?,
        failures: row.get("failures")?,
        chain: Chain {
            id: id(row, "root")?,
            name: row.get("name")?,
            task: row.get("chain_title")?,
            cwd: row.get("cwd")?,
        },
        agent: Agent { id: id(row, "frame")?, task: row.get("title")? },
        detail: from_json(row, "detail")?,
    };
    Ok(Claimed { about, request: maybe_id(row, "request")?, claim: Uuid::new_v4().to_string() })
}

fn is_outdated(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<bool> {
    let event: String = row.get("event")?;
    let detail: Value = from_json(row, "detail")?;
    let state: FrameState = from_json(row, "state")?;
    let is_root = maybe_id::<FrameId>(row, "parent")?.is_none();
    // It may have ended several times: only its last end is current.
    let holds = is_root && time(row, "since")? <= time(row, "made")?;
    Ok(match Occasion::named(&event) {
        None => true,
        Some(Occasion::Question | Occasion::Approval) => {
            row.get::<_, Option<String>>("request_status")?.as_deref() != Some("open")
        }
        Some(Occasion::Done) => state != FrameState::Done || !holds,
        Some(Occasion::Failed) => match state {
            FrameState::Failed { .. } => !holds,
            // It is being retried just now, perhaps without success.
            FrameState::Waiting { wait } | FrameState::Running { waited: Some(wait) } => {
                !matches!(wait, Wait::Restart { .. })
            }
            _ => true,
        },
        Some(Occasion::Limit) => {
            detail["resets_at"].as_str().and_then(|at| at.parse().ok()).is_none_or(|at: Timestamp| at <= now)
        }
        Some(Occasion::Stalled) => !row.get::<_, bool>("runs")?,
        Some(Occasion::Budget) => row.get::<_, Option<f64>>("max_usd")? != detail["max_usd"].as_f64(),
    })
}

#[cfg(test)]
mod tests;
