//! Operations with which people and agents steer agents: stop, pause, tell, continue.

pub(crate) mod again;
pub(crate) mod messages;
pub(crate) mod stops;

use rusqlite::Connection;

use crate::core::id::FrameId;
use crate::core::steering::message::Message;
use crate::core::steering::stop::Stop;
use crate::store::database::store::Store;
use crate::store::error::{Fault, Result, StoreError};

/// What people and agents above want of an agent that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    /// That it stops or rests.
    pub stop: Option<Stop>,
    /// What they told it, as far as it has not been given that.
    pub messages: Vec<Message>,
}

impl Store {
    /// What is wanted of an agent that runs.
    pub fn steering(&self, frame: FrameId) -> Result<Steering> {
        self.read(|connection| {
            Ok(Steering { stop: stops::open(connection, frame)?, messages: messages::pending(connection, frame)? })
        })
    }
}

/// Whether a decision knows what is wanted of the agent: that it stops, and, if its frame is done now, all that it was told.
pub(crate) fn check_known(
    connection: &Connection,
    frame: FrameId,
    stop: Option<&Stop>,
    is_done: bool,
) -> std::result::Result<(), Fault> {
    let is_told = || Ok::<_, Fault>(messages::pending(connection, frame)?.is_empty());
    let is_known = stops::open(connection, frame)?.as_ref() == stop && (!is_done || stop.is_some() || is_told()?);
    if is_known { Ok(()) } else { Err(StoreError::Steered(frame).into()) }
}
