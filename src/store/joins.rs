//! Trees that become part of another one: an agent may wait for a chain that was not started in its name.
//!
//! This is how a Claude session that started a chain by itself, and was adopted later, comes to stand above that chain.

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use super::codec::{self, Id};
use super::error::Fault;
use super::frames;
use super::requests::{self, Caller};
use super::{Result, Store, events, limits};
use crate::core::id::FrameId;
use crate::core::request::Wish;
use crate::core::state::FrameState;

impl Store {
    /// Records that an agent waits for the reply of a frame that stands at the top of another tree, or that stood there
    /// until it was joined. Returns whether it does so: nothing is done for a frame of its own tree that it did not
    /// join, and for one that does not wait.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`](super::StoreError::StaleCaller), [`StoreError::Limit`](super::StoreError::Limit) when the
    /// tree would be too large, there is no such frame, or the database cannot be written.
    pub fn join(&self, caller: Caller, child: FrameId) -> Result<bool> {
        self.write(|connection| {
            requests::check(connection, caller)?;
            let parent = frames::existing(connection, caller.frame)?;
            let child = frames::existing(connection, child)?;
            if child.state.is_over() || child.state == FrameState::Ready {
                return Ok(false);
            }
            let is_other_root = child.parent.is_none() && child.root != parent.root;
            if !is_other_root && child.parent != Some(parent.id) {
                return Ok(false);
            }
            let awaited = connection
                .prepare_cached("SELECT 1 FROM requests WHERE frame = ?1 AND child = ?2 AND withdrawn IS NULL")?
                .query_row((Id(parent.id), Id(child.id)), |_| Ok(()))
                .optional()?;
            if awaited.is_some() {
                return Ok(true);
            }
            let now = codec::now();
            if is_other_root {
                let (below, more) = size(connection, child.id)?;
                let (_, frames) = size(connection, parent.root)?;
                parent.limits.admit(parent.depth + below, frames, more)?;
                connection
                    .prepare_cached("UPDATE frames SET root = ?2, depth = depth + ?3 WHERE root = ?1")?
                    .execute((Id(child.id), Id(parent.root), parent.depth))?;
                connection
                    .prepare_cached("UPDATE frames SET parent = ?2 WHERE id = ?1")?
                    .execute((Id(child.id), Id(parent.id)))?;
                limits::write(connection, parent.root, parent.limits)?;
                events::append(connection, now, child.id, "joined", &json!({"parent": parent.id}))?;
            }
            requests::insert(
                connection,
                now,
                caller,
                None,
                &Wish::Spawn { child: child.id, task: child.task.title() },
            )?;
            Ok(true)
        })
    }
}

/// How many levels and how many agents a tree has.
fn size(connection: &Connection, root: FrameId) -> std::result::Result<(u32, u32), Fault> {
    let mut statement =
        connection.prepare_cached("SELECT max(depth), sum(NOT is_group) FROM frames WHERE root = ?1")?;
    Ok(statement.query_row([Id(root)], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

#[cfg(test)]
mod tests {
    use crate::core::limits::{LimitReached, Limits};
    use crate::core::outcome::Outcome;
    use crate::store::testing::{new, store};
    use crate::store::{NewFrame, StoreError};

    #[test]
    fn another_tree_is_joined_once_and_waited_for() {
        let (_temp, store) = store();
        let (other, _) = store.asking("When?");
        let caller = store.start(store.root());
        for _ in 0..2 {
            assert!(store.join(caller, other).unwrap());
        }
        let child = store.frame(other).unwrap().unwrap();
        assert_eq!((child.parent, child.root, child.depth), (Some(caller.frame), caller.frame, 2));
        assert!(store.has_open_requests(caller.attempt).unwrap());
        let tree = store.tree(caller.frame).unwrap();
        assert_eq!((tree.leaves_up().len(), tree.get(caller.frame).unwrap().requests.len()), (2, 1));
    }

    #[test]
    fn a_tree_that_was_joined_in_vain_is_joined_again() {
        let (_temp, store) = store();
        let (other, _) = store.asking("When?");
        let first = store.start(store.root());
        assert!(store.join(first, other).unwrap());
        store.end(first, &Outcome::Refused("a bad flag".into()));
        assert!(store.frame(other).unwrap().is_some());
        store.try_again(first.frame).unwrap();
        let second = store.start(first.frame);
        assert!(!store.has_open_requests(second.attempt).unwrap());
        assert!(store.join(second, other).unwrap());
        assert!(store.has_open_requests(second.attempt).unwrap());
    }

    #[test]
    fn a_tree_that_would_be_too_large_is_not_joined() {
        let (_temp, store) = store();
        let top = store.start(store.root());
        store.request_child(top, None, &new("child"), "child").unwrap();
        store.end(top, &Outcome::Requested);
        let joining = |max_depth, max_frames| {
            let limits = Limits { max_depth, max_frames, ..Limits::default() };
            store.start(store.create_root(&NewFrame { limits, ..new("root") }).unwrap())
        };
        for (limits, reached) in [((2, 9), LimitReached::Depth(2)), ((3, 2), LimitReached::Frames(2))] {
            let caller = joining(limits.0, limits.1);
            let error = store.join(caller, top.frame).unwrap_err();
            assert!(matches!(error, StoreError::Limit(found) if found == reached), "{error}");
            assert_eq!(store.frame(top.frame).unwrap().unwrap().root, top.frame);
        }
        assert!(store.join(joining(3, 3), top.frame).unwrap());
        assert_eq!(store.frame(top.frame).unwrap().unwrap().limits.max_depth, 3, "it has the limits of its new tree");
    }

    #[test]
    fn frames_of_its_own_tree_are_left_where_they_are() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        store.end(root, &Outcome::Requested);
        let caller = store.start(child);
        for frame in [root.frame, child] {
            assert!(!store.join(caller, frame).unwrap());
        }
    }
}
