//! The rows of notifications: what a person is to be told, recorded in the transaction in which it happens.
//!
//! Whether anybody wants to be told is in the database, not in a config file: an agent's process records events, too, and its
//! environment decides nothing.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::id::{FrameId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::core::requests::request::RequestKind;
use crate::store::sqlite::database::codec::{At, Id, from_json};
use crate::store::sqlite::transaction::{Statements, TxResult};

/// What happened.
pub(crate) struct Noted<'a> {
    pub(crate) occasion: Occasion,
    pub(crate) frame: FrameId,
    pub(crate) request: Option<RequestId>,
    /// What it is about: of several about one thing only the first counts. `None`: every one counts.
    pub(crate) subject: Option<&'a str>,
    /// What is not in another record.
    pub(crate) detail: Value,
}

/// The events of which a person wants to be told.
pub(crate) fn wanted(connection: &Connection) -> TxResult<Vec<Occasion>> {
    Ok(connection
        .read_first("SELECT events FROM subscription", [], |row| from_json(row, "events"))?
        .unwrap_or_default())
}

/// Records what happened, if a person wants to be told.
pub(crate) fn note(connection: &Connection, now: At, noted: &Noted<'_>) -> TxResult<()> {
    if !wanted(connection)?.contains(&noted.occasion) {
        return Ok(());
    }
    connection.run(
        "INSERT INTO notifications (id, frame, event, request, subject, made, due, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7) ON CONFLICT DO NOTHING",
        (
            Id(NotificationId::random()),
            Id(noted.frame),
            noted.occasion.name(),
            noted.request.map(Id),
            noted.subject,
            now,
            noted.detail.to_string(),
        ),
    )
}

/// Notes a request that a person is to answer.
pub(crate) fn note_request(
    connection: &Connection,
    now: At,
    frame: FrameId,
    request: RequestId,
    kind: &RequestKind,
) -> TxResult<()> {
    let Some(occasion) = Occasion::of_request(kind) else { return Ok(()) };
    note(connection, now, &Noted { occasion, frame, request: Some(request), subject: None, detail: json!({}) })
}

/// Notes what it means that `frame` has entered `state`.
pub(crate) fn note_state(
    connection: &Connection,
    now: At,
    frame: &Frame,
    state: &FrameState,
    out_of_time: bool,
) -> TxResult<()> {
    let Some(occasion) = Occasion::of_state(state, frame.parent.is_none(), out_of_time) else { return Ok(()) };
    let (subject, detail) = match state {
        // The agents of a chain usually have one account.
        FrameState::Waiting { wait: Wait::UsageLimit { resets_at, .. } } => {
            (Some(format!("limit {} {resets_at}", frame.root)), json!({"resets_at": resets_at}))
        }
        FrameState::Failed { failure } => (None, json!({"why": failure.message.trim()})),
        // Usually all agents of a chain meet the same, and again as long as nobody mends it.
        FrameState::Waiting { wait: wait @ Wait::Restart { why, .. } } => {
            let hour = now.0.as_second() / 3_600;
            let detail = json!({"why": why.trim(), "next_try": wait.pause_ends(now.0)});
            (Some(format!("restart {} {hour} {why}", frame.root)), detail)
        }
        _ => (None, json!({})),
    };
    note(connection, now, &Noted { occasion, frame: frame.id, request: None, subject: subject.as_deref(), detail })
}
