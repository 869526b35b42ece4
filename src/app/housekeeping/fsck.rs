//! Checks the state directory, and repairs everything that can be repaired without loss.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::view::outcome::{FindingView, FsckView};
use crate::runtime::housekeeping::fsck;

/// Calls `tell` with the kind of the checked items, how many were checked, and their total.
pub(crate) fn fsck(
    app: &App<'_>,
    repair: bool,
    tell: &mut dyn FnMut(&str, usize, usize),
) -> Result<FsckView, AppError> {
    app.asker.may(PersonsTask::Check)?;
    let mut findings = fsck::check(app.store, tell)?;
    let mut repaired = Vec::new();
    if repair {
        for finding in &findings {
            repaired.extend(fsck::repair(app.store, finding)?);
        }
        findings = fsck::check(app.store, tell)?;
    }
    Ok(FsckView { findings: findings.into_iter().map(FindingView::from).collect(), repaired })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::app::testing;
    use crate::store;

    #[test]
    fn a_problem_stays_until_it_is_repaired() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let checked = |repair| fsck(&app, repair, &mut |_, _, _| {}).unwrap();
        assert!(checked(false).is_clean());
        let database = store.dir().database();
        fs::set_permissions(&database, Permissions::from_mode(0o644)).unwrap();
        for _ in 0..2 {
            let found = checked(false);
            assert!(!found.findings.is_empty() && found.repaired.is_empty() && !found.is_clean());
        }
        let found = checked(true);
        assert!(found.findings.is_empty() && !found.repaired.is_empty() && found.is_clean());
        assert_eq!(fs::metadata(&database).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn agents_are_refused() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let refused = fsck(&testing::app_of(&store, caller), false, &mut |_, _, _| {}).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot check chains");
    }
}
