//! Trees that become part of another one: an agent may wait for a chain that it did not start.
//!
//! In this way a Claude session that started a chain itself, and was adopted later, becomes its parent. No other chain can
//! be joined, because joining one gives access to its replies.

use crate::core::chain::frame_state::FrameState;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::store::error::StoreError;
use crate::store::records::Caller;
use crate::store::sql::database::codec::{At, Id, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::{chains, events, frames, requests};

/// Records that an agent waits for the reply of `child`: the root of another tree, or a former root that the agent has
/// joined. `kind` names the same frame. Returns the request. Returns `None` if `child` has ended or is ready, or if it is a
/// frame of the agent's own tree that the agent did not join.
pub(super) fn join(
    connection: &Connection,
    now: At,
    caller: Caller,
    child: FrameId,
    kind: &RequestKind,
) -> TxResult<Option<RequestId>> {
    let parent = frames::existing(connection, caller.frame)?;
    let child = frames::existing(connection, child)?;
    if child.state.is_over() || child.state == FrameState::Ready {
        return Ok(None);
    }
    let is_other_root = child.parent.is_none() && child.root != parent.root;
    if is_other_root && !has_started(connection, parent.id, child.id)? {
        return Err(StoreError::UnknownFrame(child.id).into());
    }
    if !is_other_root && child.parent != Some(parent.id) {
        return Ok(None);
    }
    let awaited = connection.read_first(
        "SELECT id FROM requests WHERE frame = ?1 AND child = ?2 AND status <> 'withdrawn'",
        (Id(parent.id), Id(child.id)),
        |row| id(row, "id"),
    )?;
    if awaited.is_some() {
        return Ok(awaited);
    }
    if is_other_root {
        // Its host may be running it.
        chains::check_host(connection, child.id)?;
        let (below, more) = size(connection, child.id)?;
        let frames = chains::agents(connection, parent.root)?;
        let (limits, others) = (chains::limits(connection, parent.root)?, chains::limits(connection, child.id)?);
        limits.admit(parent.depth + below, frames, more)?;
        connection.run(
            "UPDATE frames SET root = ?2, depth = depth + ?3 WHERE root = ?1",
            (Id(child.id), Id(parent.root), parent.depth),
        )?;
        connection.run("UPDATE frames SET parent = ?2 WHERE id = ?1", (Id(child.id), Id(parent.id)))?;
        chains::join_families(connection, child.id, parent.root)?;
        connection.run("DELETE FROM chains WHERE root = ?1", [Id(child.id)])?;
        chains::set_limits(connection, parent.root, limits.stricter(others))?;
        events::append(connection, now, child.id, &LogEntry::Joined { parent: parent.id })?;
    }
    requests::insert(connection, now, caller, None, kind).map(Some)
}

/// Whether a session of `frame` has started the chain of `root`, so that its agent may join it.
pub(crate) fn has_started(connection: &Connection, frame: FrameId, root: FrameId) -> TxResult<bool> {
    let sql = "SELECT 1 FROM frames WHERE id = ?2 AND parent IS NULL
        AND (started_from = ?1 OR started_from IN (SELECT session FROM attempts WHERE frame = ?1))";
    connection.finds(sql, (Id(frame), Id(root)))
}

/// The number of levels and of agents in a tree.
fn size(connection: &Connection, root: FrameId) -> TxResult<(u32, u32)> {
    connection.read_one(
        "SELECT max(depth), count(*) FILTER (WHERE NOT is_group) FROM frames WHERE root = ?1",
        [Id(root)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::frame::Detached;
    use crate::core::chain::limits::{LimitReached, Limits};
    use crate::core::housekeeping::retention::Retention;
    use crate::core::id::IdPrefix;
    use crate::core::requests::request::SpawnForm;
    use crate::store::handle::Store;
    use crate::store::housekeeping::removable::Decided;
    use crate::store::records::{AskedFor, NewFrame, Scope, Target};
    use crate::store::testing::{ask, new, refused, reply, store};

    impl Store {
        /// A chain that asks, and that the session of `frame` has started.
        fn asking_for(&self, frame: FrameId, limits: Limits) -> (FrameId, RequestId) {
            let new = NewFrame { limits, started_from: Some(frame.into()), ..new("a chain") };
            let caller = self.start(self.create_root(&new).unwrap());
            let question = self.request(caller, None, &[ask("When?")]).unwrap()[0];
            self.end(caller, &Ending::Suspended);
            (caller.frame, question)
        }
    }

    #[test]
    fn another_tree_is_joined_once_and_waited_for() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (other, _) = store.asking_for(caller.frame, Limits::default());
        for _ in 0..2 {
            assert!(store.join(caller, other).unwrap());
        }
        let child = store.frame(other).unwrap().unwrap();
        assert_eq!((child.parent, child.root, child.depth), (Some(caller.frame), caller.frame, 2));
        assert_eq!(store.roots().len(), 1, "it is no chain of its own any more");
        assert!(store.has_undelivered_requests(caller.attempt).unwrap());
        let tree = store.tree(caller.frame).unwrap();
        assert_eq!((tree.leaves_up().len(), tree.get(caller.frame).unwrap().requests.len()), (2, 1));
    }

    #[test]
    fn what_a_joined_tree_has_detached_counts_for_the_tree_that_it_joins() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let new_root = NewFrame { started_from: Some(caller.frame.into()), ..new("a chain") };
        let other = store.start(store.create_root(&new_root).unwrap());
        let from = Detached { by: other.frame, cwd: "/srv".into(), base: "/srv".into(), worktrees: Vec::new() };
        let (title, form) = ("free", SpawnForm::Background);
        let asked = AskedFor { caller: other, call: None, title, form, json: false, detached: Some(&from) };
        let free = store.create(&new("free"), Some(asked)).unwrap();
        store.request(other, None, &[ask("When?")]).unwrap();
        store.end(other, &Ending::Suspended);
        assert!(store.join(caller, other.frame).unwrap());
        let family = |of| store.chain_of(of).unwrap().family;
        assert_eq!((family(free), family(caller.frame)), (Some(caller.frame), Some(caller.frame)));
        store.end(store.start(free), &reply("done"));
        let others_usd = store.chain_of(caller.frame).unwrap().others_usd;
        assert!(others_usd > 0.0);
        // It still counts after its removal.
        let decided = Decided { root: free, attempts: 1 };
        assert_eq!(store.remove_trees(&[decided], Retention::NOTHING), [free]);
        assert!((store.chain_of(caller.frame).unwrap().others_usd - others_usd).abs() < 1e-9);
    }

    #[test]
    fn a_tree_that_was_joined_in_vain_is_joined_again() {
        let (_temp, store) = store();
        let first = store.start(store.root());
        let (other, _) = store.asking_for(first.frame, Limits::default());
        assert!(store.join(first, other).unwrap());
        store.end(first, &refused("a bad flag"));
        assert!(store.frame(other).unwrap().is_some());
        store.try_again(first.frame).unwrap();
        let second = store.start(first.frame);
        assert!(!store.has_undelivered_requests(second.attempt).unwrap());
        assert!(store.join(second, other).unwrap());
        assert!(store.has_undelivered_requests(second.attempt).unwrap());
    }

    #[test]
    fn a_tree_that_would_be_too_large_is_not_joined() {
        let (_temp, store) = store();
        let joining = |max_depth, max_agents| {
            let limits = Limits { max_depth, max_agents, ..Limits::default() };
            let caller = store.start(store.create_root(&NewFrame { limits, ..new("root") }).unwrap());
            let started_from = Some(caller.frame.into());
            let top = store.start(store.create_root(&NewFrame { started_from, ..new("top") }).unwrap());
            store.request_child(top, None, &new("child"), "child").unwrap();
            store.end(top, &Ending::Suspended);
            (caller, top.frame)
        };
        for (limits, reached) in [((2, 9), LimitReached::Depth(2)), ((3, 2), LimitReached::Agents(2))] {
            let (caller, top) = joining(limits.0, limits.1);
            let error = store.join(caller, top).unwrap_err();
            assert!(matches!(error, StoreError::Limit(found) if found == reached), "{error}");
            assert_eq!(store.frame(top).unwrap().unwrap().root, top);
        }
        let (caller, top) = joining(3, 3);
        assert!(store.join(caller, top).unwrap());
        assert_eq!(store.chain_of(top).unwrap().limits.max_depth, 3);
    }

    #[test]
    fn the_stricter_limits_apply_to_all_of_a_joined_tree() {
        let (_temp, store) = store();
        let strict =
            Limits { max_depth: 2, max_agents: 9, max_parallel: 1, max_budget_usd: Some(1.0), ..Limits::default() };
        let wide = Limits { max_depth: 9, max_agents: 3, max_parallel: 7, max_budget_usd: None, ..Limits::default() };
        let both =
            Limits { max_depth: 2, max_agents: 3, max_parallel: 1, max_budget_usd: Some(1.0), ..Limits::default() };
        for (above, below) in [(strict, wide), (wide, strict)] {
            let caller = store.start(store.create_root(&NewFrame { limits: above, ..new("root") }).unwrap());
            let (chain, _) = store.asking_for(caller.frame, below);
            assert!(store.join(caller, chain).unwrap());
            for frame in [caller.frame, chain] {
                assert_eq!(store.chain_of(frame).unwrap().limits, both);
            }
        }
    }

    #[test]
    fn only_a_chain_that_the_own_session_has_started_is_joined() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (foreign, _) = store.asking("When?");
        let (of_another, _) = store.asking_for(store.root(), Limits::default());
        let meant =
            |agent, chain: FrameId| store.lookup(Scope::Agent(agent), &chain.to_string().parse::<IdPrefix>().unwrap());
        for chain in [foreign, of_another] {
            assert!(meant(caller.frame, chain).is_err());
            let error = store.join(caller, chain).unwrap_err();
            assert!(matches!(error, StoreError::UnknownFrame(id) if id == chain), "{error}");
            let frame = store.frame(chain).unwrap().unwrap();
            assert_eq!(
                (frame.parent, frame.root, store.chain_of(chain).unwrap().limits),
                (None, chain, Limits::default())
            );
        }
        // A later session of the agent counts, too.
        store.end(caller, &reply("SGN_PEND_ONGOING"));
        let later = store.start(caller.frame);
        let (own, _) = store.asking_for(FrameId(store.attempts(caller.frame).unwrap()[1].session.0), Limits::default());
        assert_eq!(meant(caller.frame, own).unwrap(), Target::Frame(own));
        assert!(store.join(later, own).unwrap());
    }

    #[test]
    fn a_chain_that_nobody_has_run_or_that_is_over_is_not_joined() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let started_from = Some(caller.frame.into());
        let chain = store.create_root(&NewFrame { started_from, ..new("a chain") }).unwrap();
        assert!(!store.join(caller, chain).unwrap());
        store.end(store.start(chain), &reply("done"));
        assert!(!store.join(caller, chain).unwrap());
        assert!(!store.has_undelivered_requests(caller.attempt).unwrap());
    }

    #[test]
    fn frames_of_its_own_tree_are_left_where_they_are() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        store.end(root, &Ending::Suspended);
        let caller = store.start(child);
        for frame in [root.frame, child] {
            assert!(!store.join(caller, frame).unwrap());
        }
    }
}
