//! Lists chains with all of their agents.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::project::Selection;
use crate::app::lookup::frame_named;
use crate::app::view::agent::{self, Abandoned, AgentView};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::run::external_waits;
use crate::store::{ChainKind, Chains};

#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The agent at the top. `None`: the chains that are not done, or the agent that asks.
    pub(crate) id: Option<String>,
    /// Also list the chains of other projects.
    pub(crate) all_projects: bool,
    /// The most chains to list, the newest. `None`: all.
    pub(crate) most: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) trees: Vec<ListedTree>,
    pub(crate) abandoned: Abandoned,
    /// How many chains of other projects are left out.
    pub(crate) elsewhere: u64,
    /// How many other chains did not fit on the list.
    pub(crate) more: u64,
}

/// An agent and everything below it.
#[derive(Debug)]
pub(crate) struct ListedTree {
    pub(crate) tree: Tree,
    /// Parents before their children.
    pub(crate) agents: Vec<AgentView>,
    /// When the tree changes without a recorded event.
    pub(crate) changes_at: Option<Timestamp>,
}

pub(crate) fn tree(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    let (tops, outcome) = match (&input.id, app.asker.agent) {
        (Some(id), _) => (vec![frame_named(app, id)?], Outcome::default()),
        (None, Some(caller)) => (vec![caller.frame], Outcome::default()),
        (None, None) => open(app, input)?,
    };
    let mut abandoned = Abandoned::new();
    let listed = |top| listed(app, top, &mut abandoned);
    let trees = tops.into_iter().map(listed).collect::<Result<_, _>>()?;
    Ok(Outcome { trees, abandoned, ..outcome })
}

/// The chains that are not done, the newest first.
fn open(app: &App<'_>, input: &Input) -> Result<(Vec<FrameId>, Outcome), AppError> {
    let mut selection = Selection::new(app, input.all_projects)?;
    let mut elsewhere = 0;
    let mut is_meant = |kind: &ChainKind| {
        if kind.status == AgentStatus::Done {
            return false;
        }
        let is_here = selection.includes(&kind.cwd);
        elsewhere += if is_here { 0 } else { kind.count };
        is_here
    };
    let most = input.most.unwrap_or(usize::MAX);
    let mut kinds = app.store.chain_kinds()?;
    kinds.retain(&mut is_meant);
    let kinds = ChainKind::with_other_states(&kinds, |status| status != AgentStatus::Done);
    let open = app.store.chains(Chains::Newest { most, kinds: Some(&kinds) })?;
    let mut chains = open.chains;
    let known: HashSet<FrameId> = chains.iter().map(|chain| chain.id).collect();
    chains.extend(selection.continued(app.store)?.into_iter().filter(|chain| !known.contains(&chain.id)));
    chains.sort_by_key(|chain| std::cmp::Reverse(chain.created));
    let tops = chains.into_iter().map(|chain| chain.id).collect();
    Ok((tops, Outcome { elsewhere, more: open.more, ..Outcome::default() }))
}

/// Adds the abandoned agents to `abandoned`.
fn listed(app: &App<'_>, top: FrameId, abandoned: &mut Abandoned) -> Result<ListedTree, RuntimeError> {
    let mut tree = app.store.tree(top)?;
    abandoned.extend(app.store.abandoned_in(&tree)?);
    let changes_at = external_waits::as_of(app.store, &mut tree, app.now)?;
    let agents = agent::of_tree(app.store, &tree, abandoned, app.now)?;
    Ok(ListedTree { tree, agents, changes_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;
    use crate::store::testing::{new, reply};
    use crate::store::{NewFrame, Store};

    fn chain(store: &Store, cwd: &str) -> FrameId {
        store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap()
    }

    fn agents(outcome: &Outcome) -> Vec<Vec<FrameId>> {
        outcome.trees.iter().map(|listed| listed.agents.iter().map(|agent| agent.id).collect()).collect()
    }

    #[test]
    fn the_open_chains_of_a_project_are_listed_and_others_counted() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let done = chain(&store, "/");
        store.end(store.start(done), &reply("fine"));
        let (first, second) = (chain(&store, "/"), chain(&store, "/"));
        let other = chain(&store, "/elsewhere");
        let found = tree(&app, &Input::default()).unwrap();
        assert_eq!((agents(&found), found.elsewhere, found.more), (vec![vec![second], vec![first]], 1, 0));
        let found = tree(&app, &Input { most: Some(1), all_projects: true, ..Input::default() }).unwrap();
        assert_eq!((agents(&found), found.elsewhere, found.more), (vec![vec![other]], 0, 2));
        let found = tree(&app, &Input { id: Some(done.to_string()), ..Input::default() }).unwrap();
        assert_eq!(agents(&found), [[done]]);
    }

    #[test]
    fn an_agent_sees_itself_and_what_is_below_it() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(chain(&store, "/"));
        chain(&store, "/");
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        let found = tree(&testing::app_of(&store, caller), &Input::default()).unwrap();
        assert_eq!(agents(&found), [[caller.frame, child]]);
        assert_eq!(found.abandoned.get(&caller.frame), Some(&caller.frame), "nothing runs it");
        let top = found.trees[0].tree.top();
        assert_eq!(top, caller.frame);
    }
}
