//! A tree of frames, and which of them can run next.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use crate::core::chain::admission::Whole;
use crate::core::chain::state::{FrameState, Wait};
use crate::core::id::FrameId;
use crate::core::requests::request::{self, Request, Wish};

/// A frame and all frames below it.
#[derive(Clone, Debug)]
pub struct Tree {
    top: FrameId,
    nodes: HashMap<FrameId, Node>,
    children: HashMap<FrameId, Vec<FrameId>>,
    whole: Whole,
}

/// What the tree needs to know of a frame.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id.
    pub id: FrameId,
    /// Its parent; the parent of the top need not be in the tree.
    pub parent: Option<FrameId>,
    /// Its task, as a list shows it.
    pub title: String,
    /// Its state.
    pub state: FrameState,
    /// Since when it is in that state.
    pub since: Timestamp,
    /// Whether it has a checkpoint.
    pub kept: bool,
    /// Whether it is a group, which has no agent and waits for its children.
    pub is_group: bool,
    /// The requests whose results it has not been given.
    pub requests: Vec<Request>,
}

/// What happened to frames in this run of the program, which keeps it from trying the same thing twice.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    attempted: HashSet<FrameId>,
    benched: HashSet<FrameId>,
}

impl Tree {
    /// A tree of `nodes`, in the order in which they were made. Nodes that cannot be reached from `top` are left out of
    /// every answer, so a damaged tree (a missing parent, a cycle) does no harm.
    #[must_use]
    pub fn new(top: FrameId, nodes: Vec<Node>) -> Self {
        let mut children: HashMap<FrameId, Vec<FrameId>> = HashMap::new();
        for node in &nodes {
            if let Some(parent) = node.parent.filter(|_| node.id != top) {
                children.entry(parent).or_default().push(node.id);
            }
        }
        let nodes = nodes.into_iter().map(|node| (node.id, node)).collect();
        Self { top, nodes, children, whole: Whole::default() }
    }

    /// The same tree as a part of this whole.
    #[must_use]
    pub fn within(self, whole: Whole) -> Self {
        Self { whole, ..self }
    }

    /// What is true of the whole tree.
    #[must_use]
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    /// The frames of the whole tree, in no order: also those that are not below the top.
    pub fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The frame at the top.
    #[must_use]
    pub fn top(&self) -> FrameId {
        self.top
    }

    /// One frame.
    #[must_use]
    pub fn get(&self, id: FrameId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The children of a frame, in the order in which they were asked for.
    #[must_use]
    pub fn children(&self, id: FrameId) -> &[FrameId] {
        self.children.get(&id).map_or(&[], Vec::as_slice)
    }

    /// All frames, each after the frames below it.
    #[must_use]
    pub fn leaves_up(&self) -> Vec<&Node> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = HashSet::new();
        let mut stack = vec![(self.top, false)];
        while let Some((id, below_done)) = stack.pop() {
            if below_done {
                order.extend(self.get(id));
            } else if seen.insert(id) {
                stack.push((id, true));
                stack.extend(self.children(id).iter().rev().map(|child| (*child, false)));
            }
        }
        order
    }

