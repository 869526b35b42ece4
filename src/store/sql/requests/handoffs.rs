//! Handoffs: frames that end with the reply of the agent that they asked for.

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{Ended, FrameEvent, FrameState};
use crate::core::chain::handoff;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::store::sql::database::codec::At;
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::{events, frames, notifications, requests};

/// Ends a frame that has handed off to an agent that has replied, with that reply. Returns its new state, or `None` if
/// there is nothing to do: another process may have been first.
///
/// The request stays open. If a person gives the agent another instruction, its call returns like any other.
pub(crate) fn end(connection: &Connection, now: At, frame: FrameId) -> TxResult<Option<FrameState>> {
    let before = frames::existing(connection, frame)?;
    let Some(child) = handoff::successor(&before.state, &requests::pending(connection, frame)?) else {
        return Ok(None);
    };
    let child = frames::existing(connection, child)?;
    if child.state != FrameState::Done || child.outcome.is_some() || before.outcome.is_some() {
        return Ok(None);
    }
    let reply = frames::reply(connection, child.id)?.unwrap_or_default();
    let from = before.state.clone();
    let begun = frames::advance(connection, &before, FrameEvent::Begin, now.0)?;
    let begun = Frame { state: begun, ..before };
    let to = frames::advance(connection, &begun, FrameEvent::End(Ended::Done), now.0)?;
    frames::set_reply(connection, frame, &reply)?;
    let entry = LogEntry::Ended {
        attempt: None,
        outcome: "handoff".to_owned(),
        kept: None,
        cost_usd: None,
        from,
        to: to.clone(),
    };
    events::append(connection, now, frame, &entry)?;
    notifications::note_state(connection, now, &begun, &to, false)?;
    Ok(Some(to))
}
