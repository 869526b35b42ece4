//! Trees that become part of another one: an agent may wait for a chain that was not started in its name.
//!
//! This is how a Claude session that started a chain by itself, and was adopted later, comes to stand above that chain.

use rusqlite::OptionalExtension;
use serde_json::json;

use super::codec::{self, Id};
use super::frames;
use super::requests::{self, Caller};
use super::{Result, Store, events};
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
    /// [`StoreError::StaleCaller`](super::StoreError::StaleCaller), there is no such frame, or the database cannot be
    /// written.
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
                connection
                    .prepare_cached("UPDATE frames SET root = ?2, depth = depth + ?3 WHERE root = ?1")?
                    .execute((Id(child.id), Id(parent.root), parent.depth))?;
                connection
                    .prepare_cached("UPDATE frames SET parent = ?2 WHERE id = ?1")?
                    .execute((Id(child.id), Id(parent.id)))?;
                events::append(connection, now, child.id, "joined", &json!({"parent": parent.id}))?;
            }
            requests::insert(connection, now, caller, &Wish::Spawn { child: child.id, task: child.task.title() })?;
            Ok(true)
        })
    }
}