    /// All frames, each before the frames below it, siblings in order.
    #[must_use]
    pub fn parents_first(&self) -> Vec<&Node> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = HashSet::new();
        let mut stack = vec![self.top];
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                order.extend(self.get(id));
                stack.extend(self.children(id).iter().rev());
            }
        }
        order
    }

    /// The frames whose agents can run now, the deepest first, as many as may run beside those that do.
    #[must_use]
    pub fn runnable(&self, tried: &Tried, now: Timestamp) -> Vec<FrameId> {
        let holds = self.holds(now);
        let wanted = self.leaves_up().into_iter().filter(|node| self.can_run(node, tried, now));
        wanted.filter(|node| holds.on(node).is_none()).take(holds.room()).map(|node| node.id).collect()
    }

    /// The frames that a new `resume` tries again: those that were stopped, and those that failed as long as nobody has
    /// been told and nobody can be. A parent that still waits for others will be told when they are over; until then, a
    /// poll must not cost an attempt.
    #[must_use]
    pub fn to_try_again(&self) -> Vec<&Node> {
        self.leaves_up()
            .into_iter()
            .filter(|node| self.is_awaited(node))
            .filter(|node| match node.state {
                FrameState::Cancelled => true,
                FrameState::Failed { .. } => !self.parent_waits_for_others(node),
                _ => false,
            })
            .collect()
    }

    /// A frame is awaited when it is the top, or when its parent has ended its turn and still wants its reply. A group wants
    /// its members as soon as it is awaited itself.
    #[must_use]
    pub fn is_awaited(&self, node: &Node) -> bool {
        if node.id == self.top {
            return true;
        }
        let Some(parent) = self.parent_that_waits(node) else { return false };
        if parent.is_group { parent.id == self.top || self.is_requested(parent) } else { self.is_requested(node) }
    }

    /// Whether everything that a request asked for is there.
    #[must_use]
    pub fn is_over(&self, request: &Request) -> bool {
        match &request.wish {
            // A child that is gone will never reply: the parent is told so.
            Wish::Spawn { child, .. } => self.get(*child).is_none_or(|child| child.state.is_over()),
            Wish::Ask { .. } | Wish::Permission { .. } | Wish::Plan(_) | Wish::Wait(_) => request.settled,
        }
    }

    /// Whether a request of this frame is still without a result that its agent needs, or a member of this group.
    #[must_use]
    pub fn has_open_requests(&self, node: &Node) -> bool {
        let is_missing = |request: &Request| !self.is_over(request) && !request.wish.is_job();
        node.requests.iter().any(is_missing) || self.open_members(node) > 0
    }

    /// How many children a waiting frame still waits for.
    #[must_use]
    pub fn children_awaited_by(&self, node: &Node) -> usize {
        let open = |request: &&Request| matches!(request.wish, Wish::Spawn { .. }) && !self.is_over(request);
        match node.state {
            FrameState::Waiting { .. } => node.requests.iter().filter(open).count() + self.open_members(node),
            _ => 0,
        }
    }

    fn parent_that_waits(&self, node: &Node) -> Option<&Node> {
        let parent = node.parent.and_then(|parent| self.get(parent));
        parent.filter(|parent| matches!(parent.state, FrameState::Waiting { .. } | FrameState::Ready))
    }

    /// Whether the agent of its parent waits for this frame.
    fn is_requested(&self, node: &Node) -> bool {
        let wanted = |request: &Request| matches!(request.wish, Wish::Spawn { child, .. } if child == node.id);
        self.parent_that_waits(node).is_some_and(|parent| parent.requests.iter().any(wanted))
    }

    /// Whether nothing is missing for another attempt of a frame, which may still be [held](crate::core::chain::admission).
    #[must_use]
    pub fn can_run(&self, node: &Node, tried: &Tried, now: Timestamp) -> bool {
        if node.is_group || tried.benched.contains(&node.id) || !self.is_awaited(node) {
            return false;
        }
        match &node.state {
            FrameState::Ready => !self.has_open_requests(node),
            FrameState::Waiting { wait } => match wait {
                Wait::Requests if request::are_jobs_to_come(&node.requests) => false,
                Wait::Requests | Wait::UsageLimit { .. } | Wait::Retry { .. } => {
                    wait.paused_until(node.since, now).is_none() && !self.has_open_requests(node)
                }
                Wait::AgentDecides => !tried.attempted.contains(&node.id),
            },
            FrameState::Running { .. } | FrameState::Done | FrameState::Failed { .. } | FrameState::Cancelled => false,
        }
    }

    fn parent_waits_for_others(&self, node: &Node) -> bool {
        let parent = node.parent.filter(|_| node.id != self.top).and_then(|parent| self.get(parent));
        parent.is_some_and(|parent| self.has_open_requests(parent))
    }
}

impl Tried {
    /// An attempt of this frame was made. What only its agent can judge is not asked again in this run.
    pub fn attempted(&mut self, frame: FrameId) {
        self.attempted.insert(frame);
    }

