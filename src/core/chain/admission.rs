//! What keeps a frame that could run from starting: its tree's limits and its account's usage limit.
//!
//! A frame that is not admitted does not change. It starts as soon as nothing keeps it from starting.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::core::agent::usage::usd;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::chain::limits::Limits;
use crate::core::chain::tree::{Node, Tree};

/// What keeps a frame from starting.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NotAdmitted {
    /// The tree has spent its budget, in US dollars.
    #[error("the chain has spent {} of its budget of {}", usd(*spent_usd), usd(*max_usd))]
    Budget { max_usd: f64, spent_usd: f64 },
    /// Another frame has reached the usage limit of the account that both use.
    #[error("the account has reached its usage limit, until {resets_at:.0}")]
    UsageLimit { resets_at: Timestamp },
    /// The maximum number of agents of all chains is running.
    #[error("{most} agents of all chains are running, which is the limit")]
    ParallelTotal { most: u32 },
    /// The maximum number of the tree's agents is running.
    #[error("{most} agents of the chain are running, which is its limit")]
    Parallel { most: u32 },
}

/// What counts towards a tree's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Running frames, whichever process runs them.
    pub running: u32,
    /// The cost of attempts that have ended, in US dollars.
    pub spent_usd: f64,
}

impl Limits {
    /// What keeps a frame of a tree with this load from starting. `limited`: when its account's usage limit is lifted. If there
    /// are several reasons, the one that lasts longest.
    pub(crate) fn refuse(self, load: Load, limited: Option<Timestamp>) -> Option<NotAdmitted> {
        let Load { running, spent_usd } = load;
        let budget = self.max_budget_usd.filter(|max_usd| spent_usd >= *max_usd);
        let budget = budget.map(|max_usd| NotAdmitted::Budget { max_usd, spent_usd });
        let usage_limit = limited.map(|resets_at| NotAdmitted::UsageLimit { resets_at });
        let parallel = (running >= self.max_parallel).then_some(NotAdmitted::Parallel { most: self.max_parallel });
        budget.or(usage_limit).or(parallel)
    }
}

impl Tree {
    /// What keeps the frames of this tree from starting.
    pub(crate) fn admission(&self, now: Timestamp) -> Admission<'_> {
        let mut load = Load { running: 0, spent_usd: self.whole().spent_usd };
        let mut accounts: HashMap<Option<&str>, Timestamp> = HashMap::new();
        for node in self.all() {
            load.running += u32::from(matches!(node.state, FrameState::Running { .. }));
            if let Some(resets_at) = usage_limit(node, now) {
                let known = accounts.entry(account(self, node)).or_insert(resets_at);
                *known = resets_at.max(*known);
            }
        }
        Admission { tree: self, load, accounts }
    }
}

fn account<'a>(tree: &'a Tree, node: &Node) -> Option<&'a str> {
    tree.whole().accounts.get(&node.id).map(String::as_str)
}

/// When a frame's usage limit is lifted.
fn usage_limit(node: &Node, now: Timestamp) -> Option<Timestamp> {
    match &node.state {
        FrameState::Waiting { wait: wait @ Wait::UsageLimit { .. } } => wait.paused_until(node.since, now),
        _ => None,
    }
}

/// What keeps the frames of a tree from starting.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    tree: &'a Tree,
    load: Load,
    accounts: HashMap<Option<&'a str>, Timestamp>,
}

