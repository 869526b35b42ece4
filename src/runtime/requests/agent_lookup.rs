//! What an agent means by an id. It can refer to itself, its descendants, and their requests. Any other id is treated as unknown.
//! And the other way: which agent asked for one.

use std::path::PathBuf;

use crate::core::chain::frame::Frame;
use crate::core::id::{FrameId, IdPrefix};
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

/// The agent that an id refers to for an agent that wants to wait for its end.
///
/// # Errors
///
/// As above, and [`RuntimeError::Deadlock`] for the caller itself and for those above it.
pub(crate) fn to_wait_for(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Frame, RuntimeError> {
    let found = match named_or_started(store, caller, id) {
        Err(RuntimeError::UnknownToAgent(unknown)) => Err(above(store, caller, id)?
            .map_or(RuntimeError::UnknownToAgent(unknown), |above| RuntimeError::Deadlock { id: above })),
        found => found,
    };
    let frame = match found? {
        Target::Request(request) => return Err(RuntimeError::NotAnAgent(request)),
        Target::Frame(frame) if frame == caller.frame => return Err(RuntimeError::Deadlock { id: frame }),
        Target::Frame(frame) => store.frame(frame)?,
    };
    frame.ok_or_else(|| RuntimeError::UnknownToAgent(id.as_str().to_owned()))
}

/// The agent above the caller that it has named. It knows at most the id of who started it: parts of others match nothing.
fn above(store: &Store, caller: Caller, id: &IdPrefix) -> Result<Option<FrameId>, RuntimeError> {
    let mut next = store.frame(caller.frame)?.and_then(|frame| frame.parent);
    while let Some(above) = next {
        if id.as_str() == above.to_string() || id.as_str() == above.short() {
            return Ok(Some(above));
        }
        next = store.frame(above)?.and_then(|frame| frame.parent);
    }
    Ok(None)
}

/// The directory whose files alone an agent may read without asking; `None`: it may do everything.
pub(crate) fn reads_only_in(store: &Store, caller: Caller) -> Result<Option<PathBuf>, RuntimeError> {
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    Ok((!frame.launch.is_unrestricted()).then_some(frame.cwd))
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
