//! Estimates what continuing a chain would send and cost, without starting it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::app::App;
use crate::app::chains::run::block_on;
use crate::app::error::AppError;
use crate::app::view::estimate::{AfreshPart, AgentEstimateView, EstimateView, NextRequestView, Starts};
use crate::claude::installation::version::Version;
use crate::core::agent::launch::Launch;
use crate::core::agent::overrides::Repair;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::runtime::activity::next_request;
use crate::runtime::requests::fork::ForkSource;
use crate::runtime::run::frame_error::first_agent;
use crate::runtime::{RunSettings, programs};
use crate::store::{Store, StoreError};

/// Estimates the next requests of agents, with the asker's settings.
#[derive(Debug)]
pub(crate) struct Estimator<'a> {
    store: &'a Store,
    run: &'a RunSettings,
    now: Timestamp,
    /// Whether to ask an unknown `claude` for its version, which starts a process.
    may_ask: bool,
    versions: HashMap<PathBuf, Option<Version>>,
}

impl<'a> Estimator<'a> {
    /// Creates an estimator that may ask an unknown `claude` for its version.
    pub(crate) fn new(app: &App<'a>, run: &'a RunSettings) -> Self {
        Self { store: app.store, run, now: app.now, may_ask: true, versions: HashMap::new() }
    }

    /// Creates an estimator that starts no processes.
    pub(crate) fn without_processes(app: &App<'a>, run: &'a RunSettings) -> Self {
        Self { may_ask: false, ..Self::new(app, run) }
    }

    /// Estimates the next request of an agent that is started with these launch options.
    pub(crate) fn of_frame(&mut self, frame: &Frame, launch: &Launch) -> Result<NextRequestView, AppError> {
        let version = self.version(launch)?;
        let next = next_request::of_frame(self.store, frame, launch, version)?;
        Ok(NextRequestView::new(&next, &self.run.prices, self.now))
    }

    /// Estimates the first request of a new agent. `source` is the conversation that the agent begins with.
    pub(crate) fn of_new(
        &mut self,
        launch: &Launch,
        cwd: &Path,
        source: Option<&ForkSource>,
    ) -> Result<NextRequestView, AppError> {
        let version = self.version(launch)?;
        let next = next_request::of_new(self.store, launch, cwd, source, version)?;
        Ok(NextRequestView::new(&next, &self.run.prices, self.now))
    }

    fn version(&mut self, launch: &Launch) -> Result<Option<Version>, AppError> {
        if let Some(known) = self.versions.get(&launch.claude) {
            return Ok(*known);
        }
        let version = programs::version(self.store, self.run.claude.as_deref(), launch, self.may_ask);
        let version = block_on(async { Ok(version.await?) })?;
        self.versions.insert(launch.claude.clone(), version);
        Ok(version)
    }
}

/// A change to the agent that a person names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTop {
    /// Whether the agent gets a new instruction.
    pub(crate) instructs: bool,
    /// Whether the agent starts afresh.
    pub(crate) afresh: bool,
}

/// Estimates what continuing the chain of `top` sends, if its agents are started with these changes.
pub(crate) fn of_chain(
    app: &App<'_>,
    top: FrameId,
    repair: &Repair,
    of_top: OfTop,
    run: &RunSettings,
) -> Result<EstimateView, AppError> {
    let OfTop { instructs, afresh } = of_top;
    let tree = app.store.tree(top)?;
    let mut agents = agents(app, run, &tree, repair, |node, starts| starts.is_some() || instructs && node.id == top)?;
    if let Some(at) = agents.iter().position(|agent| afresh && agent.id == Some(top)) {
        let continued = AgentEstimateView { request: of_new_session(app, run, top, repair)?, ..agents[at].clone() };
        let summary = &mut agents[at];
        (summary.starts, summary.afresh) = (Starts::Now, Some(AfreshPart::Summary));
        agents.insert(at + 1, AgentEstimateView { afresh: Some(AfreshPart::NewSession), ..continued });
    }
    Ok(EstimateView::new(Some(top), agents))
}

/// Estimates the first request of an agent's new session.
fn of_new_session(
    app: &App<'_>,
    run: &RunSettings,
    agent: FrameId,
    repair: &Repair,
) -> Result<NextRequestView, AppError> {
    let frame = app.store.frame(agent)?.ok_or(StoreError::UnknownFrame(agent))?;
    let first = first_agent(app.store, agent)?.unwrap_or_else(|| frame.clone());
    let launch = frame.launch.clone().repaired(&first.launch, repair);
    Estimator::new(app, run).of_new(&launch, &frame.cwd, None)
}

/// The agents below `top` that start at once when a person resumes the chain, and whose conversations are no longer cached.
pub(crate) fn cold_starts(app: &App<'_>, top: FrameId, run: &RunSettings) -> Result<EstimateView, AppError> {
    let tree = app.store.tree(top)?;
    let mut agents = agents(app, run, &tree, &Repair::default(), |_, starts| starts == Some(Starts::Now))?;
    agents.retain(|agent| agent.request.has_gone_cold());
    Ok(EstimateView::new(Some(top), agents))
}

/// Estimates the next requests of the `wanted` agents, in the order in which they start.
fn agents(
    app: &App<'_>,
    run: &RunSettings,
    tree: &Tree,
    repair: &Repair,
    wanted: impl Fn(&Node, Option<Starts>) -> bool,
) -> Result<Vec<AgentEstimateView>, AppError> {
    let abandoned = app.store.abandoned_in(tree)?;
    let runs = |node: &Node| matches!(node.state, FrameState::Running { .. }) && !abandoned.contains_key(&node.id);
    let mut at_once = starting(tree, app.now);
    at_once.extend(abandoned.keys());
    let first = first_agent(app.store, tree.top())?;
    let mut estimator = Estimator::new(app, run);
    let mut agents = Vec::new();
    for node in tree.leaves_up() {
        let starts = if at_once.contains(&node.id) {
            Some(Starts::Now)
        } else {
            (!node.state.is_over() && node.handed_off_to().is_none()).then_some(Starts::Later)
        };
        if node.is_group || runs(node) || !wanted(node, starts) {
            continue;
        }
        let (Some(frame), Some(first)) = (app.store.frame(node.id)?, &first) else { continue };
        let launch = frame.launch.clone().repaired(&first.launch, repair);
        let request = estimator.of_frame(&frame, &launch)?;
        let task = node.title.clone();
        agents.push(AgentEstimateView {
            id: Some(node.id),
            task,
            starts: starts.unwrap_or(Starts::Now),
            afresh: None,
            request,
        });
    }
    Ok(agents)
}

/// The frames that start at once when a person resumes the top.
fn starting(tree: &Tree, now: Timestamp) -> Vec<FrameId> {
    let mut starting = tree.runnable(&Attempted::default(), now);
    let again = tree.to_try_again();
    let members = again.iter().filter(|node| node.is_group).flat_map(|group| tree.failed_members(group));
    starting.extend(members.chain(tree.to_restart()).chain(again.iter().copied()).map(|node| node.id));
    let rests = |id: &FrameId| {
        let waited = tree.get(*id).map(|node| &node.state);
        matches!(waited, Some(FrameState::Paused { waited: None }))
    };
    starting.extend(tree.to_continue().into_iter().filter(rests));
    starting
}
