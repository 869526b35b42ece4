//! Which frames of a tree can run next.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use crate::core::chain::backoff;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::requests::request;
use crate::core::steering::stop_order::StopKind;

/// What happened to frames in this run of the program, so that it does not try the same thing twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempted {
    begun: HashSet<FrameId>,
    /// Since when.
    skipped: HashMap<FrameId, Timestamp>,
}

impl Tree {
    /// The frames whose agents can run now, deepest first, as many as the limits allow besides those already running.
    pub(crate) fn runnable(&self, attempted: &Attempted, now: Timestamp) -> Vec<FrameId> {
        self.runnable_and_ready(attempted, now).0
    }

    /// The same, and those that could run if the limits were higher.
    pub(crate) fn runnable_and_ready(&self, attempted: &Attempted, now: Timestamp) -> (Vec<FrameId>, Vec<FrameId>) {
        let admission = self.admission(now);
        let wanted = self.leaves_up().into_iter().filter(|node| self.can_run(node, attempted, now));
        let mut wanted = wanted.map(|node| (node.id, admission.refuse(node)));
        let mut runnable = Vec::new();
        while runnable.len() < admission.room() {
            let Some((id, refused)) = wanted.next() else { break };
            runnable.extend(refused.is_none().then_some(id));
        }
        (runnable, wanted.map(|(id, _)| id).collect())
    }

    /// Whether a new `resume` would start an agent, or end a frame without one.
    pub(crate) fn can_continue(&self, now: Timestamp) -> bool {
        !self.runnable(&Attempted::default(), now).is_empty()
            || !self.to_try_again().is_empty()
            || self.has_frames_to_end()
    }

    /// The frames that a new `resume` retries: those that were interrupted, and those that failed as long as no parent has been
    /// told or can be. A parent that still waits for others is told when these have ended; until then, a poll must not cost an
    /// attempt.
    pub(crate) fn to_try_again(&self) -> Vec<&Node> {
        self.leaves_up()
            .into_iter()
            .filter(|node| self.is_awaited(node) || self.was_interrupted_with_caller(node))
            .filter(|node| match node.state {
                FrameState::Cancelled => true,
                FrameState::Failed { .. } => !node.state.was_stopped() && !self.parent_waits_for_others(node),
                _ => false,
            })
            .collect()
    }

    /// The frames that only wait for a retry after a failed attempt. A person who resumes the top need not wait for it: they may
    /// have fixed the cause.
    pub(crate) fn to_restart(&self) -> Vec<&Node> {
        let backs_off = |node: &&Node| matches!(node.state, FrameState::Waiting { wait: Wait::Restart { .. } });
        let can_start = |node: &&Node| self.is_awaited(node) && (node.wants_summary || !self.has_open_requests(node));
        self.leaves_up().into_iter().filter(backs_off).filter(can_start).collect()
    }

    /// The frames that a person continues by resuming the top, parents first: those that were paused with it, or with one above
    /// it. Agents that were paused by an id further down are continued by that id, so that a poll of the chain does not affect
    /// them.
    pub(crate) fn to_continue(&self) -> Vec<FrameId> {
        let is_below = |of: FrameId| of != self.top() && self.parents_first().iter().any(|node| node.id == of);
        let is_paused = |node: &&Node| {
            let of = node.stop.as_ref().map_or(node.id, |stop| stop.of);
            let will_be_over = node.stop.as_ref().is_some_and(|stop| stop.how == StopKind::Stop);
            matches!(node.state, FrameState::Paused { .. }) && !will_be_over && !is_below(of)
        };
        self.parents_first().into_iter().filter(is_paused).map(|node| node.id).collect()
    }

    /// Whether a frame is ready for another attempt, which may still be [denied
    /// admission](crate::core::chain::admission).
    pub(crate) fn can_run(&self, node: &Node, attempted: &Attempted, now: Timestamp) -> bool {
        if node.is_group || attempted.skips(node, now) || !self.is_awaited(node) {
            return false;
        }
        match &node.state {
            // What it waits for does not matter to a summary.
            FrameState::Ready if node.wants_summary => true,
            FrameState::Waiting { wait } if node.wants_summary => wait.paused_until(node.since, now).is_none(),
            FrameState::Ready => !self.has_open_requests(node),
            FrameState::Waiting { wait } => match wait {
                Wait::Requests if request::are_jobs_to_come(&node.requests) || self.is_handed_off(node) => false,
                Wait::Requests | Wait::UsageLimit { .. } | Wait::Retry { .. } | Wait::Restart { .. } => {
                    wait.paused_until(node.since, now).is_none() && !self.has_open_requests(node)
                }
                Wait::AgentDecides => !attempted.begun.contains(&node.id),
            },
            FrameState::Running { .. }
            | FrameState::Done
            | FrameState::Failed { .. }
            | FrameState::Cancelled
            | FrameState::Paused { .. } => false,
        }
    }

