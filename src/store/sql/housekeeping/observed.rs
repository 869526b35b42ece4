//! Reports how the chains of the database run, and whether the database is intact.

use jiff::Timestamp;

use crate::core::id::FrameId;
use crate::store::error::Result;
use crate::store::housekeeping::database_facts::{Condition, Observed, RecordedPause, RecordedProgram};
use crate::store::sql::database::codec::{count, from_json, id, on_host};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::object_storage::ObjectStorage;
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::tree_rows::TABLES;

/// Checking a database of this size, in bytes, takes less than a tenth of a second.
const LARGEST: i64 = 64 << 20;
/// How many of the newest chains are checked.
const NEWEST: u32 = 1000;

pub(crate) fn observed(connection: &Connection, most: u32) -> TxResult<Observed> {
    let (programs, pauses) = (programs(connection)?, pauses(connection, most)?);
    Ok(Observed { programs, pauses, unrecorded: unrecorded(connection)?, waiting: waiting(connection)? })
}

/// How many of the agents that wait are named.
const WAITING: u32 = 50;

fn waiting(connection: &Connection) -> TxResult<Vec<FrameId>> {
    let sql = "SELECT id FROM frames INDEXED BY stirring_frames
         WHERE status IN ('ready', 'running', 'waiting') AND status = 'waiting' AND checkpoint IS NOT NULL ORDER BY seq DESC LIMIT ?1";
    connection.read_all(sql, [WAITING], |row| id(row, "id"))
}

pub(crate) fn condition(store: &Database) -> Result<Condition> {
    store.object_storage()?.map_or(Ok(()), ObjectStorage::check)?;
    store.query(|connection| condition_within(connection, LARGEST))
}

pub(crate) fn condition_within(connection: &Connection, largest: i64) -> TxResult<Condition> {
    // A server keeps its files itself.
    let Some(connection) = connection.sqlite() else { return Ok(Condition::Intact) };
    let pragma = |name: &str| connection.pragma_query_value::<i64, _>(None, name, |row| row.get(0));
    if pragma("page_count")?.saturating_mul(pragma("page_size")?) > largest {
        for table in TABLES {
            connection.prepare(&format!("SELECT * FROM {} LIMIT 1", table.name))?.exists([])?;
        }
        return Ok(Condition::Opens);
    }
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok(if said == "ok" { Condition::Intact } else { Condition::Damaged(said) })
}

fn programs(connection: &Connection) -> TxResult<Vec<RecordedProgram>> {
    let sql = "SELECT f.program, count(DISTINCT f.root) AS chains
                 FROM (SELECT id FROM frames INDEXED BY roots WHERE parent IS NULL AND status <> 'done'
                       ORDER BY seq DESC LIMIT ?1) AS root
                 CROSS JOIN frames AS f ON f.root = root.id
                 WHERE f.program <> '' GROUP BY f.program ORDER BY f.program";
    let read = |row: &Row<'_>| Ok((row.get::<_, String>("program")?, count(row, "chains")?));
    let version = |row: &Row<'_>| Ok((row.get::<_, String>("version")?, row.get::<_, i64>("modified")?));
    let mut found = Vec::new();
    for (program, chains) in connection.read_all(sql, [NEWEST], read)? {
        let sql = "SELECT version, modified FROM versions WHERE program = ?1";
        let known = connection
            .read_first(sql, [on_host(connection, program.as_ref())?], version)?
            .and_then(|(version, modified)| Some((version, Timestamp::from_nanosecond(modified.into()).ok()?)));
        found.push(RecordedProgram { path: program.into(), chains, known });
    }
    Ok(found)
}

fn unrecorded(connection: &Connection) -> TxResult<u64> {
    connection.read_one(
        "SELECT count(*) AS lost FROM frames INDEXED BY unrecorded_frames
         WHERE is_unrecorded AND status NOT IN ('done', 'failed')",
        [],
        |row| count(row, "lost"),
    )
}

fn pauses(connection: &Connection, most: u32) -> TxResult<Vec<RecordedPause>> {
    let sql = "SELECT r.call IS NOT NULL AS suspended, f.launch AS launch
                 FROM requests AS r CROSS JOIN frames AS f ON f.id = r.frame
                 WHERE r.status <> 'withdrawn' ORDER BY r.seq DESC LIMIT ?1";
    let pause =
        |row: &Row<'_>| Ok(RecordedPause { suspended: row.get("suspended")?, launch: from_json(row, "launch")? });
    connection.read_all(sql, [most], pause)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::attempt::ending::Ending;
    use crate::store::Store;
    use crate::store::records::{KnownProgram, NewFrame};
    use crate::store::testing::{ask, in_file, new, reply, store};

    fn started_with(claude: &str) -> NewFrame {
        NewFrame { launch: Launch { claude: claude.into(), ..Launch::default() }, ..new("task") }
    }

    #[test]
    fn a_large_database_is_not_read_in_passing() {
        let (_temp, store) = in_file();
        store.root();
        let within = |largest| store.database().query(|connection| condition_within(connection, largest)).unwrap();
        assert_eq!((within(i64::MAX), within(0)), (Condition::Intact, Condition::Opens));
    }

    #[test]
    fn programs_are_those_of_chains_that_go_on() {
        let (_temp, store) = store();
        let done = store.create_root(&started_with("/old/claude")).unwrap();
        let caller = store.start(done);
        store.end(caller, &reply("ok"));
        store.create_root(&started_with("/new/claude")).unwrap();
        store.create_root(&started_with("/new/claude")).unwrap();
        let modified = Timestamp::from_nanosecond(7).unwrap();
        store
            .remember_program(
                Path::new("/new/claude"),
                modified,
                &KnownProgram { version: "2.1.330".into(), refuses_forks: false },
            )
            .unwrap();
        let known = Some(("2.1.330".to_owned(), modified));
        let expected = RecordedProgram { path: "/new/claude".into(), chains: 2, known };
        assert_eq!(store.housekeeping().observed(0).unwrap().programs, [expected]);
    }

    #[test]
    fn suspended_requests_are_distinguished_from_others() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.request(caller, None, &[ask("a?")]).unwrap();
        store.request(caller, Some("toolu_1"), &[ask("b?")]).unwrap();
        store.end(caller, &Ending::Suspended);
        let suspended = |most| {
            store.housekeeping().observed(most).unwrap().pauses.iter().map(|pause| pause.suspended).collect::<Vec<_>>()
        };
        assert_eq!(suspended(10), [true, false]);
        assert_eq!(suspended(1), [true]);
    }

    #[test]
    fn damage_is_seen() {
        let (_temp, store) = in_file();
        store.root();
        assert_eq!(store.housekeeping().condition().unwrap(), Condition::Intact);
        store.sqlite().pragma_update(None, "writable_schema", true).unwrap();
        store.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'events'", []);
        let path = store.dir().path().to_owned();
        drop(store);
        let said = Store::open(&path).and_then(|store| store.housekeeping().condition());
        assert!(!matches!(said, Ok(Condition::Intact | Condition::Opens)), "{said:?}");
    }
}
