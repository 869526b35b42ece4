//! Concludes an attempt: gathers what is known about it, [decides](crate::core::attempt::decision), records the
//! decision, and only then carries it out.
//!
//! A runner calls this when its `claude` has ended, and so does a later one that finds an attempt without a runner.

mod apply;
mod cost;
mod denied;
mod gather;
mod given;
mod jobs;
mod printed;
mod record;
pub(crate) mod report;
mod salvage;
mod unseen;

use std::time::Duration;

use crate::claude::processes::process::ProcessExit;
use crate::core::attempt::decision::{Decision, decide};
use crate::core::chain::frame::Frame;
use crate::runtime::RuntimeError;
pub(crate) use crate::runtime::conclude::gather::Begun;
use crate::runtime::conclude::gather::gather;
use crate::runtime::conclude::printed::Printed;
use crate::store::{Attempt, Attempts, Lease, Store, StoreError};

/// Concludes the attempt of `frame` that is recorded as running. The lease proves that its process has ended.
pub(crate) fn conclude(
    store: &Store,
    frame: &Frame,
    begun: Begun,
    exit: ProcessExit,
    lease: &Lease,
) -> Result<Option<Decision>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame.id))?.pop() else { return Ok(None) };
    let printed = Printed::read(store, frame, &attempt, exit, lease)?;
    finish(store, frame, begun, attempt, printed).map(Some)
}

/// Concludes an attempt whose process could not be started.
pub(crate) fn conclude_unstarted(store: &Store, frame: &Frame, why: String) -> Result<Option<Decision>, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(frame.id))?.pop() else { return Ok(None) };
    finish(store, frame, Begun::Here { silent: None, ran: Some(Duration::ZERO) }, attempt, Printed::nothing(why))
        .map(Some)
}

fn finish(
    store: &Store,
    frame: &Frame,
    begun: Begun,
    attempt: Attempt,
    printed: Printed,
) -> Result<Decision, RuntimeError> {
    let mut gathered = gather(store, frame, begun, attempt, printed)?;
    let (decision, copies) = loop {
        let decision = decide(&gathered.facts);
        match record::record(store, frame, &gathered, &decision) {
            Err(RuntimeError::Store(StoreError::Steered(_))) => gather::steered(store, frame.id, &mut gathered.facts)?,
            recorded => break (decision, recorded?),
        }
    };
    tracing::debug!(attempt = %gathered.attempt.id, ?decision, "the attempt has ended");
    apply::apply(store, frame, &gathered, &decision, copies.as_deref())?;
    Ok(decision)
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
