//! The view of a chain's status, after `spawn` or `resume` has run everything that can run.

use std::collections::HashMap;

use serde::Serialize;

use crate::app::view::cost::CostView;
use crate::app::view::denied::{self, DeniedCallView};
use crate::core::agent::child_worktree::Worktree;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::group::GroupMember;
use crate::core::chain::waiting_on::Blocker;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::requests::posted::filing::{self, Hindered};
use crate::runtime::run::driven::Busy;
use crate::runtime::run::frame_error::FrameError;
use crate::runtime::run::status::ChainStatus;
use crate::runtime::steering::afresh_advice::AfreshAdvice;
use crate::store::{Store, WorktreesOf};

/// The version of the JSON format. It changes when a field is removed or gets another meaning, not when a field is added.
const VERSION: u32 = 1;

/// What `spawn` and `resume` print with `--json`, and as the last line of `--stream`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChainStatusView {
    r#type: ChainType,
    version: u32,
    /// The agent that was started or resumed.
    pub(crate) id: FrameId,
    pub(crate) status: Outcome,
    pub(crate) reply: Option<String>,
    /// Only for a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberView>,
    /// Only for a finished agent that has its own worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
    /// The worktrees of the finished agents below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) worktrees_below: Vec<WorktreeBelowView>,
    waiting_on: Vec<Blocker>,
    /// The agents that are run by other processes.
    running_elsewhere: Vec<Busy>,
    errors: Vec<AgentErrorView>,
    pub(crate) denied: Vec<DeniedCallView>,
    /// Posted questions whose folder cannot be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unwritten_answers: Vec<Hindered>,
    /// The agents that should start afresh, if an agent has begun to wait for something new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    afresh_advice: Vec<AfreshAdvice>,
    /// The command that continues the chain above the agent, if the agent is done or was stopped and the chain can continue now.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(flatten)]
    cost: CostView,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum ChainType {
    Chain,
}

/// The outcome of a `spawn` or `resume`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Outcome {
    /// It has replied.
    Done,
    /// It has begun to wait for something new.
    Started,
    /// It still waits for the same as before.
    Ongoing,
    /// At least one agent failed, and nothing waits.
    Failed,
    /// A person interrupted it.
    Interrupted,
}

/// An agent of a group.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MemberView {
    id: FrameId,
    task: String,
    status: AgentStatus,
    reply: Option<String>,
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<Worktree>,
}

/// What went wrong with an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentErrorView {
    agent: FrameId,
    kind: &'static str,
    /// For people: it may change from version to version.
    message: String,
}

/// The worktree of an agent below the one that was started or resumed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WorktreeBelowView {
    pub(crate) id: FrameId,
    pub(crate) task: String,
    #[serde(flatten)]
    pub(crate) worktree: Worktree,
}

/// What an agent's `spawn --json` prints until there are results.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RequestView {
    /// The request, or the agent that it has started.
    pub(crate) id: String,
    pub(crate) status: Outcome,
}

impl ChainStatusView {
    /// Gathers `status` and everything that a caller should know about it. `advice` lists the agents that should start
    /// afresh, `next` is the command that continues the chain above it.
    pub(crate) fn gather(
        store: &Store,
        id: FrameId,
        status: &ChainStatus,
        advice: &[AfreshAdvice],
        next: Option<String>,
    ) -> Result<Self, RuntimeError> {
        let has_ended =
            matches!(status, ChainStatus::Done(_) | ChainStatus::PartlyFailed { .. } | ChainStatus::Failed(_));
        let frame = if has_ended { store.frame(id)? } else { None };
        let (mut waiting_on, mut running_elsewhere) = (Vec::new(), Vec::new());
        if let ChainStatus::Waits { blockers, busy, .. } = status {
            (waiting_on, running_elsewhere) = (blockers.clone(), busy.clone());
        }
        let outcome = match status {
            ChainStatus::Done(_) => Outcome::Done,
            ChainStatus::Waits { new: true, .. } => Outcome::Started,
            ChainStatus::Waits { new: false, .. } => Outcome::Ongoing,
            ChainStatus::PartlyFailed { .. } | ChainStatus::Failed(_) => Outcome::Failed,
            ChainStatus::Interrupted => Outcome::Interrupted,
        };
        Ok(Self {
            r#type: ChainType::Chain,
            version: VERSION,
            id,
            status: outcome,
            reply: status.reply().map(str::to_owned),
            members: store.replies(id)?.members.into_iter().map(MemberView::from).collect(),
            worktree: frame.filter(|frame| frame.state.is_over()).and_then(|frame| frame.launch.worktree),
            worktrees_below: if has_ended { worktrees_below(store, id)? } else { Vec::new() },
            waiting_on,
            running_elsewhere,
            errors: status.errors().iter().map(AgentErrorView::from).collect(),
            denied: denied::below(store, id)?,
            unwritten_answers: filing::hindered(store, id)?,
            afresh_advice: advice.to_vec(),
            next,
            cost: CostView(store.spent(id)?),
        })
    }
}

impl From<GroupMember> for MemberView {
    fn from(member: GroupMember) -> Self {
        let error = member.failure().map(|failure| failure.message.clone());
        let GroupMember { id, task, state, reply, worktree } = member;
        // What a stopped member has done so far is no reply.
        let reply = reply.filter(|_| state == FrameState::Done);
        Self { id, task, status: state.status(), reply, error, worktree }
    }
}

impl From<&FrameError> for AgentErrorView {
    fn from(error: &FrameError) -> Self {
        Self { agent: error.frame, kind: error.kind.name(), message: error.kind.to_string() }
    }
}

impl RequestView {
    /// The view of a request that was just made.
    pub(crate) fn started(id: String) -> Self {
        Self { id, status: Outcome::Started }
    }
}

/// The worktrees of the finished agents below `top`, parents first, without those that `gc` has removed.
pub(crate) fn worktrees_below(store: &Store, top: FrameId) -> Result<Vec<WorktreeBelowView>, RuntimeError> {
    let mut worktrees: HashMap<FrameId, Worktree> = store.worktrees(WorktreesOf::Chain(top))?.into_iter().collect();
    worktrees.retain(|frame, worktree| *frame != top && worktree.path.exists());
    if worktrees.is_empty() {
        return Ok(Vec::new());
    }
    let tree = store.tree(top)?;
    let over = tree.parents_first().into_iter().filter(|node| node.state.is_over());
    let found = over.filter_map(|node| {
        let worktree = worktrees.remove(&node.id)?;
        Some(WorktreeBelowView { id: node.id, task: node.title.clone(), worktree })
    });
    Ok(found.collect())
}
