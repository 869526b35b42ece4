//! The view of a single agent, with everything known about it.

use jiff::Timestamp;
use serde::Serialize;

use crate::app::view::cost::{self, CostView};
use crate::app::view::denied::{self, DeniedCallView};
use crate::app::view::estimate::NextRequestView;
use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::locate;
use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::launch::Launch;
use crate::core::agent::usage::Spent;
use crate::core::chain::frame::{Baseline, Frame, Task, Trouble};
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::limits::Limits;
use crate::core::chain::tree::Node;
use crate::core::chain::waiting_on::Blocker;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, MessageId, SessionId};
use crate::core::steering::fresh_start::AfreshReason;
use crate::core::steering::message::Message;
use crate::runtime::RuntimeError;
use crate::runtime::activity::now::{Doing, activity_of};
use crate::runtime::run::external_waits;
use crate::runtime::steering::afresh_advice;
use crate::runtime::steering::opening::Opening;
use crate::store::{Attempt, Store};

/// An agent, as `show` shows it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AgentDetailView {
    pub(crate) id: FrameId,
    pub(crate) parent: Option<FrameId>,
    pub(crate) chain: FrameId,
    pub(crate) depth: u32,
    /// The agent that has started its chain, if that was detached.
    pub(crate) detached_by: Option<FrameId>,
    pub(crate) task: Task,
    pub(crate) cwd: std::path::PathBuf,
    pub(crate) status: AgentStatus,
    pub(crate) state: ShownState,
    /// Whether it is recorded as running but has no runner.
    pub(crate) abandoned: bool,
    pub(crate) error: Option<String>,
    pub(crate) since: Timestamp,
    pub(crate) created: Timestamp,
    /// When it changes although nothing is recorded.
    #[serde(skip)]
    pub(crate) changes_at: Option<Timestamp>,
    /// Only for a running agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<Doing>,
    pub(crate) waiting_on: Vec<Blocker>,
    /// What the agents below it wait for, the deepest first.
    pub(crate) waiting_below: Vec<Blocker>,
    /// The agent whose reply is also its own.
    pub(crate) handed_off_to: Option<FrameId>,
    /// The reply, if the agent is done. For a group that has ended: the replies of all its agents.
    pub(crate) reply: Option<String>,
    /// What a stopped agent had done, as its parent is told.
    pub(crate) report: Option<String>,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) children: Vec<FrameId>,
    pub(crate) launch: Launch,
    /// How much of its own worktree is on the git remote. Only if it has a remote and has stopped once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<Pushed>,
    pub(crate) limits: Limits,
    pub(crate) checkpoint: Option<AttemptId>,
    pub(crate) baseline: Option<Baseline>,
    /// The session in which it continues.
    pub(crate) session: SessionId,
    /// The summary that its agent wrote when it last started afresh.
    pub(crate) summary: Option<String>,
    /// Whether its next turn is to write one.
    pub(crate) starts_afresh: bool,
    /// Why it should start afresh; `null`: it need not.
    pub(crate) afresh_advice: Option<AfreshReason>,
    pub(crate) sessions: Vec<SessionView>,
    pub(crate) output: std::path::PathBuf,
    /// The command that opens a copy of its conversation.
    pub(crate) open: Option<String>,
    pub(crate) denied: Vec<DeniedCallView>,
    /// What it has cost itself.
    #[serde(flatten)]
    pub(crate) cost: CostView,
    /// What it and all agents below it have cost.
    pub(crate) with_descendants: CostView,
    /// The next request that continuing it sends; `null`: nothing continues it.
    pub(crate) next_request: Option<NextRequestView>,
    /// Messages to it.
    pub(crate) messages: Vec<MessageView>,
    pub(crate) events: Vec<LogEntryView>,
}

/// A message to an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MessageView {
    pub(crate) id: MessageId,
    pub(crate) at: Timestamp,
    pub(crate) text: String,
    /// Whether it was given to an attempt that was kept or may still be.
    pub(crate) delivered: bool,
    /// Whether it continued a finished agent.
    pub(crate) instruction: bool,
    /// The agent's reply to an instruction.
    pub(crate) reply: Option<String>,
}

/// An attempt and its session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionView {
    pub(crate) id: SessionId,
    pub(crate) attempt: AttemptId,
    pub(crate) resumed: Option<SessionId>,
    pub(crate) began: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) outcome: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) kept: Option<bool>,
    pub(crate) transcript: Option<std::path::PathBuf>,
    #[serde(flatten)]
    pub(crate) cost: CostView,
    pub(crate) model: Option<String>,
    /// How many of its calls have lingered: they stayed open for a while, because their results were expected soon.
    pub(crate) lingered: u32,
}

