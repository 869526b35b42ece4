//! The open requests of a chain.

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::waits::conditions::External;
use crate::core::waits::wait_progress::WaitProgress;

/// The open requests of agents that continue once they have a result. Paused and interrupted agents are excluded until they are
/// continued.
pub(super) fn requests(tree: &Tree) -> impl Iterator<Item = &Request> {
    let continues = |node: &&Node| node.state.is_pending() || matches!(node.state, FrameState::Running { .. });
    let requests = tree.leaves_up().into_iter().filter(continues).flat_map(|node| &node.requests);
    requests.filter(|request| !request.state.is_resolved())
}

/// The open waits for something outside the chain.
pub(super) fn waits(tree: &Tree) -> impl Iterator<Item = (RequestId, FrameId, &External, &WaitProgress)> {
    requests(tree).filter_map(|request| match &request.kind {
        RequestKind::Wait(wait) => Some((request.id, request.frame, wait, &request.progress)),
        RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Spawn { .. } => None,
    })
}
