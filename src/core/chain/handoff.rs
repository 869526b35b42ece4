//! Handoffs, which are tail calls: an agent asks for another one whose reply is also its own. It is not woken for that.

use std::collections::HashSet;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::requests::request::{Request, RequestKind, SpawnForm};

/// The agent to which one in `state` has handed off. `requests`: those whose results it has not been given. An agent that has
/// asked for anything else must see the results itself.
pub(crate) fn successor(state: &FrameState, requests: &[Request]) -> Option<FrameId> {
    only_handoff(requests).filter(|_| state.waits_for_requests())
}

fn only_handoff(requests: &[Request]) -> Option<FrameId> {
    match requests {
        [Request { kind: RequestKind::Spawn { child, form: SpawnForm::Handoff, .. }, .. }] => Some(*child),
        _ => None,
    }
}

impl Node {
    /// The agent that this one has handed off to, or had when it ended. One that a person has continued sees all results.
    pub(crate) fn handed_off_to(&self) -> Option<FrameId> {
        only_handoff(&self.requests).filter(|_| !self.has_outcome)
    }

    /// Whether it has replied, and no person has continued it.
    fn has_replied(&self) -> bool {
        self.state == FrameState::Done && !self.has_outcome
    }
}

impl Tree {
    /// Whether a frame has handed off to one that has replied: it ends without an attempt.
    pub(crate) fn is_handed_off(&self, node: &Node) -> bool {
        self.is_handed_off_to(node, |child| self.get(child).is_some_and(Node::has_replied))
    }

    /// The frames that have handed off to one that has replied, each after the one that it has handed off to.
    pub(crate) fn handoffs_to_end(&self) -> Vec<FrameId> {
        let (mut ends, mut order) = (HashSet::new(), Vec::new());
        for node in self.leaves_up() {
            let has_replied = |child| ends.contains(&child) || self.get(child).is_some_and(Node::has_replied);
            if self.is_awaited(node) && self.is_handed_off_to(node, has_replied) {
                ends.insert(node.id);
                order.push(node.id);
            }
        }
        order
    }

    /// The frames that end without an attempt, as soon as the process that runs the chain looks.
    pub(crate) fn frames_to_end(&self) -> Vec<FrameId> {
        [self.groups_to_end(), self.handoffs_to_end()].concat()
    }

    pub(crate) fn has_frames_to_end(&self) -> bool {
        !self.frames_to_end().is_empty()
    }

    fn is_handed_off_to(&self, node: &Node, has_replied: impl Fn(FrameId) -> bool) -> bool {
        // An instruction of a person has a separate reply.
        !node.has_outcome && successor(&node.state, &node.requests).is_some_and(has_replied)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind, Wait};
    use crate::core::chain::runnable::Attempted;
    use crate::core::chain::tree::testing::{self, id, request};
    use crate::core::requests::question_form::Form;

    const WAITS: FrameState = FrameState::Waiting { wait: Wait::Requests };

    fn spawn(frame: u128, form: SpawnForm) -> Request {
        request(id(frame), RequestKind::Spawn { child: id(frame + 1), task: String::new(), form, json: false })
    }

    fn node(n: u128, state: FrameState, requests: Vec<Request>) -> Node {
        let parent = n.checked_sub(1).filter(|parent| *parent > 0).map(id);
        Node { requests, ..testing::node(id(n), parent, state) }
    }

    /// The frames that end, and those that can run.
    fn next(nodes: Vec<Node>) -> (Vec<FrameId>, Vec<FrameId>) {
        let tree = Tree::new(id(1), nodes);
        (tree.handoffs_to_end(), tree.runnable(&Attempted::default(), Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn handoffs_collapse_from_the_one_that_has_replied() {
        let above = |state: FrameState| {
            vec![node(1, WAITS, vec![spawn(1, SpawnForm::Handoff)]), node(2, state, vec![spawn(2, SpawnForm::Handoff)])]
        };
        let chain = |last: FrameState| [above(WAITS), vec![node(3, last, Vec::new())]].concat();
        assert_eq!(next(chain(FrameState::Done)), (vec![id(2), id(1)], Vec::new()));
        assert_eq!(next(chain(FrameState::Ready)), (Vec::new(), vec![id(3)]));
        // A failed agent returns its failure, like any call.
        let failure = Failure { kind: FailureKind::Error, message: String::new() };
        assert_eq!(next(chain(FrameState::Failed { failure })), (Vec::new(), vec![id(2)]));
        let mut continued = chain(FrameState::Done);
        continued[2].has_outcome = true;
        assert_eq!(next(continued), (Vec::new(), vec![id(2)]));
        let mut instructed = chain(FrameState::Done);
        instructed[1].has_outcome = true;
        assert_eq!(next(instructed), (Vec::new(), vec![id(2), id(1)]));
        let paused = FrameState::Paused { waited: Some(Wait::Requests) };
        let paused = [above(paused), vec![node(3, FrameState::Done, Vec::new())]].concat();
        assert_eq!(next(paused), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_agent_that_waits_for_more_continues() {
        let asked = || request(id(1), RequestKind::Ask(Form::text("When?")));
        for (requests, ends) in [
            (vec![spawn(1, SpawnForm::Handoff)], true),
            (vec![spawn(1, SpawnForm::Call)], false),
            (vec![spawn(1, SpawnForm::Handoff), spawn(1, SpawnForm::Handoff)], false),
            (vec![spawn(1, SpawnForm::Handoff), asked()], false),
            (vec![asked()], false),
        ] {
            let nodes = vec![node(1, WAITS, requests.clone()), node(2, FrameState::Done, Vec::new())];
            assert_eq!(next(nodes).0, if ends { vec![id(1)] } else { Vec::new() }, "{requests:?}");
        }
        let nodes =
            vec![node(1, FrameState::Ready, vec![spawn(1, SpawnForm::Handoff)]), node(2, FrameState::Done, Vec::new())];
        assert_eq!(next(nodes), (Vec::new(), vec![id(1)]));
    }
}
