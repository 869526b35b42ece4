//! A tree of frames, and which of them can run next.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::Limits;
use crate::core::id::FrameId;
use crate::core::requests::request::{self, Request, RequestKind};
use crate::core::steering::stop_order::Stop;

/// A frame and all frames below it.
#[derive(Clone, Debug)]
pub struct Tree {
    top: FrameId,
    nodes: HashMap<FrameId, Node>,
    children: HashMap<FrameId, Vec<FrameId>>,
    whole: Whole,
}

/// Facts about a root's whole tree, whichever part of it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    /// Its limits.
    pub limits: Limits,
    /// The cost of its attempts, in US dollars; read only if there is a budget.
    pub spent_usd: f64,
    /// The account of each frame, by the directory that holds its login; read only if an account has reached its usage
    /// limit. Frames that are not listed use the default account.
    pub accounts: HashMap<FrameId, String>,
    /// Whether it belongs to another host, or has none yet.
    pub is_elsewhere: bool,
}

/// What the tree needs to know about a frame.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id.
    pub id: FrameId,
    /// The parent of the top need not be in the tree.
    pub parent: Option<FrameId>,
    /// Its task, as a list shows it.
    pub title: String,
    /// Its state.
    pub state: FrameState,
    /// When it entered that state.
    pub since: Timestamp,
    /// Whether it has a checkpoint.
    pub kept: bool,
    /// Whether it is a group, which has no agent and waits for its children.
    pub is_group: bool,
    /// Whether it has ended for its parent, even if a person has continued it since.
    pub has_outcome: bool,
    /// Since when a call of its running attempt lingers, because its results are expected soon.
    pub lingers: Option<Timestamp>,
    /// Whether `claude` could not record its last turn, which is done again.
    pub is_unrecorded: bool,
    /// Whether its next attempt asks its agent for a summary.
    pub wants_summary: bool,
    /// The stop or pause that is recorded for it.
    pub stop: Option<Stop>,
    /// The requests whose results have not been delivered to it.
    pub requests: Vec<Request>,
}

impl Node {
    /// Whether its agent has called another one in the background, and not got its result.
    pub(crate) fn has_in_background(&self, other: FrameId) -> bool {
        let is_other = |kind: &RequestKind| matches!(kind, RequestKind::Spawn { child, .. } if *child == other);
        self.requests.iter().any(|request| request.kind.is_background() && is_other(&request.kind))
    }

    /// Whether a person has continued it after it had ended, and it has not ended again. Nobody else waits for it.
    pub(crate) fn is_continued(&self) -> bool {
        self.has_outcome && !self.state.is_over()
    }

    /// Whether its parent need no longer wait for it.
    pub(crate) fn is_over(&self) -> bool {
        self.has_outcome || self.state.is_over()
    }
}

