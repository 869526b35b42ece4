//! Removes finished trees from the database.

use std::ops::ControlFlow;

use crate::core::housekeeping::retention::{Age, Retention};
use crate::core::housekeeping::rights::Right;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::housekeeping::removable::{Decided, Removable, RemovableOf, RemovedTrees, WorkedSession};
use crate::store::sql::database::codec::{Id, count, from_json, id, maybe_time, path, time};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::housekeeping::{objects, orphan_files};
use crate::store::sql::tables::chains;
use crate::store::sql::tables::tree_rows::{self, TABLES, Table};

/// The age of trees, the oldest first. `$of` selects them.
macro_rules! ages {
    ($of:literal) => {
        concat!(
            "SELECT top.id, top.title, top.state, max(f.since) AS latest,
               count(*) FILTER (WHERE f.status NOT IN ('done', 'failed', 'cancelled')) AS open
             FROM frames AS top CROSS JOIN frames AS f ON f.root = top.id WHERE ",
            $of,
            " GROUP BY top.seq"
        )
    };
}

const ALL_AGES: &str = ages!("top.parent IS NULL");
const AGE: &str = ages!("top.parent IS NULL AND top.id = ?1");

// From the frames of the tree outwards, each step by an index: the planner must not begin with all frames.
const NEEDED: &str = "SELECT 1 FROM frames AS f CROSS JOIN requests AS r ON r.child = f.id AND r.status <> 'withdrawn'
       CROSS JOIN frames AS other ON other.id = r.frame WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f CROSS JOIN attempts AS a ON a.frame = f.id
       CROSS JOIN attempts AS fork ON fork.resumed = a.session CROSS JOIN frames AS other ON other.id = fork.frame
       WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f CROSS JOIN attempts AS a ON a.frame = f.id
       CROSS JOIN frames AS other ON other.checkpoint = a.session WHERE f.root = ?1 AND other.root <> ?1
     UNION ALL SELECT 1 FROM frames AS f CROSS JOIN frames AS other INDEXED BY frames_by_baseline
       ON other.baseline_frame IS NOT NULL AND other.baseline_frame = f.id
       WHERE f.root = ?1 AND other.root <> ?1 AND other.checkpoint IS NULL";

const ATTEMPTS: &str = "SELECT count(*) AS made FROM frames AS f CROSS JOIN attempts AS a INDEXED BY attempts_by_frame
     ON a.frame = f.id WHERE f.root = ?1";

pub(crate) fn removable(connection: &Connection, of: RemovableOf) -> TxResult<Vec<Removable>> {
    match of {
        RemovableOf::Retention(retention) => all_removable(connection, retention),
        RemovableOf::Root(root) => {
            chains::check_other_host(connection, root)?;
            Ok(aged(connection, root)?.into_iter().collect())
        }
    }
}

/// The last attempt of each session is the one that wrote to it last.
const SESSIONS: &str = "SELECT f.id, f.cwd, f.launch, a.session, a.ended
     FROM frames AS f CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = f.id
     WHERE f.root = ?1 AND NOT EXISTS (SELECT 1 FROM attempts AS later INDEXED BY attempts_by_frame
       WHERE later.frame = f.id AND later.session = a.session AND later.seq > a.seq)
     ORDER BY f.depth, f.seq, a.seq DESC";

pub(crate) fn sessions(connection: &Connection, root: FrameId) -> TxResult<Vec<WorkedSession>> {
    connection.read_all(SESSIONS, [Id(root)], |row| {
        Ok(WorkedSession {
            frame: id(row, "id")?,
            session: id(row, "session")?,
            cwd: path(row, "cwd")?,
            launch: from_json(row, "launch")?,
            ended: maybe_time(row, "ended")?,
        })
    })
}

