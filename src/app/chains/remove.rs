//! Removes a chain that is not running.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, RemovalError};
use crate::app::lookup;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::id::FrameId;
use crate::runtime::housekeeping::removal::{self, Removal, RemovedChain};
use crate::store::ChainOf;

/// A chain that can be removed, with details that a person should see first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RemovableChain {
    pub(crate) root: FrameId,
    /// Its name, if it has one, and its task.
    pub(crate) task: String,
    pub(crate) state: ShownState,
    pub(crate) agents: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    pub(crate) root: FrameId,
    /// Also remove worktrees with ignored files other than build output and caches.
    pub(crate) ignored: bool,
}

/// The chain of an id: the id of the chain, or of one of its agents or questions.
pub(crate) fn chain(app: &App<'_>, id: &str) -> Result<RemovableChain, AppError> {
    app.asker.may(PersonsTask::Remove)?;
    let ChainOf { root, name, .. } = app.store.chain_of(lookup::frame_named(app, id)?)?;
    let title = app.store.frame(root)?.map(|frame| frame.task.title()).unwrap_or_default();
    let task = name.map_or_else(|| title.clone(), |name| format!("{name}, {title}"));
    let tree = app.store.tree(root)?;
    let agents = tree.all().filter(|node| !node.is_group).count();
    Ok(RemovableChain { root, task, state: tree.shown_state(false, app.now), agents })
}

pub(crate) fn remove(app: &App<'_>, Input { root, ignored }: Input) -> Result<RemovedChain, AppError> {
    app.asker.may(PersonsTask::Remove)?;
    match removal::remove_tree(app.store, root, ignored)? {
        Removal::Gone(chain) => Ok(chain),
        Removal::Busy => Err(RemovalError::Busy(root).into()),
        Removal::Needed => Err(RemovalError::Needed(root).into()),
        Removal::Held(held) => Err(RemovalError::Held(root, held).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Asker, testing};
    use crate::store;
    use crate::store::testing::{ask, attempt, new, reply};
    use crate::store::{Lease, NewAttempt};

    #[test]
    fn a_chain_is_removed_by_any_id_in_it() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("a task"), "a task").unwrap();
        let question = store.request(caller, None, &[ask("When?")]).unwrap().remove(0);
        for id in [child.to_string(), question.to_string()] {
            let chain = chain(&app, &id).unwrap();
            assert_eq!((chain.root, chain.state, chain.agents), (caller.frame, ShownState::Asks, 2));
        }
        store.end(caller, &reply("done"));
        let removed = remove(&app, Input { root: caller.frame, ignored: false }).unwrap();
        assert_eq!((removed.id, removed.agents), (caller.frame, 2));
        assert_eq!(store.frame(child).unwrap(), None);
    }

    #[test]
    fn agents_remove_nothing() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let other = store.root();
        let app = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..testing::app(&store) };
        let refusals = [
            chain(&app, &other.to_string()).unwrap_err(),
            remove(&app, Input { root: other, ignored: true }).unwrap_err(),
        ];
        for refused in refusals {
            assert!(matches!(refused, AppError::OnlyPeople(_)), "{refused}");
        }
        assert!(store.frame(other).unwrap().is_some());
    }

    #[test]
    fn a_chain_that_runs_or_is_needed_stays() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let remove = |root| remove(&app, Input { root, ignored: false });
        let runs = store.root();
        let lease = Lease::try_take(store.dir(), runs).unwrap().unwrap();
        let refused = remove(runs).unwrap_err();
        assert!(matches!(refused, AppError::Removal(RemovalError::Busy(root)) if root == runs), "{refused}");
        drop(lease);
        remove(runs).unwrap();
        let (needed, first) = (store.root(), attempt(Vec::new()));
        store.begin(needed, &first).unwrap();
        let fork = NewAttempt { resumed: Some(first.session), ..attempt(Vec::new()) };
        store.begin(store.root(), &fork).unwrap();
        let refused = remove(needed).unwrap_err();
        assert!(matches!(refused, AppError::Removal(RemovalError::Needed(root)) if root == needed), "{refused}");
    }
}
