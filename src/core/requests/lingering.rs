//! Whether a call stays open for its results, instead of being suspended at once: as locks do, it spins a little and then parks.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::requests::request::{External, Request, RequestKind, SpawnForm};

/// How long a call lingers, unless a person has set another time.
pub(crate) const LINGER: Duration = Duration::from_secs(20);

/// What a lingering call knows besides the records of its chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lingering<'a> {
    /// The agent that makes the call.
    pub frame: FrameId,
    /// The call.
    pub call: &'a str,
    /// Since when it lingers.
    pub since: Timestamp,
    /// Until when at most.
    pub until: Timestamp,
    /// Whether questions stand in front of a person.
    pub is_attended: bool,
}

impl Tree {
    /// Whether everything that the call waits for is expected soon, and no other agent needs its place.
    ///
    /// Every lingering call of the chain decides for itself, and all of them by the same records, so that only the one parks that has
    /// lingered longest.
    pub(crate) fn lingers(&self, call: Lingering<'_>, now: Timestamp) -> bool {
        if now >= call.until {
            return false;
        }
        let tree = self.with_lingering(call.frame, call.since);
        let Some(node) = tree.get(call.frame) else { return false };
        let of_call = |request: &&Request| request.call.as_deref() == Some(call.call);
        let open = || node.requests.iter().filter(of_call).filter(|request| !tree.is_over(request));
        node.stop.is_none() && open().all(|request| tree.is_near(request, call, now)) && !tree.needs_place(node, now)
    }

    fn with_lingering(&self, frame: FrameId, since: Timestamp) -> Self {
        let mut tree = self.clone();
        tree.node_mut(frame).into_iter().for_each(|node| node.lingers = node.lingers.or(Some(since)));
        tree
    }

    fn is_near(&self, request: &Request, call: Lingering<'_>, now: Timestamp) -> bool {
        match &request.kind {
            RequestKind::Ask(_) | RequestKind::Permission { .. } => call.is_attended,
            // A handoff returns nothing, and a plan is read for a while.
            RequestKind::Spawn { form: SpawnForm::Handoff, .. } | RequestKind::Plan(_) => false,
            RequestKind::Spawn { child, .. } => self.works(*child, now),
            RequestKind::Wait(wait) => self.comes_by(wait, call.until, now),
        }
    }

    /// Whether a wait probably ends by then.
    fn comes_by(&self, wait: &External, until: Timestamp, now: Timestamp) -> bool {
        match wait {
            External::Time(at) => *at <= until,
            External::Agent(agent) => self.get(agent.id).is_none_or(Node::is_over) || self.works(agent.id, now),
            External::Any(waits) => waits.iter().any(|wait| self.comes_by(wait, until, now)),
            External::All(waits) => waits.iter().all(|wait| self.comes_by(wait, until, now)),
            _ => false,
        }
    }

    /// Whether an agent works at or below `top`, or would if it had a place, or one has just ended, so that its group ends.
    fn works(&self, top: FrameId, now: Timestamp) -> bool {
        let (admission, ending) = (self.admission(now), self.frames_to_end());
        let mut below = vec![top];
        while let Some(node) = below.pop().and_then(|id| self.get(id)) {
            if matches!(node.state, FrameState::Running { .. }) || ending.contains(&node.id) {
                return true;
            }
            // One that has died is not started again in this run.
            let has_died = matches!(node.state, FrameState::Waiting { wait: Wait::Restart { .. } });
            if !has_died && self.can_run(node, &Attempted::default(), now) {
                let refused = admission.refuse(node);
                if matches!(refused, None | Some(NotAdmitted::Parallel { .. } | NotAdmitted::ParallelTotal { .. })) {
                    return true;
                }
            }
            below.extend(self.children(node.id));
        }
        false
    }