impl Admission<'_> {
    /// What keeps this frame from starting.
    pub(crate) fn refuse(&self, node: &Node) -> Option<NotAdmitted> {
        let limited = self.accounts.get(&account(self.tree, node)).copied();
        self.tree.whole().limits.refuse(self.load, limited)
    }

    /// How many more frames may run at the same time.
    pub(crate) fn room(&self) -> usize {
        self.tree.whole().limits.max_parallel.saturating_sub(self.load.running) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::runnable::Attempted;
    use crate::core::chain::tree::Whole;
    use crate::core::chain::tree::testing::{id, node, request};
    use crate::core::chain::waiting_on::Blocking;
    use crate::core::id::FrameId;
    use crate::core::requests::request::{RequestKind, SpawnForm};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A root with a child in each of these states.
    fn children(states: &[FrameState]) -> Tree {
        let numbers = (1..).zip(states);
        let spawn = |(n, _)| {
            request(id(0), RequestKind::Spawn { child: id(n), task: String::new(), form: SpawnForm::Call, json: false })
        };
        let requests = numbers.clone().map(spawn).collect();
        let root = Node { requests, ..node(id(0), None, FrameState::Waiting { wait: Wait::Requests }) };
        let below = numbers.map(|(n, state)| node(id(n), Some(id(0)), state.clone()));
        Tree::new(id(0), std::iter::once(root).chain(below).collect())
    }

    fn limited(resets_at: i64) -> FrameState {
        FrameState::Waiting { wait: Wait::UsageLimit { resets_at: at(resets_at), tries: 0 } }
    }

    fn runnable(tree: &Tree) -> Vec<FrameId> {
        tree.runnable(&Attempted::default(), at(10))
    }

    fn what_blocks(tree: &Tree, n: u128) -> Vec<Blocking> {
        tree.blockers_of(tree.get(id(n)).unwrap(), at(10)).into_iter().map(|blocker| blocker.what).collect()
    }

    const READY: FrameState = FrameState::Ready;
    const RUNNING: FrameState = FrameState::Running { waited: None };

    #[test]
    fn as_many_run_as_may_wherever_they_run() {
        let limits = Limits { max_parallel: 2, ..Limits::default() };
        let tree = |states: &[FrameState]| children(states).within(Whole { limits, ..Whole::default() });
        assert_eq!(runnable(&tree(&[READY, READY, READY])), [id(1), id(2)]);
        assert_eq!(runnable(&tree(&[READY, RUNNING, READY])), [id(1)]);
        let full = tree(&[RUNNING, READY, RUNNING]);
        assert_eq!(runnable(&full), []);
        assert_eq!(what_blocks(&full, 2), [Blocking::Parallel { most: 2 }]);
        assert_eq!(what_blocks(&full, 1), []);
        assert_eq!(what_blocks(&tree(&[READY, READY, READY]), 3), [], "a place is free");
    }

    #[test]
    fn nothing_starts_once_the_budget_is_spent() {
        let limits = Limits { max_budget_usd: Some(0.5), ..Limits::default() };
        let tree = |spent_usd| children(&[READY, RUNNING]).within(Whole { limits, spent_usd, ..Whole::default() });
        assert_eq!(runnable(&tree(0.49)), [id(1)]);
        assert_eq!(runnable(&tree(0.5)), []);
        assert_eq!(what_blocks(&tree(0.5), 1), [Blocking::Budget { max_usd: 0.5, spent_usd: 0.5 }]);
    }

    #[test]
    fn the_usage_limit_of_an_account_blocks_all_that_use_it() {
        let accounts = HashMap::from([(id(2), "other".to_owned()), (id(4), "other".to_owned())]);
        let tree =
            |states: &[FrameState]| children(states).within(Whole { accounts: accounts.clone(), ..Whole::default() });
        let resets_at = |second| vec![Blocking::UsageLimit { resets_at: at(second) }];
        let one = tree(&[limited(20), READY, READY, READY]);
        assert_eq!(runnable(&one), [id(2), id(4)]);
        assert_eq!([what_blocks(&one, 1), what_blocks(&one, 3)], [resets_at(20), resets_at(20)]);
        let other = tree(&[READY, limited(20), limited(30), READY]);
        assert_eq!(runnable(&other), []);
        assert_eq!([what_blocks(&other, 1), what_blocks(&other, 4)], [resets_at(30), resets_at(20)]);
        assert_eq!(runnable(&tree(&[limited(10), READY, READY])), [id(1), id(2), id(3)], "it was lifted");
    }

    #[test]
    fn a_retry_blocks_nobody_else() {
        let wait = Wait::Retry { tries: 1, why: "overloaded".into() };
        let tree = children(&[FrameState::Waiting { wait }, READY]);
        assert_eq!(runnable(&tree), [id(2)]);
        assert_eq!(what_blocks(&tree, 1), [Blocking::Retry { at: at(30), tries: 1, why: "overloaded".into() }]);
    }
}
