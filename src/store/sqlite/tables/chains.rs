//! The rows of chains: what holds for all of one.

use rusqlite::Connection;

use crate::core::chain::limits::Limits;
use crate::core::id::FrameId;
use crate::store::sqlite::database::codec::{self, Id, from_json};
use crate::store::sqlite::transaction::{Statements, TxResult};

/// The limits of a tree.
pub(crate) fn limits(connection: &Connection, root: FrameId) -> TxResult<Limits> {
    connection.read_one("SELECT limits FROM chains WHERE root = ?1", [Id(root)], |row| from_json(row, "limits"))
}

/// Gives a tree that is being made its limits.
pub(crate) fn insert(connection: &Connection, root: FrameId, limits: Limits) -> TxResult<()> {
    let limits = codec::json(&limits, &[])?;
    connection.run("INSERT INTO chains (root, limits) VALUES (?1, ?2)", (Id(root), limits))
}

/// Gives a tree other limits.
pub(crate) fn set_limits(connection: &Connection, root: FrameId, limits: Limits) -> TxResult<()> {
    let limits = codec::json(&limits, &[])?;
    connection.run("UPDATE chains SET limits = ?2 WHERE root = ?1", (Id(root), limits))
}