    /// This frame cannot run in this run of the program: an attempt changed nothing, or another process runs it.
    pub fn bench(&mut self, frame: FrameId) {
        self.benched.insert(frame);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::core::chain::state::{Failure, FailureKind};
    use crate::core::id::AttemptId;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn id(n: u128) -> FrameId {
        FrameId(Uuid::from_u128(n))
    }

    fn waiting() -> FrameState {
        FrameState::Waiting { wait: Wait::Requests }
    }

    fn failed() -> FrameState {
        FrameState::Failed { failure: Failure { kind: FailureKind::Error, message: String::new() } }
    }

    fn node(n: u128, parent: Option<u128>, state: FrameState, wishes: Vec<(Wish, bool)>) -> Node {
        let request = |(wish, settled)| Request {
            id: crate::core::id::RequestId::random(),
            frame: id(n),
            attempt: AttemptId::random(),
            call: None,
            wish,
            settled,
            made: NOW,
        };
        let requests = wishes.into_iter().map(request).collect();
        let title = String::new();
        Node { id: id(n), parent: parent.map(id), title, state, since: NOW, kept: true, is_group: false, requests }
    }

    fn spawn(child: u128) -> (Wish, bool) {
        (Wish::Spawn { child: id(child), task: String::new() }, false)
    }

    fn ask(answered: bool) -> (Wish, bool) {
        (Wish::Ask { question: "When?".into(), choices: None }, answered)
    }

    fn chain(leaf: FrameState, wishes: Vec<(Wish, bool)>) -> Tree {
        let nodes = vec![
            node(1, None, waiting(), vec![spawn(2)]),
            node(2, Some(1), waiting(), vec![spawn(3)]),
            node(3, Some(2), leaf, wishes),
        ];
        Tree::new(id(1), nodes)
    }

    fn runnable(tree: &Tree) -> Vec<FrameId> {
        tree.runnable(&Tried::default(), NOW)
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
    fn a_usage_limit_is_over_when_its_time_has_come() {
        let resets_at = Timestamp::from_second(100).unwrap();
        let tree = chain(FrameState::Waiting { wait: Wait::UsageLimit { resets_at } }, vec![]);
        assert_eq!(tree.runnable(&Tried::default(), Timestamp::from_second(99).unwrap()), []);
        assert_eq!(tree.runnable(&Tried::default(), resets_at), [id(3)]);
    }

    #[test]
    fn what_the_agent_decides_is_asked_once_a_run() {
        let tree = chain(FrameState::Waiting { wait: Wait::AgentDecides }, vec![]);
        assert_eq!(runnable(&tree), [id(3)]);
        let mut tried = Tried::default();
        tried.attempted(id(3));
        assert_eq!(tree.runnable(&tried, NOW), []);
    }

    #[test]
    fn a_benched_frame_does_not_run() {
        let mut tried = Tried::default();
        tried.bench(id(3));
        assert_eq!(chain(FrameState::Ready, vec![]).runnable(&tried, NOW), []);
    }

    #[test]
    fn a_failure_is_tried_again_until_the_parent_knows_of_it() {
        let names = |tree: &Tree| tree.to_try_again().iter().map(|node| node.id).collect::<Vec<_>>();
        assert_eq!(names(&chain(failed(), vec![])), [id(3)]);
        let told =
            Tree::new(id(1), vec![node(1, None, waiting(), vec![ask(false)]), node(2, Some(1), failed(), vec![])]);
        assert_eq!(names(&told), []);
        assert_eq!(names(&Tree::new(id(1), vec![node(1, None, FrameState::Cancelled, vec![])])), [id(1)]);
        let beside = |state| {
            let root = node(1, None, waiting(), vec![spawn(2), spawn(3)]);
            Tree::new(id(1), vec![root, node(2, Some(1), state, vec![]), node(3, Some(1), waiting(), vec![ask(false)])])
        };
        assert_eq!(names(&beside(failed())), []);
        assert_eq!(names(&beside(FrameState::Cancelled)), [id(2)]);
    }

    #[test]
    fn a_damaged_tree_does_no_harm() {
        let cycle = Tree::new(
            id(1),
            vec![node(1, Some(2), waiting(), vec![spawn(2)]), node(2, Some(1), waiting(), vec![spawn(1)])],
        );
        assert_eq!(cycle.leaves_up().len(), 2);
        assert_eq!(runnable(&cycle), []);
        let orphan = Tree::new(id(1), vec![node(2, Some(7), FrameState::Ready, vec![])]);
        assert!(orphan.leaves_up().is_empty());
        let gone = Tree::new(id(1), vec![node(1, None, waiting(), vec![spawn(9)])]);
        assert_eq!(runnable(&gone), [id(1)]);
    }

    proptest! {
        #[test]
        fn a_parent_stands_after_its_children(parents in proptest::collection::vec(0usize..20, 1..40)) {
            let nodes = (0..=parents.len()).map(|n| {
                let parent = n.checked_sub(1).map(|at| (parents[at] % n) as u128);
                node(n as u128, parent, FrameState::Ready, vec![])
            });
            let tree = Tree::new(id(0), nodes.collect());
            let order: Vec<_> = tree.leaves_up().iter().map(|node| node.id).collect();
            prop_assert_eq!(order.len(), parents.len() + 1);
            for (at, node) in tree.leaves_up().iter().enumerate() {
                if let Some(parent) = node.parent {
                    prop_assert!(order.iter().position(|id| *id == parent).unwrap() > at);
                }
            }
        }
    }
}
