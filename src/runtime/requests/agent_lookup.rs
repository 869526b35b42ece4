//! What an agent means by an id. It can refer to itself, its descendants, and their requests. Any other id is treated as unknown.
//! And the other way: which agent asked for one.

use crate::core::chain::frame::Frame;
use crate::core::id::IdPrefix;
use crate::runtime::RuntimeError;
use crate::store::{Caller, Scope, Store, StoreError, Target};

/// What an id refers to for an agent that asks for a result. By its full id, this includes a chain that the agent's session
/// started before it was adopted.
///
/// # Errors
///
/// [`RuntimeError::UnknownToAgent`], an ambiguous id, or an error of the state directory.
pub(crate) fn named_or_started(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Target, RuntimeError> {
    found(store, Scope::Agent(caller.frame), id)
}

/// What an id refers to for an agent.
pub(crate) fn named(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Target, RuntimeError> {
    found(store, Scope::Below(caller.frame), id)
}

fn found(store: &Store, scope: Scope, id: &IdPrefix) -> Result<Target, RuntimeError> {
    store.lookup(scope, id).map_err(|error| match error {
        StoreError::Unknown(unknown) => RuntimeError::UnknownToAgent(unknown),
        error => error.into(),
    })
}

/// The frame whose agent asked for `frame`, for itself or as one of a group; `None`: no agent did.
pub(crate) fn asked_by(store: &Store, frame: &Frame) -> Result<Option<Frame>, StoreError> {
    let above = |frame: &Frame| frame.parent.map_or(Ok(None), |parent| store.frame(parent));
    match above(frame)? {
        Some(group) if group.task.is_group() => above(&group),
        parent => Ok(parent),
    }
}
