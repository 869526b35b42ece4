//! Whether it is worth to go on watching a chain.

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::progress_lines;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;

/// What may still happen in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainOutlook {
    /// Somebody runs an agent in it.
    Runs,
    /// It can continue: somebody may be about to do so.
    CanContinue,
    /// Nothing happens until others do something: each agent that waits, and what for.
    Waits(Vec<(FrameId, String)>),
    /// Its top is done, failed or was stopped.
    Over,
}

/// What may still happen in a tree. `runs`: whether somebody runs a frame that is recorded as running.
pub(crate) fn outlook(tree: &Tree, runs: impl Fn(FrameId) -> bool, now: Timestamp) -> ChainOutlook {
    let nodes = tree.parents_first();
    let running: Vec<_> = nodes.iter().filter(|node| matches!(node.state, FrameState::Running { .. })).collect();
    if running.iter().any(|node| runs(node.id)) {
        return ChainOutlook::Runs;
    }
    if tree.get(tree.top()).is_none_or(|top| top.state.is_over()) {
        return ChainOutlook::Over;
    }
    if !running.is_empty()
        || !tree.runnable(&Attempted::default(), now).is_empty()
        || !tree.to_try_again().is_empty()
        || tree.has_frames_to_end()
    {
        return ChainOutlook::CanContinue;
    }
    let blocked = nodes.iter().filter(|node| !tree.blockers_of(node, now).is_empty());
    ChainOutlook::Waits(blocked.map(|node| (node.id, progress_lines::ended(tree, node, now))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::tree::Node;

    fn node(id: FrameId, parent: Option<FrameId>, state: FrameState) -> Node {
        let (title, since) = (String::new(), Timestamp::UNIX_EPOCH);
        Node {
            id,
            parent,
            title,
            state,
            since,
            kept: true,
            is_group: false,
            has_outcome: false,
            is_unrecorded: false,
            stop: None,
            requests: Vec::new(),
        }
    }

    fn of(nodes: Vec<Node>, runs: bool) -> ChainOutlook {
        outlook(&Tree::new(nodes[0].id, nodes), |_| runs, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn watching_ends_when_nothing_can_happen_without_others() {
        let id = FrameId::random();
        let running = || FrameState::Running { waited: None };
        assert_eq!(of(vec![node(id, None, running())], true), ChainOutlook::Runs);
        assert_eq!(of(vec![node(id, None, running())], false), ChainOutlook::CanContinue);
        assert_eq!(of(vec![node(id, None, FrameState::Ready)], false), ChainOutlook::CanContinue);
        assert_eq!(of(vec![node(id, None, FrameState::Done)], false), ChainOutlook::Over);
        let resets_at = Timestamp::from_second(60).unwrap();
        let limited = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
        let why = "waits for the usage limit to reset in 1 min".to_owned();
        assert_eq!(of(vec![node(id, None, limited)], false), ChainOutlook::Waits(vec![(id, why)]));
        // A child may go on when its parent has failed.
        let child = node(FrameId::random(), Some(id), running());
        let failed = node(id, None, FrameState::Done);
        assert_eq!(of(vec![failed, child], true), ChainOutlook::Runs);
    }
}