impl Tree {
    /// The requests of all frames, for adding what is known about them.
    pub(crate) fn requests_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.nodes.values_mut().flat_map(|node| &mut node.requests)
    }

    /// A tree of `nodes`, in the order in which they were created. Nodes that cannot be reached from `top` are ignored, so a
    /// damaged tree (a missing parent, a cycle) is harmless.
    pub(crate) fn new(top: FrameId, nodes: Vec<Node>) -> Self {
        let mut children: HashMap<FrameId, Vec<FrameId>> = HashMap::new();
        for node in &nodes {
            if let Some(parent) = node.parent.filter(|_| node.id != top) {
                children.entry(parent).or_default().push(node.id);
            }
        }
        let nodes = nodes.into_iter().map(|node| (node.id, node)).collect();
        Self { top, nodes, children, whole: Whole::default() }
    }

    /// The same tree as part of this whole.
    pub(crate) fn within(self, whole: Whole) -> Self {
        Self { whole, ..self }
    }

    /// Facts about the whole tree.
    pub(crate) fn whole(&self) -> &Whole {
        &self.whole
    }

    /// All frames of the whole tree, unordered, including those that are not below the top.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    pub(crate) fn node_mut(&mut self, id: FrameId) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// The frame at the top.
    pub fn top(&self) -> FrameId {
        self.top
    }

    /// One frame.
    pub fn get(&self, id: FrameId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The children of a frame, in the order in which they were asked for.
    pub fn children(&self, id: FrameId) -> &[FrameId] {
        self.children.get(&id).map_or(&[], Vec::as_slice)
    }

    /// All frames, each after the frames below it.
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
    pub(crate) fn parents_first(&self) -> Vec<&Node> {
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

    /// A frame is awaited when it is the top, when its parent has ended its turn, or lingers at a call, and needs its reply, when it
    /// works in the background of its parent, and when a person has continued it. A group awaits its members as soon as it is awaited
    /// itself.
    pub(crate) fn is_awaited(&self, node: &Node) -> bool {
        if node.id == self.top || node.is_continued() {
            return true;
        }
        match node.parent.and_then(|parent| self.get(parent)) {
            Some(group) if group.is_group => {
                group.state.is_pending() && (group.id == self.top || self.is_requested(group))
            }
            Some(_) => self.is_requested(node),
            None => false,
        }
    }

    /// Whether everything in the tree has ended: its top, and what a person has continued since.
    pub(crate) fn has_ended(&self) -> bool {
        let is_over = self.get(self.top).is_none_or(|top| top.state.is_over());
        is_over && !self.parents_first().into_iter().any(Node::is_continued)
    }

    /// Whether a request has everything it asked for.
    pub(crate) fn is_over(&self, request: &Request) -> bool {
        let is_child_over = |child| Ok::<_, Infallible>(self.get(child).is_none_or(Node::is_over));
        request.is_over(is_child_over).unwrap_or_else(|never| match never {})
    }

    /// Whether a request of this frame still lacks a result that its agent needs, or a member of this group has not ended.
    pub(crate) fn has_open_requests(&self, node: &Node) -> bool {
        // The end of a turn joins what runs in the background.
        let joins = node.state.waits_for_requests() && request::are_in_background(&node.requests);
        let is_needed = |kind: &RequestKind| !kind.is_job() && (joins || !kind.is_background());
        let is_missing = |request: &Request| is_needed(&request.kind) && !self.is_over(request);
        node.requests.iter().any(is_missing) || self.open_members(node) > 0
    }

    /// How many members of this group have not ended; 0 for a frame that is not a group.
    fn open_members(&self, node: &Node) -> usize {
        let members = self.children(node.id).iter().filter(|_| node.is_group).filter_map(|child| self.get(*child));
        members.filter(|member| !member.is_over()).count()
    }

    /// How many children a waiting frame still waits for, the members of a group one by one.
    pub(crate) fn children_awaited_by(&self, node: &Node) -> usize {
        let awaited = |request: &Request| match request.kind {
            RequestKind::Spawn { child, .. } if !self.is_over(request) => {
                self.get(child).map_or(1, |child| self.open_members(child).max(1))
            }
            _ => 0,
        };
        match node.state {
            FrameState::Waiting { .. } => node.requests.iter().map(awaited).sum::<usize>() + self.open_members(node),
            _ => 0,
        }
    }

    /// Whether its parent's agent has asked for this frame, and lets it run now.
    fn is_requested(&self, node: &Node) -> bool {
        let Some(parent) = node.parent.and_then(|parent| self.get(parent)) else { return false };
        let is_wanted = |kind: &RequestKind| matches!(kind, RequestKind::Spawn { child, .. } if *child == node.id);
        if parent.state.is_pending() || parent.lingers.is_some() {
            return parent.requests.iter().any(|request| is_wanted(&request.kind));
        }
        matches!(parent.state, FrameState::Running { .. }) && parent.has_in_background(node.id)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use uuid::Uuid;

    use super::*;
    use crate::core::id::{AttemptId, RequestId};
    use crate::core::requests::request_state::RequestState;

    pub(crate) fn id(number: u128) -> FrameId {
        FrameId(Uuid::from_u128(number))
    }

    /// An agent that has worked, without requests.
    pub(crate) fn node(id: FrameId, parent: Option<FrameId>, state: FrameState) -> Node {
        Node {
            id,
            parent,
            title: String::new(),
            state,
            since: Timestamp::UNIX_EPOCH,
            kept: true,
            is_group: false,
            has_outcome: false,
            lingers: None,
            is_unrecorded: false,
            wants_summary: false,
            stop: None,
            requests: Vec::new(),
        }
    }

    /// An open request.
    pub(crate) fn request(frame: FrameId, kind: RequestKind) -> Request {
        Request {
            id: RequestId::random(),
            frame,
            attempt: AttemptId::random(),
            call: None,
            kind,
            state: RequestState::Open,
            made: Timestamp::UNIX_EPOCH,
            progress: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::id;
    use super::*;

    fn node(n: u128, parent: Option<u128>) -> Node {
        testing::node(id(n), parent.map(id), FrameState::Ready)
    }

    #[test]
    fn a_damaged_tree_does_no_harm() {
        let cycle = Tree::new(id(1), vec![node(1, Some(2)), node(2, Some(1))]);
        assert_eq!((cycle.leaves_up().len(), cycle.parents_first().len()), (2, 2));
        assert!(Tree::new(id(1), vec![node(2, Some(7))]).leaves_up().is_empty());
    }

    proptest! {
        #[test]
        fn a_parent_stands_after_its_children(parents in proptest::collection::vec(0usize..20, 1..40)) {
            let nodes = (0..=parents.len()).map(|n| {
                let parent = n.checked_sub(1).map(|at| (parents[at] % n) as u128);
                node(n as u128, parent)
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
