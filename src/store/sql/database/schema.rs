//! The version of a database, and its migration to the newest.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::failpoint::{self, Moment, Step};
use crate::store::error::StoreError;
use crate::store::housekeeping::archive::writer::SCHEMA;
use crate::store::sql::database::migrations::STEPS;
use crate::store::sql::engine::{TxResult, fault};

/// Marks a database as created by this program ("acli").
const APPLICATION: i32 = 0x6163_6c69;

/// Marks of versions before the first release ("agnt", "agcl"). Their chains can no longer be read.
pub(crate) const UNRELEASED: [i32; 2] = [0x6167_6e74, 0x6167_636c];

/// The kind of file at the database's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A database that can be used without a migration.
    Current,
    /// A database, perhaps an empty one, that needs [`migrate`].
    Older,
    /// A database of a newer version of the program.
    Newer(u32),
    /// A database of a version from before the first release.
    Unreleased,
    /// A file of another program.
    Foreign,
}

/// The newest version that this program knows.
pub(crate) const fn known() -> u32 {
    STEPS.len() as u32
}

const _: () = assert!(known() == SCHEMA, "archives have the rows of the tables");

/// Inspects a database without changing it.
pub(crate) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    let version = version(connection)?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(match (application, version) {
        (APPLICATION, version) if version == known() => Found::Current,
        (APPLICATION, version) if version > known() => Found::Newer(version),
        (APPLICATION, _) => Found::Older,
        (application, _) if UNRELEASED.contains(&application) => Found::Unreleased,
        (0, 0) if is_empty(connection)? => Found::Older,
        _ => Found::Foreign,
    })
}

/// Whether a database can be used without a migration, according to the header of its file.
pub(crate) fn is_current(path: &Path) -> bool {
    let mut header = [0; 100];
    let number =
        |header: &[u8; 100], at| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // The positions are part of SQLite's file format.
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok()
        && number(&header, 60) == known()
        && number(&header, 68) == APPLICATION.cast_unsigned()
}

/// Fails in a transaction that is about to write to a database whose tables a newer program has changed since it was opened:
/// what this program would write may be useless or harmful.
pub(crate) fn still_known(connection: &Connection, path: &Path) -> TxResult<()> {
    match version(connection)? {
        found if found > known() => Err(newer(path, found).into()),
        _ => Ok(()),
    }
}

/// The error of a database that a newer program has written.
pub(crate) fn newer(path: &Path, found: u32) -> StoreError {
    StoreError::Newer { path: path.to_owned(), found, known: known() }
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Migrates a database to the newest version, in one transaction.
pub(crate) fn migrate(connection: &Connection) -> TxResult<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have migrated it first.
    let version = version(&transaction)?;
    for step in STEPS.iter().skip(version as usize) {
        transaction.execute_batch(step)?;
    }
    if version < known() {
        mark(&transaction, known())?;
    }
    fault::meet_full_disk(&transaction, Step::Migrate)?;
    failpoint::at(Step::Migrate, Moment::Within);
    transaction.commit()?;
    Ok(())
}

/// Marks a database as created by this program, in this version.
pub(crate) fn mark(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", version)
}

/// How a database differs from one that the steps create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// An index is missing. `sql` creates it.
    MissingIndex { name: String, sql: String },
    /// Something else is missing or different.
    Other { name: String },
}

/// How a database of the newest version differs from one that the steps create: an unreleased build may have created it when
/// the newest step was different. Additions are harmless.
pub(crate) fn differences(connection: &Connection) -> TxResult<Vec<Difference>> {
    let new = Connection::open_in_memory()?;
    STEPS.iter().try_for_each(|step| new.execute_batch(step))?;
    let found: HashMap<_, _> = objects(connection)?.into_iter().map(|(name, kind, sql)| (name, (kind, sql))).collect();
    let mut differences = Vec::new();
    for (name, kind, sql) in objects(&new)? {
        let is_same = match found.get(&name) {
            None => {
                let is_made = found.values().any(|(kind, _)| kind == "table");
                differences.push(if kind == "index" && is_made {
                    Difference::MissingIndex { name, sql }
                } else {
                    Difference::Other { name }
                });
                continue;
            }
            // Columns may have been added in another order.
            Some((other, _)) if kind == "table" => {
                let has = columns(connection, &name)?;
                *other == kind && columns(&new, &name)?.is_subset(&has)
            }
            Some((other, found)) => *other == kind && words(found).eq(words(&sql)),
        };
        if !is_same {
            differences.push(Difference::Other { name });
        }
    }
    Ok(differences)
}

fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split_whitespace()
}