pub(crate) fn remove_trees(store: &Database, trees: &[Decided], retention: Retention) -> Result<RemovedTrees> {
    // Otherwise SQLite writes each page that a `DELETE` changes to a temporary file, too.
    store.query(|connection| match connection.sqlite() {
        Some(sqlite) => Ok(sqlite.pragma_update(None, "temp_store", "MEMORY")?),
        None => Ok(()),
    })?;
    let (removed, frames) = store.write(Step::Remove, |connection| {
        // The rows of a tree refer to each other.
        connection.defer_references()?;
        let mut removed = Vec::new();
        for Decided { root, attempts } in trees {
            chains::check_other_host(connection, *root)?;
            chains::check_right(connection, *root, Right::Start)?;
            let may_go = |tree: &Removable| tree.attempts == *attempts && retention.removes(&tree.age);
            if aged(connection, *root)?.as_ref().is_some_and(may_go) {
                chains::leave_family(connection, *root)?;
                removed.push(*root);
            }
        }
        tree_rows::collect(connection, &removed)?;
        let frames = tree_rows::frames(connection)?;
        for Table { name, of_members } in TABLES.iter().rev() {
            connection.run(&format!("DELETE FROM {name} WHERE {of_members}"), [])?;
        }
        Ok((removed, frames))
    })?;
    if !removed.is_empty() {
        objects::sweep(store, None);
    }
    Ok(RemovedTrees { roots: removed, trash: orphan_files::discard_frame_dirs(store, &frames)? })
}

pub(crate) fn shrink(store: &Database) -> Result<u64> {
    objects::sweep(store, None);
    let length = || std::fs::metadata(store.dir.database()).map_or(0, |file| file.len());
    let before = length();
    store.wrote.set(true);
    store.query(|connection| {
        // A server frees space itself.
        let Some(connection) = connection.sqlite() else { return Ok(()) };
        let pragma = |name: &str| connection.pragma_query_value::<i64, _>(None, name, |row| row.get(0));
        if pragma("auto_vacuum")? == INCREMENTAL {
            while pragma("freelist_count")? > 0 {
                let free = pragma("freelist_count")?;
                // Each row that this yields is a page that was moved.
                let mut step = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES_IN_A_STEP})"))?;
                let mut moved = step.query([])?;
                while moved.next()?.is_some() {}
                drop(moved);
                if pragma("freelist_count")? >= free {
                    break;
                }
            }
        } else if before <= LARGEST_COPY {
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
        }
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    })?;
    Ok(before.saturating_sub(length()))
}

/// SQLite's mode for a database whose free pages can be returned one by one.
const INCREMENTAL: i64 = 2;
/// Moving this many pages takes milliseconds.
const PAGES_IN_A_STEP: u32 = 500;
/// Copying a database of this size, in bytes, takes less than a second.
const LARGEST_COPY: u64 = 64 << 20;

fn all_removable(connection: &Connection, retention: Retention) -> TxResult<Vec<Removable>> {
    let trees = connection.read_all(ALL_AGES, [], from_row)?;
    let (mut found, elsewhere) = (Vec::new(), chains::of_other_hosts(connection)?);
    let may_go = |tree: &Removable| retention.removes(&tree.age) && !elsewhere.contains(&tree.root);
    for tree in trees.into_iter().filter(may_go) {
        let tree = completed(connection, tree)?;
        found.extend(retention.removes(&tree.age).then_some(tree));
    }
    Ok(found)
}

fn aged(connection: &Connection, root: FrameId) -> TxResult<Option<Removable>> {
    connection.read_first(AGE, [Id(root)], from_row)?.map(|tree| completed(connection, tree)).transpose()
}

