//! The state of a chain or an agent by who must act, as every list shows it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::text::time::on_clock;

/// The state of a chain or an agent. In lists, a chain comes before those with later states, and if several states apply to
/// what an agent waits for, the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShownState {
    /// A person must answer a question.
    Asks,
    /// A person must allow or deny a call.
    Approve,
    /// A person must approve a plan.
    Plan,
    /// A person must raise its budget.
    OverBudget,
    /// `resume` continues it.
    CanContinue,
    /// The process that ran it was killed; `resume` continues it.
    Abandoned,
    /// Ctrl-C ended the command that ran it; `resume` continues it.
    Interrupted,
    /// It ended with an error; `resume` tries again.
    Failed,
    /// At least one agent runs.
    Working,
    /// It waits for its usage limit to reset.
    Limit { until: Timestamp },
    /// It waits for its next try.
    Retry { at: Timestamp },
    /// It waits for a file, a time, a command, another agent or a free slot.
    Waits,
    /// A person paused it.
    Paused,
    /// It was stopped.
    Stopped,
    /// It has replied.
    Done,
}

/// Who must act before a chain or an agent continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// A person, who is asked something.
    Asked,
    /// A person who resumes it, unless an unattended `resume` does.
    Resumer,
    /// A person who repairs something first.
    Repairer,
    /// A process that is running.
    Runner,
    /// Something outside.
    Others,
    /// Nobody.
    Nobody,
}

impl ShownState {
    /// The states without their times.
    pub(crate) const ALL: [Self; 15] = [
        Self::Asks,
        Self::Approve,
        Self::Plan,
        Self::OverBudget,
        Self::CanContinue,
        Self::Abandoned,
        Self::Interrupted,
        Self::Failed,
        Self::Working,
        Self::Limit { until: Timestamp::UNIX_EPOCH },
        Self::Retry { at: Timestamp::UNIX_EPOCH },
        Self::Waits,
        Self::Paused,
        Self::Stopped,
        Self::Done,
    ];

    /// Its name in JSON. Options have hyphens instead.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Approve => "approve",
            Self::Plan => "plan",
            Self::OverBudget => "over_budget",
            Self::CanContinue => "can_continue",
            Self::Abandoned => "abandoned",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Working => "working",
            Self::Limit { .. } => "limit",
            Self::Retry { .. } => "retry",
            Self::Waits => "waits",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Done => "done",
        }
    }

    /// Its words for people, with times on the clock of `zone`.
    pub(crate) fn words(self, now: Timestamp, zone: &TimeZone) -> String {
        match self {
            Self::Approve => "approve?".to_owned(),
            Self::Plan => "plan?".to_owned(),
            Self::OverBudget => "over budget".to_owned(),
            Self::CanContinue => "can continue".to_owned(),
            Self::Limit { until } => format!("limit until {}", on_clock(until, now, zone)),
            Self::Retry { at } => format!("retry at {}", on_clock(at, now, zone)),
            _ => self.name().to_owned(),
        }
    }

    /// Who must act.
    pub(crate) const fn actor(self) -> Actor {
        match self {
            Self::Asks | Self::Approve | Self::Plan | Self::OverBudget => Actor::Asked,
            Self::CanContinue | Self::Interrupted => Actor::Resumer,
            Self::Abandoned | Self::Failed => Actor::Repairer,
            Self::Working => Actor::Runner,
            Self::Limit { .. } | Self::Retry { .. } | Self::Waits => Actor::Others,
            Self::Paused | Self::Stopped | Self::Done => Actor::Nobody,
        }
    }

    /// Whether it has ended.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Failed | Self::Stopped | Self::Done)
    }

    /// Its place in lists, whatever its time.
    pub(crate) fn rank(self) -> usize {
        Self::ALL.iter().position(|state| state.name() == self.name()).unwrap_or(Self::ALL.len())
    }

    /// Whether a person must act.
    #[cfg(test)]
    pub(crate) const fn needs_person(self) -> bool {
        matches!(self.actor(), Actor::Asked | Actor::Resumer | Actor::Repairer)
    }

    /// The state in which an agent has ended, or was interrupted.
    pub(crate) fn at_end(state: &FrameState) -> Option<Self> {
        match state {
            FrameState::Done => Some(Self::Done),
            FrameState::Failed { .. } if state.was_stopped() => Some(Self::Stopped),
            FrameState::Failed { .. } => Some(Self::Failed),
            FrameState::Ready
            | FrameState::Running { .. }
            | FrameState::Waiting { .. }
            | FrameState::Cancelled
            | FrameState::Paused { .. } => None,
        }
    }

    /// The state of an agent that waits for this.
    pub(crate) fn blocked_by(what: &Blocking) -> Self {
        match what {
            Blocking::Question { .. } => Self::Asks,
            Blocking::Permission { .. } => Self::Approve,
            Blocking::Plan { .. } => Self::Plan,
            Blocking::Budget { .. } => Self::OverBudget,
            Blocking::UsageLimit { resets_at } => Self::Limit { until: *resets_at },
            Blocking::Retry { at, .. } => Self::Retry { at: *at },
            // Asking the agent is what continues it.
            Blocking::Agent => Self::CanContinue,
            Blocking::External { .. } | Blocking::Parallel { .. } | Blocking::ParallelTotal { .. } => Self::Waits,
            Blocking::Paused { .. } => Self::Paused,
        }
    }
}