    /// Whether `node` has lingered longest of all, and an agent could run that finds no place.
    fn needs_place(&self, node: &Node, now: Timestamp) -> bool {
        let is_oldest =
            self.all().filter_map(|other| Some((other.lingers?, other.id))).min().map(|(_, id)| id) == Some(node.id);
        is_oldest && !self.runnable_and_ready(&Attempted::default(), now).1.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::limits::Limits;
    use crate::core::chain::tree::Whole;
    use crate::core::chain::tree::testing::{id, node, request};
    use crate::core::requests::question_form::Form;
    use crate::core::waits::conditions::AwaitedAgent;

    const RUNNING: FrameState = FrameState::Running { waited: None };
    const WAITING: FrameState = FrameState::Waiting { wait: Wait::Requests };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The agent that makes a call for this, and the agents below it.
    fn calling(kinds: Vec<RequestKind>, below: Vec<Node>, max_parallel: u32) -> Tree {
        let of_call = |kind| Request { call: Some("toolu_1".to_owned()), ..request(id(1), kind) };
        let caller = Node { requests: kinds.into_iter().map(of_call).collect(), ..node(id(1), None, RUNNING) };
        let limits = Limits { max_parallel, ..Limits::default() };
        Tree::new(id(1), std::iter::once(caller).chain(below).collect()).within(Whole { limits, ..Whole::default() })
    }

    fn spawn(child: u128, form: SpawnForm) -> RequestKind {
        RequestKind::Spawn { child: id(child), task: String::new(), form, json: false }
    }

    fn lingers(tree: &Tree) -> bool {
        let call = Lingering { frame: id(1), call: "toolu_1", since: at(0), until: at(20), is_attended: false };
        assert!(!tree.lingers(call, at(20)), "its time is up");
        tree.lingers(call, at(5))
    }

    #[test]
    fn a_call_lingers_while_its_child_can_work() {
        let with = |state| lingers(&calling(vec![spawn(2, SpawnForm::Call)], vec![node(id(2), Some(id(1)), state)], 4));
        assert!(with(FrameState::Ready) && with(RUNNING));
        assert!(with(FrameState::Done), "the result is there");
        assert!(!with(FrameState::Waiting { wait: Wait::AgentDecides }) || with(FrameState::Ready));
        let paused = FrameState::Paused { waited: None };
        assert!(!with(paused));
        let asks = Node {
            requests: vec![request(id(2), RequestKind::Ask(Form::text("When?")))],
            ..node(id(2), Some(id(1)), WAITING)
        };
        assert!(!lingers(&calling(vec![spawn(2, SpawnForm::Call)], vec![asks.clone()], 4)), "the child has paused");
        let below = node(id(3), Some(id(2)), RUNNING);
        let waits =
            Node { requests: vec![request(id(2), spawn(3, SpawnForm::Call))], ..node(id(2), Some(id(1)), WAITING) };
        assert!(lingers(&calling(vec![spawn(2, SpawnForm::Call)], vec![waits, below], 4)), "somebody works below it");
        assert!(
            !lingers(&calling(vec![spawn(2, SpawnForm::Handoff)], vec![node(id(2), Some(id(1)), RUNNING)], 4)),
            "a handoff"
        );
        let both = calling(
            vec![spawn(2, SpawnForm::Call), RequestKind::Ask(Form::text("When?"))],
            vec![node(id(2), Some(id(1)), RUNNING)],
            4,
        );
        assert!(!lingers(&both), "a person is asked, too");
    }

    #[test]
    fn a_call_lingers_until_the_last_reply_has_ended_its_group_or_who_handed_off_to_it() {
        let groups = |state| {
            let group = Node { is_group: true, ..node(id(2), Some(id(1)), WAITING) };
            let members = [node(id(3), Some(id(2)), FrameState::Done), node(id(4), Some(id(2)), state)];
            let below = std::iter::once(group).chain(members).collect();
            lingers(&calling(vec![spawn(2, SpawnForm::Call)], below, 4))
        };
        assert!(groups(RUNNING) && groups(FrameState::Done));
        assert!(!groups(FrameState::Paused { waited: None }));
        let handoff = |state| {
            let requests = vec![request(id(2), spawn(3, SpawnForm::Handoff))];
            let first = Node { requests, ..node(id(2), Some(id(1)), WAITING) };
            let successor = Node { has_outcome: true, ..node(id(3), Some(id(2)), state) };
            lingers(&calling(vec![spawn(2, SpawnForm::Call)], vec![first, successor], 4))
        };
        assert!(handoff(RUNNING) && handoff(FrameState::Done));
    }

    #[test]
    fn questions_and_an_approval_linger_while_they_stand_in_front_of_a_person() {
        let ask = |question: &str| RequestKind::Ask(Form::text(question));
        let (tool, input) = ("Bash".to_owned(), serde_json::Value::Null);
        let approval = RequestKind::Permission { tool, input, reason: None, place: None };
        for kinds in [vec![ask("When?")], vec![ask("When?"), ask("Where?")], vec![approval]] {
            let tree = calling(kinds, Vec::new(), 4);
            let asks = |is_attended| {
                let call = Lingering { frame: id(1), call: "toolu_1", since: at(0), until: at(20), is_attended };
                tree.lingers(call, at(5))
            };
            assert!(asks(true) && !asks(false));
        }
    }

    #[test]
    fn a_call_that_joins_lingers_while_the_other_agent_works() {
        let agent = |child: u128| External::Agent(AwaitedAgent { id: id(child), task: String::new() });
        let joins = |wait: External, state: FrameState| {
            let caller = vec![RequestKind::Wait(wait), spawn(2, SpawnForm::Background)];
            let mut tree = calling(caller, vec![node(id(2), Some(id(1)), state)], 4);
            tree.node_mut(id(1)).unwrap().requests[1].call = None;
            lingers(&tree)
        };
        assert!(joins(agent(2), RUNNING) && joins(agent(2), FrameState::Ready) && joins(agent(2), FrameState::Done));
        assert!(!joins(agent(2), FrameState::Paused { waited: None }));
        assert!(joins(External::All(vec![agent(2), External::Time(at(9))]), RUNNING));
        assert!(!joins(External::All(vec![agent(2), External::Time(at(99))]), RUNNING));
        assert!(joins(External::Any(vec![agent(2), External::Time(at(99))]), RUNNING));
    }

    #[test]
    fn a_time_is_near_if_it_comes_before_the_call_parks() {
        let until = |second| lingers(&calling(vec![RequestKind::Wait(External::Time(at(second)))], Vec::new(), 4));
        assert!(until(19) && until(20) && !until(21));
    }

    proptest! {
        /// If an agent could run and finds no place although calls linger, exactly one of them parks; otherwise none does.
        #[test]
        fn no_limit_blocks_a_chain(
            since in proptest::collection::vec(0i64..4, 1..6), free in 0u32..3, is_ready in any::<bool>(),
        ) {
            let count = since.len();
            let name = |level: usize| id(level as u128 + 1);
            let mut nodes = Vec::new();
            for (level, since) in since.iter().enumerate() {
                let calls = vec![Request {
                    call: Some("toolu_1".to_owned()),
                    ..request(name(level), spawn(level as u128 + 2, SpawnForm::Call))
                }];
                let parent = level.checked_sub(1).map(name);
                nodes.push(Node { requests: calls, lingers: Some(at(*since)), ..node(name(level), parent, RUNNING) });
            }
            let last = if is_ready { FrameState::Ready } else { RUNNING };
            nodes.push(node(name(count), Some(name(count - 1)), last));
            let running = count as u32 + u32::from(!is_ready);
            let limits = Limits { max_parallel: running + free, ..Limits::default() };
            let tree = Tree::new(id(1), nodes).within(Whole { limits, ..Whole::default() });
            let parks = |level: usize| {
                let since = at(since[level]);
                !tree.lingers(Lingering { frame: name(level), call: "toolu_1", since, until: at(20), is_attended: false }, at(5))
            };
            let parking = (0..count).filter(|level| parks(*level)).count();
            prop_assert_eq!(parking, usize::from(is_ready && free == 0));
        }
    }

    #[test]
    fn who_has_lingered_longest_makes_place() {
        let tree = |second_since, max_parallel| {
            let second = Node {
                lingers: Some(at(second_since)),
                requests: vec![request(id(2), spawn(3, SpawnForm::Call))],
                ..node(id(2), Some(id(1)), RUNNING)
            };
            calling(
                vec![spawn(2, SpawnForm::Call)],
                vec![second, node(id(3), Some(id(2)), FrameState::Ready)],
                max_parallel,
            )
        };
        assert!(lingers(&tree(1, 3)));
        assert!(!lingers(&tree(1, 2)));
        assert!(lingers(&tree(-1, 2)), "the other one parks");
        let alone = calling(vec![spawn(2, SpawnForm::Call)], vec![node(id(2), Some(id(1)), FrameState::Ready)], 1);
        assert!(!lingers(&alone));
    }
}
