//! Concludes an attempt: gathers the facts about it, [decides](crate::core::attempt::decision), records the decision, and
//! only then carries it out.
//!
//! A runner calls this when its `claude` has ended. A later runner calls it when it finds an attempt without a runner.

pub(crate) mod attempt_cost;
mod claude_output;
mod gather;
pub(crate) mod limits_used;
mod record;
pub(crate) mod report;
mod salvage;
pub(crate) mod spans;
mod unseen;

use std::time::Duration;

use crate::claude::processes::process::ProcessExit;
use crate::core::agent::usage::prices::Prices;
use crate::core::attempt::decision::{Decision, Fate, decide};
use crate::core::attempt::meaning::Meaning;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::Ended;
use crate::core::id::AttemptId;
use crate::runtime::conclude::claude_output::Printed;
pub(crate) use crate::runtime::conclude::gather::Begun;
use crate::runtime::conclude::gather::{Gathered, gather};
use crate::runtime::recovery::restore;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::checkpoint;
use crate::store::{Attempt, Attempts, Lease, Store, StoreError};

/// Concludes the attempt of `frame` that is recorded as running. The lease proves that its process has ended. `prices`: those
/// that a person has set.
pub(crate) fn conclude(
    store: &Store,
    prices: &Prices,
    frame: &Frame,
    begun: Begun,
    exit: ProcessExit,
    lease: &Lease,
) -> Result<Option<Decision>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame.id))?.pop() else { return Ok(None) };
    let printed = match &attempt.host {
        Some(host) => Printed::on_lost_host(host),
        None => Printed::read(store, frame, &attempt, exit, lease)?,
    };
    finish(store, prices, frame, begun, attempt, printed).map(Some)
}

/// Concludes an attempt whose process could not be started.
pub(crate) fn conclude_unstarted(store: &Store, frame: &Frame, why: String) -> Result<Option<Decision>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame.id))?.pop() else { return Ok(None) };
    finish(
        store,
        &Prices::default(),
        frame,
        Begun::Here { silent: None, ran: Some(Duration::ZERO), pushed: None },
        attempt,
        Printed::nothing(why),
    )
    .map(Some)
}

fn finish(
    store: &Store,
    prices: &Prices,
    frame: &Frame,
    begun: Begun,
    attempt: Attempt,
    printed: Printed,
) -> Result<Decision, RuntimeError> {
    let mut gathered = gather(store, prices, frame, begun, attempt, printed)?;
    let (decision, copies) = loop {
        let decision = decide(&gathered.facts);
        match record::record(store, frame, &gathered, &decision) {
            Err(RuntimeError::Store(StoreError::Steered(_))) => {
                gather::steered(store, frame.id, &gathered.unseen_messages, &mut gathered.facts)?;
            }
            recorded => break (decision, recorded?),
        }
    };
    tracing::debug!(attempt = %gathered.attempt.id, ?decision, "the attempt has ended");
    apply(store, frame, &gathered, &decision, copies.as_deref())?;
    Ok(decision)
}

/// Removes files that only the attempt needed, and files that the decision has made unnecessary. `copies`: the attempts
/// whose copies are needed, if a copy of this one's conversation exists.
fn apply(
    store: &Store,
    frame: &Frame,
    gathered: &Gathered,
    decision: &Decision,
    copies: Option<&[AttemptId]>,
) -> Result<(), RuntimeError> {
    store.dir().clear_attempt(frame.id).map_err(while_trying("remove what the attempt needed"))?;
    match (decision.session, copies) {
        // Its session has ended and no longer belongs to the frame, so it does not change.
        _ if matches!(decision.meaning, Meaning::Summary(_)) => Ok(()),
        (Fate::Discard | Fate::Lost, _) => restore::undo(store, frame, gathered.transcript.as_deref()),
        (Fate::Keep, Some(copies)) => {
            let pruned = checkpoint::prune(store.dir(), frame.id, copies);
            pruned.map_err(while_trying("remove older copies of transcripts"))
        }
        (Fate::Keep, None) => {
            if decision.frame != Ended::Done {
                let session = gathered.attempt.session.short();
                tracing::warn!("claude left no usable transcript of session {session}: it may not be resumable");
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::FrameState;
    use crate::store::testing;

    #[test]
    fn an_attempt_that_could_not_be_started_is_over_and_says_why() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let frame = store.frame(caller.frame).unwrap().unwrap();
        conclude_unstarted(&store, &frame, "no such program".into()).unwrap().expect("its attempt was open");
        let frame = store.frame(caller.frame).unwrap().unwrap();
        assert!(!matches!(frame.state, FrameState::Running { .. }), "{:?}", frame.state);
        let attempts = store.attempts(caller.frame).unwrap();
        assert!(
            attempts[0].ended.is_some() && format!("{:?}", attempts[0]).contains("no such program"),
            "{attempts:?}"
        );
        assert!(conclude_unstarted(&store, &frame, "again".into()).unwrap().is_none(), "there is nothing to conclude");
    }
}