    /// Whether a frame's error concerns the caller that runs the tree. If the parent was told about a failure, the parent
    /// handles it, unless a person had continued the frame; a frame that continued no longer has an error.
    pub(crate) fn concerns_the_caller(&self, frame: FrameId) -> bool {
        self.get(frame).is_some_and(|node| match node.state {
            FrameState::Done => false,
            FrameState::Failed { .. } => self.is_awaited(node) || node.has_outcome,
            FrameState::Ready
            | FrameState::Running { .. }
            | FrameState::Waiting { .. }
            | FrameState::Cancelled
            | FrameState::Paused { .. } => true,
        })
    }

    /// Whether it worked in the background of an agent that is retried, too.
    fn was_interrupted_with_caller(&self, node: &Node) -> bool {
        self.background_caller(node).is_some_and(|caller| caller.state == FrameState::Cancelled)
    }

    /// The agent that has called this one in the background, alone or with others.
    fn background_caller(&self, node: &Node) -> Option<&Node> {
        let above = |node: &Node| node.parent.filter(|_| node.id != self.top()).and_then(|parent| self.get(parent));
        let parent = above(node)?;
        let (called, caller) = if parent.is_group { (parent, above(parent)?) } else { (node, parent) };
        Some(caller).filter(|caller| caller.has_in_background(called.id))
    }

    /// Whether its parent will be told, but not yet.
    fn parent_waits_for_others(&self, node: &Node) -> bool {
        let parent = node.parent.filter(|_| node.id != self.top()).and_then(|parent| self.get(parent));
        let has_to_join = |caller: &Node| !caller.state.waits_for_requests();
        parent.is_some_and(|parent| self.has_open_requests(parent))
            || self.background_caller(node).is_some_and(has_to_join)
    }
}

impl Attempted {
    /// An attempt of this frame was made. A wait that only its agent can judge is not checked again in this run.
    pub(crate) fn begin(&mut self, frame: FrameId) {
        self.begun.insert(frame);
    }

    /// An attempt of this frame changed nothing, and another one would change nothing again, until its pause has ended or another
    /// process has changed it.
    pub(crate) fn skip(&mut self, frame: FrameId, now: Timestamp) {
        self.skipped.insert(frame, now);
    }

    fn skips(&self, node: &Node, now: Timestamp) -> bool {
        let is_as_it_was = self.skipped.get(&node.id).is_some_and(|skipped| node.since <= *skipped);
        is_as_it_was && self.skipped_until(node).is_none_or(|until| now < until)
    }