impl Serialize for ShownState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
impl schemars::JsonSchema for ShownState {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ShownState".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = Self::ALL.map(Self::name);
        schemars::json_schema!({
            "description": "The state of a chain or an agent by who must act.",
            "type": "string",
            "enum": names,
        })
    }
}

impl Tree {
    /// The state of the whole chain. `is_abandoned`: whether an agent in it is recorded as running but has no runner.
    pub(crate) fn shown_state(&self, is_abandoned: bool, now: Timestamp) -> ShownState {
        let blockers = self.blockers(now);
        let nodes = self.parents_first();
        let is_running = nodes.iter().any(|node| matches!(node.state, FrameState::Running { .. }));
        let at_end = || self.get(self.top()).map_or(Some(ShownState::Done), |top| ShownState::at_end(&top.state));
        let top = if self.has_ended() { at_end() } else { None };
        let interrupted = || nodes.iter().any(|node| node.state == FrameState::Cancelled && self.is_awaited(node));
        let blocked = first(&blockers);
        match (blocked.filter(|state| state.actor() == Actor::Asked), top) {
            _ if is_abandoned => ShownState::Abandoned,
            (_, Some(ended)) if !is_running => ended,
            (Some(asks), _) => asks,
            _ if is_running => ShownState::Working,
            _ if interrupted() => ShownState::Interrupted,
            _ if self.can_continue(now) => ShownState::CanContinue,
            _ => blocked.unwrap_or(ShownState::Waits),
        }
    }

    /// The state of one agent. `is_abandoned`: whether it is recorded as running but has no runner.
    pub(crate) fn shown_state_of(&self, node: &Node, is_abandoned: bool, now: Timestamp) -> ShownState {
        let awaits_children = self.children_awaited_by(node) > 0;
        match &node.state {
            _ if is_abandoned => ShownState::Abandoned,
            FrameState::Running { .. } => first(&self.blockers_of(node, now)).unwrap_or(ShownState::Working),
            FrameState::Cancelled => ShownState::Interrupted,
            FrameState::Paused { .. } => ShownState::Paused,
            state => ShownState::at_end(state).unwrap_or_else(|| match first(&self.blockers_of(node, now)) {
                Some(state) if awaits_children => state.min(ShownState::Waits),
                Some(state) => state,
                None if self.can_run(node, &Attempted::default(), now) => ShownState::CanContinue,
                None if self.groups_to_end().contains(&node.id) => ShownState::CanContinue,
                None => ShownState::Waits,
            }),
        }
    }
}

