//! The tables, as numbered steps. A step that was released is never changed: the next change is another step.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::error::Fault;
use super::open;
use crate::crash::{self, Moment, Step};

/// Marks a database as one of this program ("agnt").
const APPLICATION: i32 = 0x6167_6e74;

/// Step `n` leads from version `n` to version `n + 1`.
const STEPS: [&str; 13] = [
    FIRST,
    SUSPENDED_CALLS,
    RESUMED_CALLS,
    LIMITS_OF_TREES,
    GROUPS_AND_BASELINES,
    PERMISSIONS,
    REMOVABLE_LOGS,
    DENIED_CALLS,
    ORIGINS,
    REMOVAL_BY_INDEX,
    SHOWN_RESULTS,
    BATCHES_BY_INDEX,
    IDS_OF_ATTEMPTS,
];

/// What a file in the database's place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
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
pub(super) const fn known() -> u32 {
    STEPS.len() as u32
}

/// Looks at a database, without changing it.
pub(super) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
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
pub(super) fn is_current(path: &Path) -> bool {
    let mut header = [0; 100];
    let number =
        |header: &[u8; 100], at| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // The positions are part of SQLite's file format.
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok()
        && number(&header, 60) == known()
        && number(&header, 68) == APPLICATION.cast_unsigned()
}

/// Brings a database to the newest version, in one transaction.
pub(super) fn migrate(connection: &Connection) -> Result<(), Fault> {
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
    crash::at(Step::Migrate, Moment::Within);
    transaction.commit()?;
    Ok(())
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

// `seq` keeps the order in which rows were made: times may be equal or go backwards. Large texts stand last in their
// row, or in a table of their own, so that reading the rest of a row does not read them. What a request was made for
// (`child`) and the log's `frame` are no references: the child of a withdrawn request is deleted, the log stays.
const FIRST: &str = "
CREATE TABLE frames (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT REFERENCES frames (id),
    root TEXT NOT NULL REFERENCES frames (id),
    depth INTEGER NOT NULL,
    status TEXT NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    created INTEGER NOT NULL,
    checkpoint TEXT,
    title TEXT NOT NULL,
    cwd TEXT NOT NULL,
    limits TEXT NOT NULL,
    trouble TEXT,
    launch TEXT NOT NULL,
    task TEXT NOT NULL
) STRICT;
CREATE INDEX frames_by_parent ON frames (parent, id);
CREATE INDEX frames_by_root ON frames (root);

CREATE TABLE replies (
    frame TEXT PRIMARY KEY REFERENCES frames (id),
    reply TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id),
    resumed TEXT,
    waited TEXT,
    waited_since INTEGER NOT NULL,
    output_from INTEGER NOT NULL,
    errors_from INTEGER NOT NULL,
    runner INTEGER NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT,
    kept INTEGER,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_input_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0,
    total_cost_usd REAL NOT NULL DEFAULT 0,
    version TEXT,
    transcript TEXT,
    message TEXT
) STRICT;
CREATE INDEX attempts_by_frame ON attempts (frame);
CREATE UNIQUE INDEX one_running_attempt ON attempts (frame) WHERE ended IS NULL;

CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id),
    attempt TEXT NOT NULL REFERENCES attempts (session),
    kind TEXT NOT NULL,
    child TEXT,
    made INTEGER NOT NULL,
    settled INTEGER,
    withdrawn INTEGER,
    carried_by TEXT REFERENCES attempts (session),
    delivered INTEGER,
    wish TEXT NOT NULL
) STRICT;
CREATE INDEX requests_by_frame ON requests (frame);
CREATE INDEX requests_by_attempt ON requests (attempt);
CREATE INDEX requests_by_carrier ON requests (carried_by) WHERE carried_by IS NOT NULL;
CREATE INDEX open_questions ON requests (frame)
    WHERE kind = 'ask' AND settled IS NULL AND withdrawn IS NULL;