    /// When the pause of a skipped frame ends. Its time may have been past when it began.
    pub(crate) fn skipped_until(&self, node: &Node) -> Option<Timestamp> {
        let skipped = self.skipped.get(&node.id)?;
        let FrameState::Waiting { wait } = &node.state else { return None };
        let shortest = skipped.saturating_add(backoff::until_next_try(1)).unwrap_or(*skipped);
        Some(wait.pause_ends(node.since)?.max(shortest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind};
    use crate::core::chain::tree::testing::{self, id, request};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::{Request, RequestKind, SpawnForm};
    use crate::core::requests::request_state::RequestState;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn waiting() -> FrameState {
        FrameState::Waiting { wait: Wait::Requests }
    }

    fn failed() -> FrameState {
        FrameState::Failed { failure: Failure { kind: FailureKind::Error, message: String::new() } }
    }

    fn node(n: u128, parent: Option<u128>, state: FrameState, kinds: Vec<(RequestKind, bool)>) -> Node {
        let asked = |(kind, resolved)| {
            let state = if resolved { RequestState::Resolved { used_by: None } } else { RequestState::Open };
            Request { state, ..request(id(n), kind) }
        };
        let requests = kinds.into_iter().map(asked).collect();
        Node { requests, ..testing::node(id(n), parent.map(id), state) }
    }

    fn spawn(child: u128) -> (RequestKind, bool) {
        (RequestKind::Spawn { child: id(child), task: String::new(), form: SpawnForm::Call, json: false }, false)
    }

    fn ask(answered: bool) -> (RequestKind, bool) {
        (RequestKind::Ask(Form::text("When?")), answered)
    }

    fn chain(leaf: FrameState, kinds: Vec<(RequestKind, bool)>) -> Tree {
        let nodes = vec![
            node(1, None, waiting(), vec![spawn(2)]),
            node(2, Some(1), waiting(), vec![spawn(3)]),
            node(3, Some(2), leaf, kinds),
        ];
        Tree::new(id(1), nodes)
    }

    fn runnable(tree: &Tree) -> Vec<FrameId> {
        tree.runnable(&Attempted::default(), NOW)
    }

    #[test]
    fn a_chain_runs_from_its_leaf_up() {
        assert_eq!(runnable(&chain(FrameState::Ready, vec![])), [id(3)]);
        assert_eq!(runnable(&chain(waiting(), vec![ask(false)])), []);
        assert_eq!(runnable(&chain(waiting(), vec![ask(true)])), [id(3)]);
        assert_eq!(runnable(&chain(FrameState::Done, vec![])), [id(2)]);
        assert_eq!(runnable(&chain(failed(), vec![])), [id(2)]);
        assert_eq!(runnable(&chain(FrameState::Cancelled, vec![])), []);
        assert_eq!(runnable(&chain(FrameState::Running { waited: None }, vec![])), []);
    }

    #[test]
    fn a_summary_is_written_at_once_unless_its_frame_pauses() {
        let resets_at = Timestamp::from_second(100).unwrap();
        let limited = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
        let decides = FrameState::Waiting { wait: Wait::AgentDecides };
        for (state, runs) in [
            (FrameState::Ready, true),
            (waiting(), true),
            (decides, true),
            (limited, false),
            (failed(), false),
            (FrameState::Done, false),
            (FrameState::Cancelled, false),
            (FrameState::Running { waited: None }, false),
        ] {
            let asking = Node { wants_summary: true, ..node(3, None, state.clone(), vec![ask(false)]) };
            let mut tree = Tree::new(id(3), vec![asking]);
            assert_eq!(!runnable(&tree).is_empty(), runs, "{state:?}");
            let mut attempted = Attempted::default();
            attempted.begin(id(3));
            assert_eq!(!tree.runnable(&attempted, NOW).is_empty(), runs, "{state:?}, again");
            tree.node_mut(id(3)).unwrap().wants_summary = false;
            assert!(
                state == FrameState::Waiting { wait: Wait::AgentDecides } || runnable(&tree).is_empty(),
                "{state:?}"
            );
        }
    }

    #[test]
    fn every_request_of_a_frame_must_be_over() {
        assert_eq!(runnable(&chain(waiting(), vec![ask(true), ask(false)])), []);
        assert_eq!(runnable(&chain(waiting(), vec![ask(true), ask(true)])), [id(3)]);
    }

    #[test]
    fn a_child_starts_when_its_parents_turn_is_over() {
        let tree = |parent| {
            Tree::new(id(1), vec![node(1, None, parent, vec![spawn(2)]), node(2, Some(1), FrameState::Ready, vec![])])
        };
        assert_eq!(runnable(&tree(FrameState::Running { waited: None })), []);
        assert_eq!(runnable(&tree(waiting())), [id(2)]);
        assert_eq!(runnable(&tree(failed())), []);
    }

    #[test]
    fn an_agent_in_the_background_runs_beside_its_caller_and_does_not_delay_it() {
        let beside = || {
            (RequestKind::Spawn { child: id(2), task: String::new(), form: SpawnForm::Background, json: false }, false)
        };
        let runs = |caller: FrameState, others: Vec<(RequestKind, bool)>, state: FrameState| {
            let requests = std::iter::once(beside()).chain(others).collect();
            runnable(&Tree::new(id(1), vec![node(1, None, caller, requests), node(2, Some(1), state, vec![])]))
        };
        const WORKS: FrameState = FrameState::Running { waited: None };
        assert_eq!(runs(WORKS, vec![], FrameState::Ready), [id(2)]);
        assert_eq!(runs(FrameState::Ready, vec![], WORKS), [id(1)], "its turn goes on");
        assert_eq!(runs(waiting(), vec![], WORKS), [], "it has ended its turn");
        assert_eq!(runs(waiting(), vec![], FrameState::Done), [id(1)]);
        assert_eq!(runs(waiting(), vec![ask(false)], FrameState::Done), []);
        assert_eq!(runs(waiting(), vec![ask(true)], WORKS), [id(1)]);
        assert_eq!(runs(failed(), vec![], FrameState::Ready), [], "its child has to stop");
    }

    #[test]
    fn a_usage_limit_is_over_when_its_time_has_come() {
        let resets_at = Timestamp::from_second(100).unwrap();
        let tree = chain(FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } }, vec![]);
        assert_eq!(tree.runnable(&Attempted::default(), Timestamp::from_second(99).unwrap()), []);
        assert_eq!(tree.runnable(&Attempted::default(), resets_at), [id(3)]);
    }

