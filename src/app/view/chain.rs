//! The view of a chain in a list.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::app::view::cost::CostView;
use crate::core::agent::usage::Spent;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::core::requests::approval;
use crate::runtime::RuntimeError;
use crate::runtime::activity::now::{Doing, activities, activity_of};
use crate::runtime::run::external_waits;
use crate::store::{Store, Summary, TreeOf};

/// How many chains are read together.
const AT_ONCE: usize = 50;

/// A chain, as `ls` lists it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChainView {
    pub(crate) id: FrameId,
    pub(crate) name: Option<String>,
    pub(crate) status: AgentStatus,
    pub(crate) state: ShownState,
    /// Whether it is recorded as running but has no runner.
    pub(crate) abandoned: bool,
    /// The agents whose last turn `claude` could not record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unrecorded: Vec<FrameId>,
    pub(crate) error: Option<String>,
    /// Whether `resume` would start an agent now.
    pub(crate) can_continue: bool,
    pub(crate) task: String,
    pub(crate) cwd: PathBuf,
    /// When its first agent entered its current state.
    pub(crate) since: Timestamp,
    pub(crate) created: Timestamp,
    pub(crate) agents: u64,
    pub(crate) open_questions: u64,
    pub(crate) waiting_on: Vec<Blocker>,
    /// What its running agents are doing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) doing: BTreeMap<FrameId, Doing>,
    /// Whether it waits because its budget is spent.
    over_budget: bool,
    #[serde(flatten)]
    pub(crate) cost: CostView,
    #[serde(skip)]
    pub(crate) max_budget_usd: Option<f64>,
    /// When it changes although nothing is recorded.
    #[serde(skip)]
    pub(crate) changes_at: Option<Timestamp>,
}

/// The state of a chain, as a filter of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainState {
    Agent(AgentStatus),
    /// Recorded as running, but without a runner.
    Abandoned,
    /// A state that says who must act, unless a status has the same name.
    Shown(ShownState),
}

impl ChainState {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let statuses = AgentStatus::ALL.into_iter().map(Self::Agent).chain([Self::Abandoned]);
        let is_new = |shown: &ShownState| !AgentStatus::ALL.iter().any(|status| status.name() == shown.name());
        let shown = ShownState::ALL.into_iter().filter(|shown| *shown != ShownState::Abandoned);
        statuses.chain(shown.filter(is_new).map(Self::Shown))
    }

    /// The name of an option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Agent(status) => status.name(),
            Self::Abandoned => "abandoned",
            Self::Shown(ShownState::OverBudget) => "over-budget",
            Self::Shown(ShownState::CanContinue) => "can-continue",
            Self::Shown(shown) => shown.name(),
        }
    }

    /// Its other spellings: those of JSON, and of lists.
    pub(crate) fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::Shown(ShownState::OverBudget) => &["over_budget", "over budget"],
            Self::Shown(ShownState::CanContinue) => &["can_continue", "can continue"],
            Self::Shown(ShownState::Approve) => &["approve?"],
            Self::Shown(ShownState::Plan) => &["plan?"],
            _ => &[],
        }
    }

    /// The state with this name, in any spelling.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|state| state.name() == name || state.other_names().contains(&name))
    }

    /// Whether a chain with this status may be in this state.
    pub(crate) fn may_be_of(self, status: AgentStatus, is_abandoned: bool) -> bool {
        match self {
            Self::Agent(wanted) => wanted == status,
            Self::Abandoned => is_abandoned,
            Self::Shown(ShownState::Stopped) => status == AgentStatus::Failed,
            Self::Shown(_) => !matches!(status, AgentStatus::Done | AgentStatus::Failed),
        }
    }
}

impl ChainView {
    /// What a person is asked, if the state of the chain shows that they are, and since when.
    pub(crate) fn asked(&self) -> Option<(String, Timestamp)> {
        let blocker = self.blocker()?;
        let asked = match (self.state, &blocker.what) {
            (ShownState::Asks, Blocking::Question { form, .. }) => form.question.trim().to_owned(),
            (ShownState::Approve, Blocking::Permission { tool, input, .. }) => approval::summary(tool, input),
            (ShownState::Plan, Blocking::Plan { plan, .. }) => plan.summary().to_owned(),
            _ => return None,
        };
        Some((asked, blocker.since))
    }

    /// The blocker that causes the chain's state, or else the first one.
    pub(crate) fn blocker(&self) -> Option<&Blocker> {
        let causes = |blocker: &&Blocker| ShownState::blocked_by(&blocker.what) == self.state;
        self.waiting_on.iter().find(causes).or_else(|| self.waiting_on.first())
    }

