//! Lets agents go on that rest or back off, and others be tried again.

use rusqlite::Connection;
use serde_json::json;

use crate::core::chain::frame::Frame;
use crate::core::chain::state::{FrameEvent, FrameState};
use crate::core::id::FrameId;
use crate::store::database::codec::At;
use crate::store::error::TxResult;
use crate::store::requests::{groups, request};
use crate::store::steering::stops;
use crate::store::tables::{events, frames, requests};

/// Lets a frame go on that rests, and one be tried again that failed, was cancelled or backs off: once what it asked for is
/// there. A group is tried again with those of its members that failed. One that rests and is to stop stays as it is.
///
/// # Errors
///
/// [`StoreError::Illegal`](crate::store::StoreError::Illegal) when it does nothing of that.
pub(crate) fn try_again(connection: &Connection, now: At, frame: FrameId) -> TxResult<FrameState> {
    let before = frames::existing(connection, frame)?;
    if matches!(before.state, FrameState::Paused { .. }) {
        return continue_paused(connection, now, &before);
    }
    let members = groups::members(connection, before.id, &before.task)?;
    for member in members.iter().filter(|member| member.failure().is_some() && !member.state.was_stopped()) {
        try_again(connection, now, member.id)?;
    }
    let open_members = members.iter().any(|member| member.state != FrameState::Done);
    let open_requests = open_members || request::any_open(connection, &requests::pending(connection, frame)?)?;
    let state = frames::advance(connection, &before, FrameEvent::TryAgain { open_requests }, now.0)?;
    events::append(connection, now, frame, "tried_again", &json!({"from": before.state, "to": state}))?;
    Ok(state)
}

/// Lets an agent go on that rests, unless somebody wants it stopped. Returns its state.
fn continue_paused(connection: &Connection, now: At, before: &Frame) -> TxResult<FrameState> {
    if stops::open(connection, before.id)?.is_some() {
        return Ok(before.state.clone());
    }
    let state = frames::advance(connection, before, FrameEvent::Continue, now.0)?;
    events::append(connection, now, before.id, "continued", &json!({"from": before.state, "to": state}))?;
    Ok(state)
}
