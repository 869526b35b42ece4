//! Which rows belong to a tree: they are exported and removed with it.

use crate::core::id::FrameId;
use crate::store::sql::database::codec::{self, Id};
use crate::store::sql::engine::{Connection, TxResult};

/// A table, and which of its rows belong to the frames in the temporary table `members`.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) of_members: &'static str,
}

/// All tables with rows of a tree, in the order of export. Rows are removed in reverse order: a row before the rows that it refers to,
/// so that SQLite need not count broken references; answers before requests, because only the question says which frame its answer
/// belongs to; log entries after frames. `versions` is about programs. `subscription` and `notifications` are about the person here:
/// they are not exported, and notifications are removed with their frames automatically.
pub(crate) const TABLES: [Table; 9] = [
    Table { name: "events", of_members: "frame IN (SELECT id FROM members)" },
    Table { name: "frames", of_members: "id IN (SELECT id FROM members)" },
    Table { name: "chains", of_members: "root IN (SELECT id FROM members)" },
    Table { name: "replies", of_members: "frame IN (SELECT id FROM members)" },
    Table { name: "attempts", of_members: "frame IN (SELECT id FROM members)" },
    Table { name: "stops", of_members: "frame IN (SELECT id FROM members)" },
    Table { name: "messages", of_members: "frame IN (SELECT id FROM members)" },
    Table { name: "requests", of_members: "frame IN (SELECT id FROM members)" },
    Table {
        name: "answers",
        of_members: "question IN (SELECT id FROM requests WHERE frame IN (SELECT id FROM members))",
    },
];

/// Puts the frames of the trees of `roots` into `members`, together with frames that were deleted before they ran, because
/// their log belongs to the tree. The temporary table belongs to this connection, so readers may have it, too.
pub(crate) fn collect(connection: &Connection, roots: &[FrameId]) -> TxResult<()> {
    connection.run("CREATE TEMP TABLE IF NOT EXISTS members (id TEXT PRIMARY KEY)", [])?;
    connection.run("DELETE FROM members", [])?;
    for root in roots {
        connection.run("INSERT INTO members SELECT id FROM frames WHERE root = ?1", [Id(*root)])?;
    }
    connection.run(
        "INSERT INTO members SELECT e.frame FROM (SELECT id FROM members) AS m
         CROSS JOIN events AS e INDEXED BY deleted_frames
           ON e.parent IS NOT NULL AND e.parent = m.id
         WHERE true ON CONFLICT DO NOTHING",
        [],
    )
}

/// Whether the rows of a table have a number that says in which order they were created.
pub(crate) fn has_seq(table: &str) -> bool {
    !["chains", "replies", "answers", "versions"].contains(&table)
}

/// The columns of a table that are exported: not generated ones, nor the row number, which belongs to this database.
pub(crate) fn columns(connection: &Connection, table: &str) -> TxResult<Vec<String>> {
    connection.read_all(connection.columns(), [table], |row| row.get(0))
}

/// The frames in `members`, parents first.
pub(crate) fn frames(connection: &Connection) -> TxResult<Vec<FrameId>> {
    connection.read_all("SELECT id FROM frames WHERE id IN (SELECT id FROM members) ORDER BY depth, seq", [], |row| {
        codec::id(row, "id")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::in_file;

    #[test]
    fn every_table_either_belongs_to_trees_or_does_not() {
        let (_temp, store) = in_file();
        let mut statement = store
            .sqlite()
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            .unwrap();
        let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(|name| name.unwrap()).collect();
        for name in names {
            let of_person = ["versions", "subscription", "notifications"].contains(&name.as_str());
            assert!(of_person || TABLES.iter().any(|table| table.name == name), "{name} is in no tree");
        }
    }
}