CREATE TABLE answers (
    question TEXT PRIMARY KEY REFERENCES requests (id),
    answered INTEGER NOT NULL,
    answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    frame TEXT NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_frame ON events (frame);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;

CREATE TABLE versions (
    program TEXT PRIMARY KEY,
    modified INTEGER NOT NULL,
    version TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// `call` names the tool call that a request suspends, `suspended` the one at which a frame's checkpoint stands.
const SUSPENDED_CALLS: &str = "
ALTER TABLE requests ADD COLUMN call TEXT;
ALTER TABLE frames ADD COLUMN suspended TEXT;
CREATE INDEX requests_by_call ON requests (frame, call) WHERE call IS NOT NULL;
";

/// `to_return` names the request whose result the resumed call of an attempt has still to return.
const RESUMED_CALLS: &str = "
ALTER TABLE attempts ADD COLUMN to_return TEXT;
";

/// The frames that the limits of a tree are about, few in a tree of any size.
const LIMITS_OF_TREES: &str = "
CREATE INDEX running_frames ON frames (root) WHERE status = 'running';
CREATE INDEX usage_limits ON frames (root) WHERE json_extract(state, '$.wait.for') = 'usage_limit';
";

/// A group has no agent. `baseline` is what a frame's first session is a fork of.
const GROUPS_AND_BASELINES: &str = "
ALTER TABLE frames ADD COLUMN is_group INTEGER NOT NULL DEFAULT 0;
ALTER TABLE frames ADD COLUMN baseline TEXT;
";

/// `used_by` is the attempt in which a call ran that a person had allowed once.
const PERMISSIONS: &str = "
ALTER TABLE requests ADD COLUMN used_by TEXT REFERENCES attempts (session);
";

/// `shown_in` is the attempt in which the call returned its result, and the user's hooks had the last word on it.
const SHOWN_RESULTS: &str = "
ALTER TABLE requests ADD COLUMN shown_in TEXT REFERENCES attempts (session);
";

/// The log of a frame that is there is append-only. That of a frame that was removed may go.
const REMOVABLE_LOGS: &str = "
DROP TRIGGER events_are_not_deleted;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM frames WHERE id = OLD.frame) BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;
";

/// `denied` is a list of the calls of an attempt that were denied; NULL: none.
const DENIED_CALLS: &str = "
ALTER TABLE attempts ADD COLUMN denied TEXT;
";

/// `started_from` is the session of Claude Code in which a person's command made a root, `origin` who gave an answer.
const ORIGINS: &str = "
ALTER TABLE frames ADD COLUMN started_from TEXT;
ALTER TABLE answers ADD COLUMN origin TEXT;
";

/// What removal asks of each tree: who else needs it, who works in its worktrees, and which rows go with it.
const REMOVAL_BY_INDEX: &str = "
CREATE INDEX requests_by_child ON requests (child) WHERE child IS NOT NULL;
CREATE INDEX requests_by_use ON requests (used_by) WHERE used_by IS NOT NULL;
CREATE INDEX attempts_by_source ON attempts (resumed) WHERE resumed IS NOT NULL;
CREATE INDEX frames_by_checkpoint ON frames (checkpoint) WHERE checkpoint IS NOT NULL;
CREATE INDEX frames_by_baseline ON frames (CASE WHEN json_valid(baseline) THEN json_extract(baseline, '$.frame') END)
    WHERE baseline IS NOT NULL;
CREATE INDEX unfinished_frames_by_cwd ON frames (cwd) WHERE status <> 'done';
CREATE INDEX deleted_frames ON events (json_extract(detail, '$.parent')) WHERE kind = 'deleted';
";

/// A removed attempt is looked for in every column that refers to attempts.
const BATCHES_BY_INDEX: &str = "
CREATE INDEX requests_by_view ON requests (shown_in) WHERE shown_in IS NOT NULL;
";

/// An attempt was known by its session. What refers to attempts goes with the column.
const IDS_OF_ATTEMPTS: &str = "
ALTER TABLE attempts RENAME COLUMN session TO id;
ALTER TABLE attempts ADD COLUMN session TEXT NOT NULL DEFAULT '';
UPDATE attempts SET session = id;
CREATE INDEX attempts_by_session ON attempts (session);
";

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