/// The state that these cause.
fn first(blockers: &[Blocker]) -> Option<ShownState> {
    blockers.iter().map(|blocker| ShownState::blocked_by(&blocker.what)).min()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind, Wait};
    use crate::core::chain::limits::Limits;
    use crate::core::chain::tree::Whole;
    use crate::core::chain::tree::testing::{id, node, request};
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::{External, RequestKind, SpawnForm};
    use crate::core::steering::stop_order::{By, Stop, StopKind};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn waits() -> FrameState {
        FrameState::Waiting { wait: Wait::Requests }
    }

    fn running() -> FrameState {
        FrameState::Running { waited: None }
    }

    fn failed(kind: FailureKind) -> FrameState {
        FrameState::Failed { failure: Failure { kind, message: "boom".into() } }
    }

    fn ask() -> RequestKind {
        RequestKind::Ask(Form::text("When?"))
    }

    fn permission() -> RequestKind {
        RequestKind::Permission { tool: "Bash".into(), input: Value::Null, reason: None, place: None }
    }

    fn plan() -> RequestKind {
        RequestKind::Plan(ProposedPlan { text: None, file: None, modes: Vec::new() })
    }

    fn time() -> RequestKind {
        RequestKind::Wait(External::Time(at(60)))
    }

    /// A top that waits for a child in each of these states, which made these requests.
    fn chain(children: Vec<(FrameState, Vec<RequestKind>)>) -> Tree {
        let called = |child| RequestKind::Spawn { child, task: String::new(), form: SpawnForm::Call, json: false };
        let numbers = 2..2 + children.len() as u128;
        let mut nodes = vec![agent(1, waits(), numbers.clone().map(|n| called(id(n))).collect())];
        nodes.extend(numbers.zip(children).map(|(n, (state, kinds))| agent(n, state, kinds)));
        Tree::new(id(1), nodes)
    }

    fn agent(number: u128, state: FrameState, kinds: Vec<RequestKind>) -> Node {
        let parent = (number > 1).then(|| id(1));
        let requests = kinds.into_iter().map(|kind| request(id(number), kind)).collect();
        Node { requests, ..node(id(number), parent, state) }
    }

    /// The states of a chain with one agent, and of that agent.
    fn alone(state: FrameState, kinds: Vec<RequestKind>) -> [ShownState; 2] {
        both(&Tree::new(id(1), vec![agent(1, state, kinds)]), 1)
    }

    fn both(tree: &Tree, number: u128) -> [ShownState; 2] {
        [tree.shown_state(false, NOW), tree.shown_state_of(tree.get(id(number)).unwrap(), false, NOW)]
    }

    fn limited() -> FrameState {
        FrameState::Waiting { wait: Wait::UsageLimit { resets_at: at(99), tries: 0 } }
    }

    #[test]
    fn every_state_of_an_agent_says_who_must_act() {
        let retry = FrameState::Waiting { wait: Wait::Restart { tries: 1, why: "died".into() } };
        let ShownState::Retry { at: next } = alone(retry.clone(), vec![])[0] else { panic!("no retry") };
        assert!(next > NOW);
        for (state, kinds, expected) in [
            (waits(), vec![ask()], ShownState::Asks),
            (waits(), vec![permission()], ShownState::Approve),
            (waits(), vec![plan()], ShownState::Plan),
            (waits(), vec![time(), plan(), permission()], ShownState::Approve),
            (waits(), vec![time()], ShownState::Waits),
            (FrameState::Waiting { wait: Wait::AgentDecides }, vec![], ShownState::CanContinue),
            (waits(), vec![], ShownState::CanContinue),
            (FrameState::Ready, vec![], ShownState::CanContinue),
            (running(), vec![], ShownState::Working),
            (limited(), vec![], ShownState::Limit { until: at(99) }),
            (retry, vec![], ShownState::Retry { at: next }),
            (FrameState::Cancelled, vec![], ShownState::Interrupted),
            (FrameState::Done, vec![], ShownState::Done),
            (failed(FailureKind::Error), vec![], ShownState::Failed),
            (failed(FailureKind::Refused), vec![], ShownState::Failed),
            (failed(FailureKind::Unhandled), vec![], ShownState::Failed),
            (failed(FailureKind::Stopped), vec![], ShownState::Stopped),
        ] {
            assert_eq!(alone(state, kinds), [expected; 2]);
        }
        let tree = chain(vec![(running(), vec![])]);
        assert_eq!(tree.shown_state(true, NOW), ShownState::Abandoned);
        assert_eq!(tree.shown_state_of(tree.get(id(2)).unwrap(), true, NOW), ShownState::Abandoned);
    }

    #[test]
    fn a_paused_agent_and_a_spent_budget_wait_for_a_person() {
        let stop = Stop { how: StopKind::Pause, now: false, by: By::Person, reason: None, of: id(1), report: None };
        let paused = Node { stop: Some(stop), ..agent(1, FrameState::Paused { waited: None }, vec![]) };
        assert_eq!(both(&Tree::new(id(1), vec![paused]), 1), [ShownState::Paused; 2]);
        let limits = Limits { max_budget_usd: Some(1.0), ..Limits::default() };
        let spent = Whole { limits, spent_usd: 2.0, ..Whole::default() };
        let tree = Tree::new(id(1), vec![agent(1, FrameState::Ready, vec![])]).within(spent);
        assert_eq!(both(&tree, 1), [ShownState::OverBudget; 2]);
    }

    #[test]
    fn a_chain_needs_a_person_first_even_if_other_agents_work() {
        let of = |children| chain(children).shown_state(false, NOW);
        let asks = || (waits(), vec![ask()]);
        assert_eq!(of(vec![(running(), vec![]), asks()]), ShownState::Asks);
        assert_eq!(of(vec![(running(), vec![]), (limited(), vec![])]), ShownState::Working);
        assert_eq!(of(vec![(waits(), vec![]), asks()]), ShownState::Asks, "answering continues both");
        assert_eq!(of(vec![(waits(), vec![]), (waits(), vec![time()])]), ShownState::CanContinue);
        assert_eq!(of(vec![(FrameState::Cancelled, vec![]), (waits(), vec![time()])]), ShownState::Interrupted);
        assert_eq!(of(vec![(limited(), vec![]), (waits(), vec![time()])]), ShownState::Limit { until: at(99) });
        assert_eq!(of(vec![(failed(FailureKind::Error), vec![]), (waits(), vec![time()])]), ShownState::Waits);
        assert_eq!(of(vec![(failed(FailureKind::Stopped), vec![])]), ShownState::CanContinue, "its caller is told");
        assert_eq!(both(&chain(vec![asks()]), 1)[1], ShownState::Waits, "for its child");
    }

    #[test]
    fn whoever_needs_a_person_comes_first() {
        let needs: Vec<_> = ShownState::ALL.into_iter().map(ShownState::needs_person).collect();
        assert!(needs.is_sorted_by(|before, after| before >= after) && ShownState::ALL.is_sorted());
        let words = ShownState::ALL.map(|state| state.words(NOW, &TimeZone::UTC)).join(", ");
        insta::assert_snapshot!(words, @"asks, approve?, plan?, over budget, can continue, abandoned, interrupted, failed, working, limit until 00:00, retry at 00:00, waits, paused, stopped, done");
        let next_day = ShownState::Limit { until: at(100_000) };
        assert_eq!(next_day.words(NOW, &TimeZone::UTC), "limit until 1970-01-02 03:46");
    }
}
