//! Makes frames that a person wants to retry ready again.

use crate::core::chain::frame_state::FrameState;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::store::{StateChange, Store, StoreError};

/// Ends the backoffs in the whole chain of `top`: agents that wait for a usage limit or for the API can run immediately.
pub(crate) fn end_pauses(store: &Store, top: FrameId) -> Result<(), RuntimeError> {
    let pauses = |state: &FrameState| matches!(state, FrameState::Waiting { wait } if wait.is_pause());
    for node in store.tree(top)?.all().filter(|node| pauses(&node.state)) {
        try_again(store, node.id, top)?;
    }
    Ok(())
}

/// Makes all agents of the chain of `top` that failed, were interrupted or are paused ready again.
pub(crate) fn all(store: &Store, top: FrameId) -> Result<(), RuntimeError> {
    store.frame_here(top)?;
    for frame in store.tree(top)?.to_continue() {
        try_again(store, frame, top)?;
    }
    let tree = store.tree(top)?;
    for node in tree.to_try_again().into_iter().chain(tree.to_restart()) {
        try_again(store, node.id, top)?;
    }
    Ok(())
}

pub(crate) fn try_again(store: &Store, frame: FrameId, top: FrameId) -> Result<(), RuntimeError> {
    match store.change_state(frame, StateChange::TryAgain { top }) {
        // Another process may have done it already, or woken the parent.
        Err(error @ (StoreError::Illegal(_) | StoreError::FailureDelivered(_) | StoreError::UnknownFrame(_))) => {
            tracing::info!("{} is not retried: {error}", frame.short());
        }
        tried => drop(tried?),
    }
    Ok(())
}