/// An entry of the log.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogEntryView {
    pub(crate) at: Timestamp,
    #[serde(flatten)]
    pub(crate) entry: LogEntry,
}

/// Gathers everything known about an agent.
pub(crate) fn gather(
    store: &Store,
    frame: Frame,
    next_request: Option<NextRequestView>,
    now: Timestamp,
) -> Result<AgentDetailView, RuntimeError> {
    let mut tree = store.tree(frame.id)?;
    let attempts = store.attempts(frame.id)?;
    let of = |attempt: &Attempt| cost::of_attempt(&attempt.spending, attempt.began, attempt.ended, now);
    let own = attempts.iter().map(of).fold(Spent::default(), Spent::plus);
    let changes_at = external_waits::as_of(store, &mut tree, now)?;
    let (waiting_on, waiting_below) = tree.blockers(now).into_iter().partition(|blocker| blocker.frame == frame.id);
    let events = store.events(frame.id, 0)?.into_iter();
    let abandoned = store.abandoned_in(&tree)?.contains_key(&frame.id);
    let shown = |node| tree.shown_state_of(node, abandoned, now);
    let chain = store.chain_of(frame.id)?;
    let said = store.replies(frame.id)?.reply;
    Ok(AgentDetailView {
        doing: activity_of(store, frame.id, now)?,
        waiting_on,
        waiting_below,
        handed_off_to: tree.get(frame.id).and_then(Node::handed_off_to),
        report: said.clone().filter(|_| frame.for_its_parent().was_stopped() && !frame.task.is_group()),
        reply: said.filter(|_| has_reply(&frame)),
        children: tree.children(frame.id).to_vec(),
        denied: denied::below(store, frame.id)?.into_iter().filter(|call| call.agent == frame.id).collect(),
        open: match Opening::new(store, &frame) {
            // Claude Code would run the suspended call again. This needs a copy in which the call is closed.
            Ok(_) if frame.suspended.is_some() => Some(format!("agent-cli open {}", frame.id.short())),
            opening => opening.ok().map(|opening| opening.command()),
        },
        messages: store.steering(frame.id)?.messages.into_iter().map(message).collect(),
        next_request,
        output: store.dir().output(frame.id),
        cost: CostView(own),
        with_descendants: CostView(store.spent(frame.id)?),
        summary: attempts.iter().rev().find(|attempt| attempt.is_summary()).and_then(|it| it.message.clone()),
        afresh_advice: afresh_advice::of_agent(store, &frame)?,
        starts_afresh: frame.summary_lacks().is_some() && !frame.state.is_over(),
        session: frame.session,
        sessions: attempts.into_iter().map(|attempt| session(store, &frame, of(&attempt), attempt)).collect(),
        events: events.map(|event| LogEntryView { at: event.at, entry: event.entry }).collect(),
        id: frame.id,
        parent: frame.parent,
        chain: frame.root,
        depth: frame.depth,
        task: frame.task,
        cwd: frame.cwd,
        status: frame.state.status(),
        state: tree.get(frame.id).map_or(ShownState::Waits, shown),
        abandoned,
        error: match frame.state {
            FrameState::Failed { failure } => Some(failure.message),
            _ => None,
        },
        since: frame.since,
        created: frame.created,
        changes_at,
        trouble: frame.trouble,
        launch: frame.launch,
        pushed: frame.pushed,
        limits: chain.limits,
        detached_by: chain.detached.map(|detached| detached.by),
        checkpoint: frame.checkpoint,
        baseline: frame.baseline,
    })
}

/// Whether what is recorded as said by an agent is its reply, and not what it had done when it was stopped.
pub(crate) fn has_reply(frame: &Frame) -> bool {
    *frame.for_its_parent() == FrameState::Done || frame.task.is_group() && frame.state.is_over()
}

fn message(message: Message) -> MessageView {
    let Message { id, made, delivered_in, instructs, text, reply, .. } = message;
    MessageView { id, at: made, text, delivered: delivered_in.is_some(), instruction: instructs, reply }
}

/// The view of an attempt's session. The transcript is in Claude Code's folder, or else in the kept copy.
fn session(store: &Store, frame: &Frame, cost: Spent, attempt: Attempt) -> SessionView {
    let found = config_dir(&frame.launch).and_then(|config| locate::find(&config, &frame.cwd, attempt.session));
    let copy = || Some(store.dir().checkpoint(frame.id, attempt.id)).filter(|copy| copy.is_file());
    SessionView {
        transcript: found.or_else(copy),
        id: attempt.session,
        attempt: attempt.id,
        resumed: attempt.resumed,
        began: attempt.began,
        ended: attempt.ended,
        outcome: attempt.outcome,
        message: attempt.message,
        kept: attempt.kept,
        cost: CostView(cost),
        model: attempt.model,
        lingered: attempt.lingered,
    }
}
