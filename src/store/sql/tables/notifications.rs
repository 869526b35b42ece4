//! The rows of notifications, recorded in the transaction in which the event happens.
//!
//! The subscription is in the database, not in a config file: an agent's process records events, too, and its environment
//! must not decide anything.

use serde_json::{Value, json};

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::id::{FrameId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::core::requests::request::RequestKind;
use crate::store::sql::database::codec::{At, Id};
use crate::store::sql::engine::{Connection, TxResult};

/// What happened.
pub(crate) struct Noted<'a> {
    pub(crate) occasion: Occasion,
    pub(crate) frame: FrameId,
    pub(crate) request: Option<RequestId>,
    /// Its subject: only the first of several notifications about one subject counts. `None`: each one counts.
    pub(crate) subject: Option<&'a str>,
    /// Information that is in no other record.
    pub(crate) detail: Value,
}

/// Whether a person subscribed to an event.
pub(crate) fn is_wanted(connection: &Connection, event: Occasion) -> TxResult<bool> {
    connection.finds("SELECT 1 FROM subscription WHERE event = ?1", [event.name()])
}

/// Records an event, if a person subscribed to it.
pub(crate) fn note(connection: &Connection, now: At, noted: &Noted<'_>) -> TxResult<()> {
    if !is_wanted(connection, noted.occasion)? {
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

/// Records a request that a person must answer.
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

/// Records the notifications that result from `frame` entering `state`.
pub(crate) fn note_state(
    connection: &Connection,
    now: At,
    frame: &Frame,
    state: &FrameState,
    out_of_time: bool,
) -> TxResult<()> {
    let Some(occasion) = Occasion::of_state(state, frame.parent.is_none(), out_of_time) else { return Ok(()) };
    let (subject, detail) = match state {
        // The agents of a chain usually share one account.
        FrameState::Waiting { wait: Wait::UsageLimit { resets_at, .. } } => {
            (Some(format!("limit {} {resets_at}", frame.root)), json!({"resets_at": resets_at}))
        }
        FrameState::Failed { failure } => (None, json!({"why": failure.message.trim()})),
        // Usually all agents of a chain meet the same problem, again and again until it is fixed.
        FrameState::Waiting { wait: wait @ Wait::Restart { why, .. } } => {
            let hour = now.0.as_second() / 3_600;
            let detail = json!({"why": why.trim(), "next_try": wait.pause_ends(now.0)});
            (Some(format!("restart {} {hour} {why}", frame.root)), detail)
        }
        _ => (None, json!({})),
    };
    note(connection, now, &Noted { occasion, frame: frame.id, request: None, subject: subject.as_deref(), detail })
}