    #[test]
    fn what_the_agent_decides_is_asked_once_a_run() {
        let tree = chain(FrameState::Waiting { wait: Wait::AgentDecides }, vec![]);
        assert_eq!(runnable(&tree), [id(3)]);
        let mut attempted = Attempted::default();
        attempted.begin(id(3));
        assert_eq!(tree.runnable(&attempted, NOW), []);
    }

    #[test]
    fn a_skipped_frame_does_not_run_until_another_process_has_changed_it() {
        let skipped_at = |second| {
            let mut attempted = Attempted::default();
            attempted.skip(id(3), Timestamp::from_second(second).unwrap());
            chain(FrameState::Ready, vec![]).runnable(&attempted, NOW)
        };
        assert_eq!((skipped_at(0), skipped_at(-1)), (vec![], vec![id(3)]));
    }

    #[test]
    fn a_skipped_frame_runs_again_after_its_pause_but_never_at_once() {
        let runs = |resets_at, now| {
            let mut attempted = Attempted::default();
            attempted.skip(id(3), NOW);
            let resets_at = Timestamp::from_second(resets_at).unwrap();
            let limited = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
            !chain(limited, vec![]).runnable(&attempted, Timestamp::from_second(now).unwrap()).is_empty()
        };
        assert_eq!([runs(100, 99), runs(100, 100)], [false, true]);
        assert_eq!([runs(-9, 0), runs(-9, 29), runs(-9, 30)], [false, false, true]);
    }

    #[test]
    fn a_failure_is_tried_again_until_the_parent_knows_of_it() {
        let names = |tree: &Tree| tree.to_try_again().iter().map(|node| node.id).collect::<Vec<_>>();
        assert_eq!(names(&chain(failed(), vec![])), [id(3)]);
        let tree =
            Tree::new(id(1), vec![node(1, None, waiting(), vec![ask(false)]), node(2, Some(1), failed(), vec![])]);
        assert_eq!(names(&tree), []);
        assert_eq!(names(&Tree::new(id(1), vec![node(1, None, FrameState::Cancelled, vec![])])), [id(1)]);
        let beside = |state| {
            let root = node(1, None, waiting(), vec![spawn(2), spawn(3)]);
            Tree::new(id(1), vec![root, node(2, Some(1), state, vec![]), node(3, Some(1), waiting(), vec![ask(false)])])
        };
        let interrupted = |form| {
            let kind = RequestKind::Spawn { child: id(2), task: String::new(), form, json: false };
            let root = node(1, None, FrameState::Cancelled, vec![(kind, false)]);
            names(&Tree::new(id(1), vec![root, node(2, Some(1), FrameState::Cancelled, vec![])]))
        };
        assert_eq!(interrupted(SpawnForm::Background), [id(2), id(1)]);
        assert_eq!(interrupted(SpawnForm::Call), [id(1)]);
        assert_eq!(names(&beside(failed())), []);
        assert_eq!(names(&beside(FrameState::Cancelled)), [id(2)]);
    }

    #[test]
    fn a_damaged_tree_runs_what_can_be_reached() {
        let cycle = Tree::new(
            id(1),
            vec![node(1, Some(2), waiting(), vec![spawn(2)]), node(2, Some(1), waiting(), vec![spawn(1)])],
        );
        assert_eq!(runnable(&cycle), []);
        let gone = Tree::new(id(1), vec![node(1, None, waiting(), vec![spawn(9)])]);
        assert_eq!(runnable(&gone), [id(1)]);
    }

    #[test]
    fn a_failure_concerns_the_caller_as_long_as_no_parent_knows_of_it() {
        let leaf = |state| chain(state, vec![]);
        for state in
            [failed(), FrameState::Ready, FrameState::Cancelled, FrameState::Running { waited: None }, waiting()]
        {
            assert!(leaf(state.clone()).concerns_the_caller(id(3)), "{state:?}");
        }
        assert!(!leaf(FrameState::Done).concerns_the_caller(id(3)));
        assert!(!leaf(failed()).concerns_the_caller(id(9)));
        let tree =
            Tree::new(id(1), vec![node(1, None, waiting(), vec![ask(false)]), node(2, Some(1), failed(), vec![])]);
        assert!(!tree.concerns_the_caller(id(2)));
        assert!(Tree::new(id(2), vec![node(2, Some(1), failed(), vec![])]).concerns_the_caller(id(2)));
    }
}
