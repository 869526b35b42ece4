//! The view of an agent in a tree.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::app::view::cost::{self, CostView};
use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::usage::Spent;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::Blocker;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::activity::now::{Doing, activities};
use crate::store::{Attempts, Extent, Store, WorktreesOf};

/// The agents that are recorded as running but have no runner, each with the root of its chain.
pub(crate) type Abandoned = HashMap<FrameId, FrameId>;

/// The cost of each agent alone. Agents without attempts are left out.
type Costs = HashMap<FrameId, Spent>;

/// An agent, as `tree` lists it: parents before their children.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AgentView {
    pub(crate) id: FrameId,
    pub(crate) parent: Option<FrameId>,
    pub(crate) task: String,
    pub(crate) status: AgentStatus,
    pub(crate) state: ShownState,
    /// Whether it is recorded as running but has no runner.
    abandoned: bool,
    /// Whether `claude` could not record its last turn, which will be repeated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unrecorded: bool,
    /// When it entered this state.
    pub(crate) since: Timestamp,
    pub(crate) error: Option<String>,
    pub(crate) waiting_on: Vec<Blocker>,
    /// The agent whose reply is also its own. Only for an agent that waits for it or has ended with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handed_off_to: Option<FrameId>,
    /// Only for a running agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<Doing>,
    /// Only for an agent that has its own worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<Worktree>,
    /// What it has cost itself.
    #[serde(flatten)]
    pub(crate) cost: CostView,
}

/// Builds the views of a tree's agents, parents before their children.
pub(crate) fn of_tree(
    store: &Store,
    tree: &Tree,
    abandoned: &Abandoned,
    now: Timestamp,
) -> Result<Vec<AgentView>, RuntimeError> {
    let mut worktrees: HashMap<_, _> = store.worktrees(WorktreesOf::Chain(tree.top()))?.into_iter().collect();
    let costs = costs(store, tree, now)?;
    let mut activities = activities(store, tree, now)?;
    let view = |node: &Node| {
        let abandoned = abandoned.contains_key(&node.id);
        AgentView {
            id: node.id,
            parent: node.parent,
            task: node.title.clone(),
            status: node.state.status(),
            state: tree.shown_state_of(node, abandoned, now),
            abandoned,
            unrecorded: node.is_unrecorded && !node.is_over(),
            since: node.since,
            error: match &node.state {
                FrameState::Failed { failure } => Some(failure.message.clone()),
                _ => None,
            },
            waiting_on: tree.blockers_of(node, now),
            handed_off_to: node.handed_off_to(),
            doing: activities.remove(&node.id).filter(|_| !abandoned),
            worktree: worktrees.remove(&node.id),
            cost: CostView(costs.get(&node.id).copied().unwrap_or_default()),
        }
    };
    Ok(tree.parents_first().into_iter().map(view).collect())
}

fn costs(store: &Store, tree: &Tree, now: Timestamp) -> Result<Costs, RuntimeError> {
    let mut costs = Costs::new();
    for attempt in store.attempts(Attempts::Of(Extent::Below(tree.top())))? {
        let sum = costs.entry(attempt.frame).or_default();
        *sum = sum.plus(cost::of_attempt(&attempt.spending, attempt.began, attempt.ended, now));
    }
    Ok(costs)
}
