//! The worktrees of agents, and the agents that need them.

use crate::core::agent::child_worktree::Worktree;
use crate::core::id::FrameId;
use crate::store::housekeeping::removable::Worker;
use crate::store::records::WorktreesOf;
use crate::store::sql::database::codec::{At, Id, from_json, id, path_text};
use crate::store::sql::engine::{Connection, Row, TxResult};

const OF_ROOTS: &str = "SELECT id, worktree FROM frames INDEXED BY roots_in_worktrees
     WHERE parent IS NULL AND worktree_path IS NOT NULL ORDER BY worktree_path";
const OF_CHAIN: &str = "SELECT id, worktree FROM frames
     WHERE root = (SELECT root FROM frames WHERE id = ?1) AND worktree IS NOT NULL
     ORDER BY depth DESC, seq";
const HANDED_OVER: &str = "SELECT f.id, f.worktree
     FROM frames AS f LEFT JOIN frames AS g ON g.id = f.parent AND g.is_group
     WHERE f.worktree IS NOT NULL AND f.status = 'done'
       AND f.since <= ?1 AND EXISTS (SELECT 1 FROM requests AS r
         WHERE r.child = coalesce(g.id, f.id) AND r.status = 'delivered')
     ORDER BY f.depth DESC, f.seq";

pub(crate) fn worktrees(connection: &Connection, of: WorktreesOf) -> TxResult<Vec<(FrameId, Worktree)>> {
    let worktree = |row: &Row<'_>| Ok((id(row, "id")?, from_json(row, "worktree")?));
    let found = match of {
        WorktreesOf::Roots => connection.read_all(OF_ROOTS, [], worktree)?,
        WorktreesOf::Chain(frame) => connection.read_all(OF_CHAIN, [Id(frame)], worktree)?,
        WorktreesOf::HandedOver { before } => connection.read_all(HANDED_OVER, [At(before)], worktree)?,
    };
    Ok(found)
}

pub(crate) fn workers(connection: &Connection, worktree: &Worktree) -> TxResult<Vec<Worker>> {
    // Everything below a folder sorts between its name with `/` and its name with the next character, `0`.
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