    /// Whether the chain is in this state.
    pub(crate) fn is_in(&self, state: ChainState) -> bool {
        match state {
            ChainState::Shown(shown) => self.state.name() == shown.name(),
            ChainState::Agent(_) | ChainState::Abandoned => state.may_be_of(self.status, self.abandoned),
        }
    }

    /// Reads the activities of running agents again.
    pub(crate) fn refresh_activities(&mut self, store: &Store, now: Timestamp) -> Result<(), RuntimeError> {
        let agents: Vec<FrameId> = self.doing.keys().copied().collect();
        for agent in agents {
            match activity_of(store, agent, now)? {
                Some(doing) => drop(self.doing.insert(agent, doing)),
                None => drop(self.doing.remove(&agent)),
            }
        }
        Ok(())
    }

    /// The views of these chains, in their order. A few at a time are read.
    pub(crate) fn gather_all(
        store: &Store,
        chains: &[Summary],
        abandoned: &HashSet<FrameId>,
        now: Timestamp,
    ) -> impl Iterator<Item = Result<Self, RuntimeError>> {
        let parts: Vec<Vec<Summary>> = chains.chunks(AT_ONCE).map(<[Summary]>::to_vec).collect();
        let of_part = move |part| match Self::gather_part(store, part, abandoned, now) {
            Ok(views) => views.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        parts.into_iter().flat_map(of_part)
    }

    fn gather_part(
        store: &Store,
        chains: Vec<Summary>,
        abandoned: &HashSet<FrameId>,
        now: Timestamp,
    ) -> Result<Vec<Self>, RuntimeError> {
        let ids: Vec<FrameId> = chains.iter().map(|chain| chain.id).collect();
        let open = chains.iter().filter(|chain| chain.state != FrameState::Done || chain.has_continued);
        let open: Vec<TreeOf> = open.map(|chain| TreeOf::Whole(chain.id)).collect();
        let trees = store.trees(&open)?.into_iter();
        let mut trees: HashMap<FrameId, Tree> = trees.map(|tree| (tree.top(), tree)).collect();
        let spent = store.spent_below(&ids)?;
        let view = |(chain, spent): (Summary, Spent)| {
            let tree = trees.remove(&chain.id);
            Self::gather(store, chain, tree, spent, abandoned, now)
        };
        chains.into_iter().zip(spent).map(view).collect()
    }

    /// `tree`: the chain's, unless it is done for good.
    fn gather(
        store: &Store,
        chain: Summary,
        mut tree: Option<Tree>,
        spent: Spent,
        abandoned: &HashSet<FrameId>,
        now: Timestamp,
    ) -> Result<Self, RuntimeError> {
        let changes_at = tree.as_mut().map(|tree| external_waits::as_of(store, tree, now)).transpose()?.flatten();
        let waiting_on = tree.as_ref().map(|tree| tree.blockers(now)).unwrap_or_default();
        let abandoned = abandoned.contains(&chain.id);
        let doing = match &tree {
            Some(tree) if !abandoned => activities(store, tree, now)?,
            _ => BTreeMap::new(),
        };
        let status = tree.as_ref().map_or(chain.state.status(), |tree| tree.status(now));
        let state = tree.as_ref().map_or(ShownState::Done, |tree| tree.shown_state(abandoned, now));
        let is_unrecorded = |node: &&Node| node.is_unrecorded && !node.is_over();
        let unrecorded = tree.as_ref().map(|tree| tree.parents_first().into_iter().filter(is_unrecorded));
        let unrecorded = unrecorded.map(|nodes| nodes.map(|node| node.id).collect()).unwrap_or_default();
        let can_run = tree.is_some_and(|tree| tree.can_continue(now));
        Ok(Self {
            over_budget: waiting_on.iter().any(|blocker| matches!(blocker.what, Blocking::Budget { .. })),
            can_continue: can_run || abandoned,
            id: chain.id,
            name: chain.name,
            status,
            state,
            error: match chain.state {
                FrameState::Failed { failure } => Some(failure.message),
                _ => None,
            },
            abandoned,
            unrecorded,
            task: chain.title,
            cwd: chain.cwd,
            since: chain.since,
            created: chain.created,
            agents: chain.frames,
            open_questions: chain.open_questions,
            waiting_on,
            doing,
            cost: CostView(spent),
            max_budget_usd: chain.limits.max_budget_usd,
            changes_at,
        })
    }
}
