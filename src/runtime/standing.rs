//! How a tree stands: what the caller of `spawn` and `resume` is told.

use jiff::Timestamp;

use super::drive::{Busy, Driven, FrameError};
use super::{RuntimeError, probe};
use crate::core::blocker::Blocker;
use crate::core::id::FrameId;
use crate::core::state::{FailureKind, FrameState};
use crate::core::tree::Tried;
use crate::store::{Lease, Store};

/// How a tree stands when nothing in it can run.
#[derive(Debug)]
pub enum Standing {
    /// Its top has replied.
    Done(String),
    /// It waits.
    Waits {
        /// Whether for something new.
        new: bool,
        /// What for.
        blockers: Vec<Blocker>,
        /// What other processes run in it.
        busy: Vec<Busy>,
    },
    /// Something went wrong that nobody in the tree can handle.
    Failed(Vec<FrameError>),
    /// A person stopped it.
    Interrupted,
}

/// How the tree stands if nothing in it can run; `None` if it has to be driven to find out.
///
/// This is the whole work of a poll: no process, no async runtime, nothing written unless an outside wait is over.
///
/// # Errors
///
/// Those of the state directory.
pub fn poll(store: &Store, top: FrameId) -> Result<Option<Standing>, RuntimeError> {
    if let Some(reply) = store.reply(top)? {
        return Ok(Some(Standing::Done(reply)));
    }
    let mut tree = store.tree(top)?;
    let now = Timestamp::now();
    if probe::without_processes(store, &tree, now)? {
        return Ok(None);
    }
    if probe::has_outside_waits(&tree) {
        tree = store.tree(top)?;
    }
    if !tree.to_try_again().is_empty() || !tree.runnable(&Tried::default(), now).is_empty() {
        return Ok(None);
    }
    let mut busy = Vec::new();
    for node in tree.leaves_up() {
        if matches!(node.state, FrameState::Running { .. }) {
            if !Lease::is_held(store.dir(), node.id)? {
                return Ok(None);
            }
            let runner = store.running_attempt(node.id)?.map(|attempt| attempt.runner);
            busy.push(Busy { frame: node.id, runner });
        }
    }
    Ok(Some(Standing::Waits { new: false, blockers: tree.blockers(now), busy }))
}

/// How the tree stands after it was driven.
///
/// # Errors
///
/// Those of the state directory.
pub fn after(store: &Store, top: FrameId, driven: Driven) -> Result<Standing, RuntimeError> {
    if let Some(reply) = store.reply(top)? {
        return Ok(Standing::Done(reply));
    }
    if driven.interrupted {
        return Ok(Standing::Interrupted);
    }
    if !driven.errors.is_empty() {
        return Ok(Standing::Failed(driven.errors));
    }
    let blockers = store.tree(top)?.blockers(Timestamp::now());
    let new = blockers.iter().any(|blocker| driven.started.contains(&blocker.frame));
    Ok(Standing::Waits { new, blockers, busy: driven.busy })
}

impl Standing {
    /// Whether every error is that `claude` could not be used at all.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        use super::drive::Why;
        let refused = |error: &FrameError| matches!(error.why, Why::Program(_) | Why::Refused(_));
        matches!(self, Self::Failed(errors) if errors.iter().all(refused))
    }
}

/// Whether a recorded failure means that `claude` could not be used at all.
#[must_use]
pub fn is_refused(state: &FrameState) -> bool {
    matches!(state, FrameState::Failed { failure } if failure.kind == FailureKind::Refused)
}
