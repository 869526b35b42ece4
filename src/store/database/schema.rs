//! The database: which version it has, and how an older one is brought to the newest.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::failpoint::{self, Moment, Step};
use crate::store::database::error::Fault;
use crate::store::database::migrations::STEPS;
use crate::store::database::open;

/// Marks a database as one of this program ("agnt").
const APPLICATION: i32 = 0x6167_6e74;

/// What a file in the database's place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A database that can be used as it is.
    Current,
    /// A database, perhaps an empty one, that needs [`migrate`].
    Older,
    /// A database of a newer version of the program.
    Newer(u32),
    /// Somebody else's database.
    Foreign,
}

/// The newest version that this program knows.
pub(crate) const fn known() -> u32 {
    STEPS.len() as u32
}

/// Looks at a database, without changing it.
pub(crate) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(match (application, version) {
        (APPLICATION, version) if version == known() => Found::Current,
        (APPLICATION, version) if version > known() => Found::Newer(version),
        (APPLICATION, _) => Found::Older,
        (0, 0) if is_empty(connection)? => Found::Older,
        _ => Found::Foreign,
    })
}

/// Whether the header of a database file says that it can be used as it is.
pub(crate) fn is_current(path: &Path) -> bool {
    let mut header = [0; 100];
    let number =
        |header: &[u8; 100], at| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // The positions are part of SQLite's file format.
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok()
        && number(&header, 60) == known()
        && number(&header, 68) == APPLICATION.cast_unsigned()
}

/// Brings a database to the newest version, in one transaction.
pub(crate) fn migrate(connection: &Connection) -> Result<(), Fault> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in STEPS.iter().skip(version as usize) {
        transaction.execute_batch(step)?;
    }
    if version < known() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", known())?;
    }
    open::meet_full_disk(&transaction, Step::Migrate)?;
    failpoint::at(Step::Migrate, Moment::Within);
    transaction.commit()?;
    Ok(())
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
    fn a_database_of_every_older_version_is_brought_to_the_newest() {
        for version in 1..known() {
            let connection = memory();
            STEPS[..version as usize].iter().for_each(|step| connection.execute_batch(step).unwrap());
            connection.pragma_update(None, "application_id", APPLICATION).unwrap();
            connection.pragma_update(None, "user_version", version).unwrap();
            assert_eq!(inspect(&connection).unwrap(), Found::Older);
            migrate(&connection).unwrap();
            assert_eq!(inspect(&connection).unwrap(), Found::Current);
            connection.execute("UPDATE requests SET call = NULL, used_by = NULL", []).unwrap();
        }
    }

    /// A database of version `version` that holds `rows`, brought to the newest.
    fn migrated(version: u32, rows: &str) -> Connection {
        let connection = memory();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        STEPS[..version as usize].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.execute_batch(rows).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        migrate(&connection).unwrap();
        connection
    }

    #[test]
    fn an_attempt_keeps_its_requests_when_it_gets_an_id_of_its_own() {
        let connection = migrated(
            12,
            "INSERT INTO frames (id, root, depth, status, state, since, created, title, cwd, limits, launch, task)
             VALUES ('f', 'f', 1, '', '{}', 0, 0, '', '', '', '', '');
             INSERT INTO attempts (session, frame, waited_since, output_from, errors_from, runner, began)
             VALUES ('s', 'f', 0, 0, 0, 1, 0);
             INSERT INTO requests (id, frame, attempt, kind, made, wish, carried_by, used_by, shown_in)
             VALUES ('r', 'f', 's', 'ask', 0, '{}', 's', 's', 's');",
        );
        let ids: (String, String) =
            connection.query_row("SELECT id, session FROM attempts", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(ids, ("s".into(), "s".into()));
        assert!(connection.execute("UPDATE requests SET attempt = 'x'", []).is_err(), "it refers to attempts");
        connection.execute("UPDATE requests SET attempt = 's', carried_by = 's'", []).unwrap();
        let broken = connection.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap();
        assert!(!broken);
    }

    #[test]
    fn an_agent_of_an_older_version_has_nothing_to_be_given_again() {
        let connection = migrated(
            13,
            "INSERT INTO frames (id, root, depth, status, state, since, created, title, cwd, limits, launch, task)
             VALUES ('f', 'f', 1, '', '{}', 0, 0, '', '', '', '', '');
             INSERT INTO attempts (id, frame, waited_since, output_from, errors_from, runner, began)
             VALUES ('a', 'f', 0, 0, 0, 1, 0);",
        );
        let columns = "SELECT situation, mode, notice FROM frames JOIN attempts ON frame = frames.id";
        let found: [Option<String>; 3] =
            connection.query_row(columns, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
        assert_eq!(found, [None, None, None]);
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
    fn other_databases_are_told_apart() {
        let connection = memory();
        connection.execute_batch("CREATE TABLE albums (name TEXT)").unwrap();
        assert_eq!(inspect(&connection).unwrap(), Found::Foreign);
        let connection = memory();
        migrate(&connection).unwrap();
        connection.pragma_update(None, "user_version", known() + 1).unwrap();
        assert_eq!(inspect(&connection).unwrap(), Found::Newer(known() + 1));
    }

    #[test]
    fn the_log_is_append_only_as_long_as_its_frame_is_there() {
        let connection = memory();
        migrate(&connection).unwrap();
        connection
            .execute_batch(
                "INSERT INTO frames (id, root, depth, status, state, since, created, title, cwd, limits, launch, task)
                 VALUES ('f', 'f', 1, '', '{}', 0, 0, '', '', '', '', '');
                 INSERT INTO events (at, frame, kind, detail) VALUES (1, 'f', '', '{}'), (1, 'gone', '', '{}');
                 DELETE FROM events WHERE frame = 'gone'",
            )
            .unwrap();
        for sql in ["DELETE FROM events", "UPDATE events SET kind = 'x'"] {
            assert!(connection.execute_batch(sql).unwrap_err().to_string().contains("append-only"), "{sql}");
        }
    }
}
