//! Notices agents in which nothing happens.

use std::fs;

use jiff::Timestamp;

use crate::core::events::activity::is_stalled;
use crate::store::{Attempt, Attempts, Store, StoreError};

/// Notes the running agents that have printed nothing for longer than their chain's limit. A file's time is enough for that.
pub(crate) fn note(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    for Attempt { id: attempt, frame, began, .. } in store.attempts(Attempts::Running)? {
        let printed = fs::metadata(store.dir().printed(frame)).and_then(|file| file.modified());
        let printed = printed.ok().and_then(|time| Timestamp::try_from(time).ok());
        let last_event = printed.map_or(began, |printed| printed.max(began));
        let after = store.chain_of(frame)?.limits.stall_after();
        if is_stalled(last_event, now, after) {
            store.outbox().note_stall(frame, attempt, last_event)?;
        }
    }
    Ok(())
}
