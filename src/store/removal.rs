//! Removing finished trees from the database.

use rusqlite::{Connection, Row};

use super::codec::{Id, count, from_json, id, time};
use super::error::Fault;
use super::members::{self, TABLES, Table};
use super::{Result, Store};
use crate::core::id::FrameId;
use crate::core::retention::{Age, Retention};

/// A tree that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removable {
    /// Its root.
    pub root: FrameId,
    /// The root's task in a few words.
    pub title: String,
    /// How many frames it has.
    pub frames: u64,
    /// What made it removable.
    pub age: Age,
}

// `?1` is a root, or null for all of them.
const AGES: &str = "SELECT top.id, top.title, top.state, count(*) AS frames, max(f.since) AS latest,
       sum(f.status NOT IN ('done', 'failed', 'cancelled')) AS open
     FROM frames AS top JOIN frames AS f ON f.root = top.id
     WHERE top.parent IS NULL AND (?1 IS NULL OR top.id = ?1) GROUP BY top.id ORDER BY top.seq";

const NEEDED: &str = "SELECT 1 FROM frames AS f JOIN requests AS r ON r.child = f.id AND r.withdrawn IS NULL
       JOIN frames AS other ON other.id = r.frame WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f JOIN attempts AS a ON a.frame = f.id
       JOIN attempts AS fork ON fork.resumed = a.session JOIN frames AS other ON other.id = fork.frame
       WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f JOIN attempts AS a ON a.frame = f.id
       JOIN frames AS other ON other.checkpoint = a.session WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f JOIN frames AS other ON json_extract(other.baseline, '$.frame') = f.id
       WHERE f.root = ?1 AND other.root <> ?1 AND other.checkpoint IS NULL";

impl Store {
    /// The trees that may be removed, the oldest first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn removable(&self, retention: Retention) -> Result<Vec<Removable>> {
        self.read(|connection| removable(connection, None, retention))
    }

    /// Removes a tree from the database, its log with it, if it may still be removed. Returns whether it did so.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn remove_tree(&self, root: FrameId, retention: Retention) -> Result<bool> {
        self.write(|connection| {
            if removable(connection, Some(root), retention)?.is_empty() {
                return Ok(false);
            }
            members::collect(connection, root)?;
            // The rows of a tree refer to each other.
            connection.pragma_update(None, "defer_foreign_keys", true)?;
            for Table { name, of_members } in TABLES {
                connection.execute(&format!("DELETE FROM {name} WHERE {of_members}"), [])?;
            }
            Ok(true)
        })
    }

    /// Gives the space of removed rows back to the file system. Returns by how many bytes the database has shrunk. When
    /// other processes have the database open, it shrinks when they close it.
    ///
    /// # Errors
    ///
    /// The database cannot be written, or others are writing it for too long.
    pub fn shrink(&self) -> Result<u64> {
        let length = || std::fs::metadata(self.dir.database()).map_or(0, |file| file.len());
        let before = length();
        self.wrote.set(true);
        self.query(|connection| {
            connection.execute_batch("VACUUM")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(())
        })?;
        Ok(before.saturating_sub(length()))
    }
}

fn removable(
    connection: &Connection,
    root: Option<FrameId>,
    retention: Retention,
) -> std::result::Result<Vec<Removable>, Fault> {
    let mut statement = connection.prepare_cached(AGES)?;
    let trees = statement.query_map([root.map(Id)], from_row)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut found = Vec::new();
    for mut tree in trees.into_iter().filter(|tree| retention.removes(&tree.age)) {
        tree.age.needed = connection.prepare_cached(NEEDED)?.exists([Id(tree.root)])?;
        found.extend(retention.removes(&tree.age).then_some(tree));
    }
    Ok(found)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Removable> {
    Ok(Removable {
        root: id(row, "id")?,
        title: row.get("title")?,
        frames: count(row, "frames")?,
        age: Age {
            root: from_json(row, "state")?,
            open: count(row, "open")?,
            latest: time(row, "latest")?,
            needed: false,
        },
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::outcome::Outcome;
    use crate::store::Caller;
    use crate::store::testing::{ask, new, reply, store};

    fn everything() -> Retention {
        Retention { before: Timestamp::MAX, failed: true }
    }

    /// A tree that is done, with a child that was withdrawn before it ran, a question and its answer.
    fn done(store: &Store) -> Caller {
        let first = store.start(store.root());
        store.request_child(first, None, &new("never"), "never").unwrap();
        store.end(first, &Outcome::Unhandled);
        store.try_again(first.frame).unwrap();
        let second = store.start(first.frame);
        let (_, child) = store.request_child(second, None, &new("child"), "child").unwrap();
        let question = store.request(second, None, &ask("When?")).unwrap();
        store.end(second, &Outcome::Requested);
        store.answer(question, "now").unwrap();
        store.end(store.start(child), &reply("42"));
        let last = store.start(first.frame);
        store.end(last, &reply("done"));
        last
    }

    fn rows(store: &Store) -> u32 {
        let count = |table: &Table| -> u32 {
            let sql = format!("SELECT count(*) FROM {}", table.name);
            store.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        TABLES.iter().map(count).sum()
    }

    #[test]
    fn of_a_tree_that_is_removed_nothing_is_left() {
        let (_temp, store) = store();
        let root = done(&store).frame;
        let removable = store.removable(everything()).unwrap();
        assert_eq!(removable.iter().map(|tree| (tree.root, tree.frames)).collect::<Vec<_>>(), [(root, 2)]);
        assert!(rows(&store) > 10);
        assert!(store.remove_tree(root, everything()).unwrap());
        assert_eq!(rows(&store), 0);
        assert!(!store.remove_tree(root, everything()).unwrap(), "it is gone");
        store.shrink().unwrap();
    }

    #[test]
    fn other_trees_are_left_as_they_are() {
        let (_temp, store) = store();
        let (waiting, question) = store.asking("When?");
        let before = rows(&store);
        let root = done(&store).frame;
        assert!(!store.remove_tree(waiting, everything()).unwrap());
        assert!(store.remove_tree(root, everything()).unwrap());
        assert_eq!(rows(&store), before);
        store.answer(question, "now").unwrap();
    }

    #[test]
    fn a_tree_that_another_one_needs_stays() {
        let (_temp, store) = store();
        let last = done(&store);
        let other = store.start(store.root());
        assert_eq!(store.removable(everything()).unwrap().len(), 1);
        store
            .connection
            .execute("UPDATE attempts SET resumed = ?1 WHERE session = ?2", (Id(last.attempt), Id(other.attempt)))
            .unwrap();
        assert_eq!(store.removable(everything()).unwrap(), []);
        assert!(!store.remove_tree(last.frame, everything()).unwrap());
    }
}
