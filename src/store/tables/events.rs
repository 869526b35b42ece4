//! The append-only log of everything that changed, for people and for finding out what went wrong.

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use serde_json::Value;

use crate::core::id::{FrameId, SessionId};
use crate::store::database::codec::{At, Id, count, from_json, id, time};
use crate::store::error::TxResult;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Its place in the log.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The frame that it happened to, which may be gone.
    pub frame: FrameId,
    /// What happened, in one word.
    pub kind: String,
    /// The rest of it.
    pub detail: Value,
}

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    Ok(EventRecord {
        seq: count(row, "seq")?,
        at: time(row, "at")?,
        frame: id(row, "frame")?,
        kind: row.get("kind")?,
        detail: from_json(row, "detail")?,
    })
}

impl EventRecord {
    /// The session that was made of what somebody said in another, if it tells of one.
    pub(crate) fn set_aside(&self) -> Option<SessionId> {
        self.detail["other"].as_str().filter(|_| self.kind == SET_ASIDE)?.parse().ok()
    }
}

pub(crate) const SET_ASIDE: &str = "set_aside";

/// Appends to the log, within the transaction of the change that it tells of.
pub(crate) fn append(connection: &Connection, at: At, frame: FrameId, kind: &str, detail: &Value) -> TxResult<()> {
    connection.prepare_cached("INSERT INTO events (at, frame, kind, detail) VALUES (?1, ?2, ?3, ?4)")?.execute((
        at,
        Id(frame),
        kind,
        detail.to_string(),
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::store::testing::{reply, store};

    #[test]
    fn every_change_of_state_is_in_the_log() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let events = store.events(caller.frame, 0).unwrap();
        let steps: Vec<_> = events
            .iter()
            .map(|event| (event.kind.as_str(), event.detail["to"]["state"].as_str().unwrap_or_default()))
            .collect();
        assert_eq!(steps, [("created", "ready"), ("began", "running"), ("ended", "done")]);
        assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].at <= pair[1].at));
    }
}