/// The names, kinds and definitions of the objects in a database, except those that SQLite creates itself.
fn objects(connection: &Connection) -> TxResult<Vec<(String, String, String)>> {
    let sql = "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let mut statement = connection.prepare_cached(sql)?;
    let objects = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(objects.collect::<rusqlite::Result<_>>()?)
}

/// The columns of a table, with their types and whether they are generated.
fn columns(connection: &Connection, table: &str) -> TxResult<BTreeSet<(String, String, bool, i64)>> {
    let mut statement = connection.prepare("SELECT name, type, \"notnull\", hidden FROM pragma_table_xinfo(?1)")?;
    let columns = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    Ok(columns.collect::<rusqlite::Result<_>>()?)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn no_removal_reads_a_whole_table_to_find_what_refers_to_a_row() {
        let connection = memory();
        migrate(&connection).unwrap();
        let of = |sql: &str, columns: [usize; 2]| -> Vec<(String, String)> {
            let mut statement = connection.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(columns[0])?, row.get(columns[1])?)));
            rows.unwrap().map(|row| row.unwrap()).collect()
        };
        let tables = of("SELECT name, name FROM sqlite_schema WHERE type = 'table'", [0, 1]);
        let references = tables.iter().flat_map(|(table, _)| {
            let columns = of(&format!("PRAGMA foreign_key_list({table})"), [3, 2]);
            columns.into_iter().map(move |(column, _)| (table, column))
        });
        for (table, column) in references {
            let plan = of(&format!("EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {column} = 'x'"), [3, 3]);
            assert!(plan.iter().all(|(step, _)| step.starts_with("SEARCH")), "{table}.{column}: {plan:?}");
        }
    }

    #[test]
    fn an_empty_database_is_brought_to_the_newest_version_once() {
        let connection = memory();
        assert_eq!(inspect(&connection).unwrap(), Found::Older);
        migrate(&connection).unwrap();
        assert_eq!(inspect(&connection).unwrap(), Found::Current);
        migrate(&connection).unwrap();
    }

    #[test]
    fn what_an_earlier_build_left_out_is_found() {
        let connection = memory();
        migrate(&connection).unwrap();
        assert_eq!(differences(&connection).unwrap(), []);
        connection
            .execute_batch("CREATE INDEX more ON frames (depth); ALTER TABLE frames ADD COLUMN more TEXT")
            .unwrap();
        assert_eq!(differences(&connection).unwrap(), [], "more does no harm");
        connection.execute_batch("DROP INDEX unfiled_questions; ALTER TABLE attempts DROP COLUMN given").unwrap();
        let found = differences(&connection).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|difference| match difference {
                Difference::MissingIndex { name, .. } => format!("index {name}"),
                Difference::Other { name } => name.clone(),
            })
            .collect();
        assert_eq!(names, ["attempts", "index unfiled_questions"]);
        if let Difference::MissingIndex { sql, .. } = &found[1] {
            connection.execute_batch(sql).unwrap();
        }
        assert_eq!(differences(&connection).unwrap(), [Difference::Other { name: "attempts".into() }]);
    }

    #[test]
    fn databases_of_others_are_recognised() {
        let connection = memory();
        connection.execute_batch("CREATE TABLE albums (name TEXT)").unwrap();
        assert_eq!(inspect(&connection).unwrap(), Found::Foreign);
        let connection = memory();
        migrate(&connection).unwrap();
        connection.pragma_update(None, "user_version", known() + 1).unwrap();
        assert_eq!(inspect(&connection).unwrap(), Found::Newer(known() + 1));
        for mark in UNRELEASED {
            connection.pragma_update(None, "application_id", mark).unwrap();
            assert_eq!(inspect(&connection).unwrap(), Found::Unreleased);
        }
    }

    #[test]
    fn the_log_is_append_only_as_long_as_its_frame_is_there() {
        let connection = memory();
        migrate(&connection).unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = OFF;
                 INSERT INTO frames (id, root, depth, state, since, created, session, title, cwd, launch, task)
                 VALUES ('f', 'f', 1, '{\"state\": \"ready\"}', 0, 0, '', '', '', '', '{}');
                 INSERT INTO events (at, frame, kind, detail) VALUES (1, 'f', '', '{}'), (1, 'gone', '', '{}');
                 DELETE FROM events WHERE frame = 'gone'",
            )
            .unwrap();
        for sql in ["DELETE FROM events", "UPDATE events SET kind = 'x'"] {
            assert!(connection.execute_batch(sql).unwrap_err().to_string().contains("append-only"), "{sql}");
        }
    }
}
