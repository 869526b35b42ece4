//! Agents that are on record as running and that nobody runs: their runner died, and so did `claude`.

use std::collections::{HashMap, HashSet};

use crate::core::id::{AttemptId, FrameId};
use crate::store::database::codec::id;
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::files::lease::Lease;

impl Store {
    /// The frames that their runner has abandoned, each with the root of its tree. The next `resume` continues them.
    pub fn abandoned(&self) -> Result<HashMap<FrameId, FrameId>> {
        let mut found = self.running()?;
        // If that is unknown, somebody may hold it.
        found.retain(|(frame, _), _| !Lease::is_held(&self.dir, *frame).unwrap_or(true));
        if !found.is_empty() {
            // An attempt may have come to its end in between, and its lease with it.
            let still: HashSet<_> = self.running()?.into_keys().collect();
            found.retain(|attempt, _| still.contains(attempt));
        }
        Ok(found.into_iter().map(|((frame, _), root)| (frame, root)).collect())
    }

    /// The attempts whose end nobody has recorded, each with the root of its tree.
    fn running(&self) -> Result<HashMap<(FrameId, AttemptId), FrameId>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT f.id, f.root, a.id AS attempt FROM frames AS f JOIN attempts AS a ON a.frame = f.id AND a.ended IS NULL
                 WHERE f.status = 'running'",
            )?;
            let found = statement.query_map([], |row| Ok(((id(row, "id")?, id(row, "attempt")?), id(row, "root")?)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{reply, store};

    #[test]
    fn what_runs_without_a_lease_is_abandoned() {
        let (_temp, store) = store();
        let frame = store.root();
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
        let lease = Lease::try_take(store.dir(), frame).unwrap();
        let caller = store.start(frame);
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
        drop(lease);
        assert_eq!(store.abandoned().unwrap(), HashMap::from([(frame, frame)]));
        store.end(caller, &reply("done"));
        assert_eq!(store.abandoned().unwrap(), HashMap::new());
    }
}
