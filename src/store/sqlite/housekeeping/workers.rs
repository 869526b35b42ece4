//! Who would miss a worktree.

use rusqlite::{Connection, Row};

use crate::core::agent::child_worktree::Worktree;
use crate::store::housekeeping::removal::Worker;
use crate::store::sqlite::database::codec::{id, path_text};
use crate::store::sqlite::fault::TxResult;

pub(in crate::store::sqlite) fn workers(connection: &Connection, worktree: &Worktree) -> TxResult<Vec<Worker>> {
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
}