fn completed(connection: &Connection, mut tree: Removable) -> TxResult<Removable> {
    tree.age.needed = connection.finds(NEEDED, [Id(tree.root)])?;
    let sql = "SELECT id, status = 'done' AS done, is_group FROM frames WHERE root = ?1 ORDER BY depth, seq";
    connection.each(sql, [Id(tree.root)], |row| {
        tree.frames.push((id(row, "id")?, row.get("done")?));
        tree.agents += usize::from(!row.get::<_, bool>("is_group")?);
        Ok(ControlFlow::Continue(()))
    })?;
    tree.attempts = connection.read_one(ATTEMPTS, [Id(tree.root)], |row| count(row, "made"))?;
    Ok(tree)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Removable> {
    Ok(Removable {
        root: id(row, "id")?,
        title: row.get("title")?,
        age: Age {
            root: from_json(row, "state")?,
            open: count(row, "open")?,
            latest: time(row, "latest")?,
            needed: false,
        },
        agents: 0,
        attempts: 0,
        frames: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::Store;
    use crate::store::records::Caller;
    use crate::store::testing::{ask, new, reply, store};

    fn everything() -> Retention {
        Retention { before: Timestamp::MAX, failed: true, open: false }
    }

    /// A tree that is done, with a child that was withdrawn before it ran, a question and its answer.
    fn done(store: &Store) -> Caller {
        let first = store.start(store.root());
        store.request_child(first, None, &new("never"), "never").unwrap();
        store.end(first, &reply("SGN_UNHANDLED"));
        store.try_again(first.frame).unwrap();
        let second = store.start(first.frame);
        let (_, child) = store.request_child(second, None, &new("child"), "child").unwrap();
        let question = store.request(second, None, &[ask("When?")]).unwrap()[0];
        store.end(second, &Ending::Suspended);
        store.answer(question, "now").unwrap();
        store.end(store.start(child), &reply("42"));
        let last = store.start(first.frame);
        store.end(last, &reply("done"));
        last
    }

    /// The tree as it is now.
    fn decided(store: &Store, root: FrameId) -> Decided {
        let attempts = store.housekeeping().removable(root.into()).unwrap().pop().map_or(0, |tree| tree.attempts);
        Decided { root, attempts }
    }

    fn rows(store: &Store) -> u32 {
        let count = |table: &Table| -> u32 {
            let sql = format!("SELECT count(*) FROM {}", table.name);
            store.database().query(|connection| connection.read_one(&sql, [], |row| row.get(0))).unwrap()
        };
        TABLES.iter().map(count).sum()
    }

    #[test]
    fn a_tree_is_removed_with_everything_that_belongs_to_it() {
        let (_temp, store) = store();
        let root = done(&store).frame;
        let removable = store.housekeeping().removable(everything().into()).unwrap();
        assert_eq!(removable.iter().map(|tree| (tree.root, tree.frames.len())).collect::<Vec<_>>(), [(root, 2)]);
        assert!(rows(&store) > 10);
        assert_eq!(store.remove_trees(&[decided(&store, root)], everything()), [root]);
        assert_eq!(rows(&store), 0);
        assert_eq!(store.remove_trees(&[decided(&store, root)], everything()), [], "it is gone");
        let length = || std::fs::metadata(store.dir().database()).map_or(0, |file| file.len());
        let before = length();
        let freed = store.housekeeping().shrink().unwrap();
        assert_eq!(freed, before.saturating_sub(length()));
    }

    #[test]
    fn a_tree_in_which_an_agent_has_been_started_since_stays() {
        let (_temp, store) = store();
        let root = store.root();
        let before = decided(&store, root);
        let caller = store.start(root);
        store.end(caller, &reply("done"));
        assert_eq!(store.remove_trees(&[before], Retention::NOTHING), []);
        let now = decided(&store, root);
        assert_eq!(store.remove_trees(&[now], Retention::NOTHING), [root]);
    }

    #[test]
    fn other_trees_are_left_as_they_are() {
        let (_temp, store) = store();
        let (waiting, question) = store.asking("When?");
        let before = rows(&store);
        let root = done(&store).frame;
        let both = [waiting, root].map(|root| decided(&store, root));
        assert_eq!(store.remove_trees(&both, everything()), [root]);
        assert_eq!(rows(&store), before);
        store.answer(question, "now").unwrap();
    }

    #[test]
    fn a_tree_that_another_one_needs_stays() {
        let (_temp, store) = store();
        let last = done(&store);
        let other = store.start(store.root());
        assert_eq!(store.housekeeping().removable(everything().into()).unwrap().len(), 1);
        store.execute(
            "UPDATE attempts SET resumed = ?1 WHERE id = ?2",
            (Id(store.attempts(last.frame).unwrap()[0].session), Id(other.attempt)),
        );
        assert_eq!(store.housekeeping().removable(everything().into()).unwrap(), []);
        assert_eq!(store.remove_trees(&[decided(&store, last.frame)], everything()), []);
    }
}
