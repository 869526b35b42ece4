//! Removes chains that finished long ago.

use jiff::SignedDuration;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::core::housekeeping::retention::Retention;
use crate::runtime::housekeeping::gc::{self, Collected, Happening};
use crate::runtime::housekeeping::removal::RemovalRequest;

#[derive(Debug)]
pub(crate) struct Input {
    /// Chains in which nothing has changed for this long are removed.
    pub(crate) older_than: SignedDuration,
    /// Also remove chains that failed or were stopped.
    pub(crate) with_failed: bool,
    /// Also remove worktrees with any files that git ignores.
    pub(crate) with_ignored: bool,
    /// Remove nothing.
    pub(crate) dry_run: bool,
}

pub(crate) fn gc(app: &App<'_>, input: &Input, tell: &mut dyn FnMut(Happening<'_>)) -> Result<Collected, AppError> {
    app.asker.may(PersonsTask::Remove)?;
    let before = app.now.checked_sub(input.older_than);
    let before = before.map_err(|_| Refusal::new("no chain is that old").hint("give a shorter time"))?;
    if let Some(hosts) = app.store.hosts() {
        hosts.check_clock()?;
    }
    let retention = Retention { before, failed: input.with_failed, open: false };
    let request = RemovalRequest { retention, with_ignored: input.with_ignored, pretend: input.dry_run };
    Ok(gc::collect(app.store, request, tell)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;
    use crate::store::testing::{refused, reply};

    const INPUT: Input =
        Input { older_than: SignedDuration::ZERO, with_failed: false, with_ignored: false, dry_run: false };

    #[test]
    fn what_is_old_is_removed_and_what_failed_only_if_that_is_asked_for() {
        let (_temp, store) = store::testing::store();
        let (done, failed, open) = (store.root(), store.root(), store.root());
        store.end(store.start(done), &reply("fine"));
        store.end(store.start(failed), &refused("no"));
        let removed = |input: &Input| {
            // A time after the chains have ended.
            let app = App { now: jiff::Timestamp::now(), ..testing::app(&store) };
            let mut removed: Vec<_> =
                gc(&app, input, &mut |_| {}).unwrap().trees.into_iter().map(|chain| chain.id).collect();
            removed.sort();
            removed
        };
        assert_eq!(removed(&Input { older_than: SignedDuration::from_hours(1), with_failed: true, ..INPUT }), []);
        let mut both = [done, failed];
        both.sort();
        assert_eq!(removed(&Input { with_failed: true, dry_run: true, ..INPUT }), both);
        assert_eq!(removed(&INPUT), [done]);
        assert_eq!(removed(&Input { with_failed: true, ..INPUT }), [failed]);
        assert!(store.frame(open).unwrap().is_some());
    }

    #[test]
    fn agents_and_impossible_times_are_refused() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let refused = |app: &App<'_>, input: &Input| gc(app, input, &mut |_| {}).unwrap_err().to_string();
        assert_eq!(refused(&testing::app_of(&store, caller), &INPUT), "agents cannot remove chains");
        let never = Input { older_than: SignedDuration::MAX, ..INPUT };
        assert_eq!(refused(&testing::app(&store), &never), "no chain is that old");
    }
}
