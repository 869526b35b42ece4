//! The worktrees of agents that have one of their own.

use super::codec::{Id, from_json, id};
use super::{Result, Store};
use crate::core::id::FrameId;
use crate::core::worktree::Worktree;

impl Store {
    /// The worktrees of all frames in the tree of `frame`, the deepest frames first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn worktrees(&self, frame: FrameId) -> Result<Vec<(FrameId, Worktree)>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, json_extract(launch, '$.worktree') AS worktree FROM frames
                 WHERE root = (SELECT root FROM frames WHERE id = ?1) AND json_extract(launch, '$.worktree') IS NOT NULL
                 ORDER BY depth DESC, seq",
            )?;
            let found = statement.query_map([Id(frame)], |row| Ok((id(row, "id")?, from_json(row, "worktree")?)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }
}
