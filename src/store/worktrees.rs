//! The worktrees of agents that have one of their own.

use jiff::Timestamp;

use super::codec::{self, At, Id, from_json, id};
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

    /// The worktrees of agents that are over since `before` at the latest, and whose result another agent has been given.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn handed_over_worktrees(&self, before: Timestamp) -> Result<Vec<(FrameId, Worktree)>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT f.id, json_extract(f.launch, '$.worktree') AS worktree
                 FROM frames AS f LEFT JOIN frames AS g ON g.id = f.parent AND g.is_group
                 WHERE json_extract(f.launch, '$.worktree') IS NOT NULL AND f.status IN ('done', 'failed')
                   AND f.since <= ?1 AND EXISTS (SELECT 1 FROM requests AS r
                     WHERE r.child = coalesce(g.id, f.id) AND r.delivered IS NOT NULL)
                 ORDER BY f.depth DESC, f.seq",
            )?;
            let found = statement.query_map([At(before)], |row| Ok((id(row, "id")?, from_json(row, "worktree")?)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Whether an agent that is not over works in a worktree.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn is_worked_in(&self, worktree: &Worktree) -> Result<bool> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT 1 FROM frames WHERE status NOT IN ('done', 'failed', 'cancelled')
                 AND (cwd = ?1 OR substr(cwd, 1, length(?1) + 1) = ?1 || '/')",
            )?;
            Ok(statement.exists([codec::path_text(&worktree.path)?])?)
        })
    }
}
