//! Agents that are recorded as running although their runner and `claude` have died.

use std::collections::{HashMap, HashSet};

use crate::core::id::FrameId;
use crate::store::error::{Result, StoreError};
use crate::store::files::lease::Lease;
use crate::store::files::state_dir::StateDir;
use crate::store::records::{Attempt, Records};

/// The frames whose runner has died, each with the root of its tree. The next `resume` continues them. `running`: reads the attempts
/// to check.
pub(crate) fn abandoned(
    records: &dyn Records,
    dir: &StateDir,
    running: impl Fn() -> Result<Vec<Attempt>>,
) -> Result<HashMap<FrameId, FrameId>> {
    let mut found = running()?;
    // If this is unknown, a process may hold the lease.
    found.retain(|attempt| !Lease::is_held(dir, attempt.frame).unwrap_or(true));
    if found.is_empty() {
        return Ok(HashMap::new());
    }
    // An attempt may have ended in between, and released its lease.
    let still: HashSet<_> = running()?.into_iter().map(|attempt| attempt.id).collect();
    let mut abandoned = HashMap::new();
    for attempt in found.into_iter().filter(|attempt| still.contains(&attempt.id)) {
        match records.chain_of(attempt.frame.into()) {
            Ok(chain) => drop(abandoned.insert(chain.frame, chain.root)),
            // It was removed in the meantime.
            Err(StoreError::UnknownFrame(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(abandoned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn what_runs_without_a_lease_is_abandoned() {
        let (_temp, store) = store();
        let frame = store.root();
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
        let lease = Lease::try_take(store.dir(), frame).unwrap();
        let caller = store.start(frame);
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
        let tree = store.tree(frame).unwrap();
        assert_eq!(store.abandoned_in(&tree).unwrap(), HashMap::new());
        drop(lease);
        assert_eq!(store.abandoned().unwrap(), HashMap::from([(frame, frame)]));
        assert_eq!(store.abandoned_in(&tree).unwrap(), HashMap::from([(frame, frame)]));
        let other = store.tree(store.create_root(&new("another task")).unwrap()).unwrap();
        assert_eq!(store.abandoned_in(&other).unwrap(), HashMap::new());
        store.end(caller, &reply("done"));
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
    }
}
