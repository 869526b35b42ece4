//! Finds what an id on the command line names.

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::core::id::{FrameId, IdPrefix};
use crate::runtime::requests::agent_lookup;
use crate::store::{Store, StoreError, Target};

/// The frame that an id names, for commands that only read.
pub(crate) fn frame_named(context: &Context, store: &Store, id: &str) -> Result<FrameId, CliError> {
    let id = id.parse::<IdPrefix>()?;
    let target = match context.caller {
        Some(caller) => agent_lookup::named(store, caller, &id)?,
        None => store.lookup(None, &id)?,
    };
    match target {
        Target::Frame(frame) => Ok(frame),
        Target::Request(request) => Ok(store.request_owner(request)?),
    }
}

/// The chain that an id stands for: the id of a question or other request stands for the chain in which it was made.
pub(crate) fn chain_of(store: &Store, target: Target) -> Result<FrameId, StoreError> {
    match target {
        Target::Frame(frame) => Ok(frame),
        Target::Request(request) => store.root_of(store.request_owner(request)?),
    }
}
