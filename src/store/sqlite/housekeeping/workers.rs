//! Who would miss a worktree.

use rusqlite::{Connection, Row};

use crate::core::agent::child_worktree::Worktree;
use crate::store::housekeeping::removal::Worker;
use crate::store::sqlite::database::codec::{id, path_text};
use crate::store::sqlite::transaction::{Statements, TxResult};

pub(crate) fn workers(connection: &Connection, worktree: &Worktree) -> TxResult<Vec<Worker>> {
    // What is below a folder comes between its name with `/` and its name with the next character, `0`.
    let sql =
        "SELECT id, root, status FROM frames INDEXED BY unfinished_frames_by_cwd WHERE status <> 'done' AND cwd = ?1
         UNION ALL SELECT id, root, status FROM frames INDEXED BY unfinished_frames_by_cwd
         WHERE status <> 'done' AND cwd > ?1 || '/' AND cwd < ?1 || '0'";
    let worker = |row: &Row<'_>| {
        let status: String = row.get("status")?;
        let is_over = ["failed", "cancelled"].contains(&status.as_str());
        Ok(Worker { frame: id(row, "id")?, root: id(row, "root")?, is_over })
    };
    connection.read_all(sql, [path_text(&worktree.path)?], worker)
}
