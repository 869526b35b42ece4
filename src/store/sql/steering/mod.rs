//! Operations with which people and agents steer agents: stop, pause, tell, continue.

pub(crate) mod messages;
pub(crate) mod state_change;
pub(crate) mod stops;

use crate::core::id::FrameId;
use crate::core::steering::stop_order::Stop;
use crate::store::error::StoreError;
use crate::store::records::Steering;
use crate::store::sql::engine::{Connection, Fault, TxResult};

pub(crate) fn steering(connection: &Connection, frame: FrameId) -> TxResult<Steering> {
    Ok(Steering { stop: stops::open(connection, frame)?, messages: messages::all(connection, frame)? })
}

/// Checks that a decision knows what was ordered: a stop and, if its frame is done now, all messages.
pub(crate) fn check_known(connection: &Connection, frame: FrameId, stop: Option<&Stop>, is_done: bool) -> TxResult<()> {
    let is_told = || Ok::<_, Fault>(messages::pending(connection, frame)?.is_empty());
    let is_known = stops::open(connection, frame)?.as_ref() == stop && (!is_done || stop.is_some() || is_told()?);
    if is_known { Ok(()) } else { Err(StoreError::Steered(frame).into()) }
}
