//! Who would miss a worktree.

use rusqlite::Row;

use crate::core::agent::worktree::Worktree;
use crate::core::id::FrameId;
use crate::store::database::codec::{id, path_text};
use crate::store::error::Result;
use crate::store::housekeeping::door::Housekeeping;

/// An agent that works in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its frame.
    pub frame: FrameId,
    /// The root of that.
    pub root: FrameId,
    /// Whether it failed or was stopped: it could be carried on with.
    pub is_over: bool,
}

impl Housekeeping<'_> {
    /// The agents that work in a worktree or would continue in it: all that are not done.
    pub fn workers(&self, worktree: &Worktree) -> Result<Vec<Worker>> {
        self.0.query(|connection| {
            // What is below a folder comes between its name with `/` and its name with the next character, `0`.
            let mut statement = connection.prepare_cached(
                "SELECT id, root, status FROM frames INDEXED BY unfinished_frames_by_cwd WHERE status <> 'done' AND cwd = ?1
                 UNION ALL SELECT id, root, status FROM frames INDEXED BY unfinished_frames_by_cwd
                 WHERE status <> 'done' AND cwd > ?1 || '/' AND cwd < ?1 || '0'",
            )?;
            let worker = |row: &Row<'_>| {
                let status: String = row.get("status")?;
                let is_over = ["failed", "cancelled"].contains(&status.as_str());
                Ok(Worker { frame: id(row, "id")?, root: id(row, "root")?, is_over })
            };
            let found = statement.query_map([path_text(&worktree.path)?], worker)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }
}
