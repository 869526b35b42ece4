//! Determines which agent runs as soon as another has ended, without checking the whole chain: with many siblings each check
//! costs more than an agent.

use std::collections::{HashMap, VecDeque};

use crate::core::attempt::decision::{Decision, Next};
use crate::core::chain::frame_state::Ended;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;

/// The frames that could have run at the last check but found no place.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<FrameId>,
    /// The groups of unfinished members, and how many of these each group had.
    groups: HashMap<FrameId, FrameId>,
    open: HashMap<FrameId, usize>,
}

/// What the end of an agent means for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Its place is free, and this frame can take it.
    Next(FrameId),
    Nothing,
    /// The chain must be checked.
    Unknown,
}

impl Queue {
    /// `ready`: the frames that could run, in order, if there were places.
    pub(super) fn new(tree: &Tree, ready: impl IntoIterator<Item = FrameId>) -> Self {
        // A stop involves frames above and below.
        if tree.all().any(|node| node.stop.is_some()) {
            return Self::default();
        }
        let groups: HashMap<FrameId, FrameId> = tree.open_members_of_groups().collect();
        let mut open = HashMap::new();
        groups.values().for_each(|group| *open.entry(*group).or_default() += 1);
        Self { ready: ready.into_iter().collect(), groups, open }
    }

    /// The reply of a group's member makes no difference as long as another member has not ended.
    pub(super) fn after(&mut self, ended: FrameId, decision: &Decision) -> After {
        let group = self.groups.remove(&ended).filter(|_| decision.frame == Ended::Done);
        let open = group.and_then(|group| self.open.get_mut(&group)).filter(|open| **open > 1);
        let Some(open) = open.filter(|_| decision.next == Next::AsItComes) else { return After::Unknown };
        *open -= 1;
        self.ready.pop_front().map_or(After::Nothing, After::Next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;
    use crate::core::steering::stop_order::{By, Stop, StopKind};
    use crate::store::testing::{self, new, reply};
    use crate::store::{NewGroup, Replies, Store};

    /// A group of this many agents that can run.
    fn group(members: usize) -> (tempfile::TempDir, Store, FrameId, Vec<FrameId>) {
        let (temp, store) = testing::store();
        let root = store.start(store.root());
        let all: Vec<_> = (0..members).map(|n| new(&format!("member {n}"))).collect();
        let tasks = (0..members).map(|n| format!("{n}.md")).collect();
        let (_, group) =
            store.request_child(root, None, &NewGroup { members: all, cwd: "/srv".into(), tasks }, "group").unwrap();
        store.end(root, &Ending::Suspended);
        let Replies { members, .. } = store.replies(group).unwrap();
        (temp, store, root.frame, members.into_iter().map(|member| member.id).collect())
    }

    fn ended(ending: Ending) -> Decision {
        decide(&Facts::from_ending(ending))
    }

    #[test]
    fn of_many_siblings_each_takes_the_place_of_one_that_has_replied() {
        let (_temp, store, root, members) = group(5);
        let mut queue = Queue::new(&store.tree(root).unwrap(), members[2..].iter().copied());
        let replied = ended(reply("ok"));
        for at in 0..3 {
            assert_eq!(queue.after(members[at], &replied), After::Next(members[at + 2]));
        }
        assert_eq!(queue.after(members[3], &replied), After::Nothing, "one is not over");
        assert_eq!(queue.after(members[4], &replied), After::Unknown, "the group is");
    }

    #[test]
    fn whatever_may_concern_others_is_looked_at() {
        let (_temp, store, root, members) = group(3);
        let queue = || Queue::new(&store.tree(root).unwrap(), [members[2]]);
        for ending in [Ending::Suspended, reply("SGN_PEND_STARTED"), Ending::Error("no".into())] {
            assert_eq!(queue().after(members[0], &ended(ending)), After::Unknown);
        }
        let replied = ended(reply("ok"));
        assert_eq!(queue().after(root, &replied), After::Unknown, "it is in no group");
        let unrecorded = Decision { next: Next::Skip, ..replied.clone() };
        assert_eq!(queue().after(members[0], &unrecorded), After::Unknown);
        let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of: root, report: None };
        store.order_stop(root, &stop, &[]).unwrap();
        assert_eq!(queue().after(members[0], &replied), After::Unknown);
    }
}
