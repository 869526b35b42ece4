//! The facts that `fsck` judges: the content of the database, and the corresponding files in the state directory.

use std::ops::ControlFlow;
use std::{fs, io};

use crate::core::agent::usage::Usage;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::Limits;
use crate::core::housekeeping::consistency::{FrameFacts, FrameFiles, Known, RequestFacts, TreePosition};
use crate::core::housekeeping::fsck_finding::{FindingKind, FsckFinding};
use crate::core::id::{AttemptId, ChainName, FrameId, RequestId};
use crate::core::requests::request::{Request, RequestResult};
use crate::core::requests::request_state::RequestState;
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::Stop;
use crate::store::error::{Result, StoreError};
use crate::store::files::checkpoint;
use crate::store::files::lease::Lease;
use crate::store::files::state_dir::StateDir;
use crate::store::housekeeping::database_facts::{DatabaseFacts, FactsOf, FactsPage};
use crate::store::records::abandoned::abandoned;
use crate::store::records::{Attempt, Attempts, Records};
use crate::store::sql::database::codec::{Id, count, from_json, id, maybe_id, maybe_json, maybe_time, signed, time};
use crate::store::sql::database::connection::Database;
use crate::store::sql::database::schema::{self, Difference};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::steering::messages;
use crate::store::sql::tables::tree_rows::TABLES;
use crate::store::sql::tables::{attempt_rows, chains, events, frames, requests};

/// How many frames are in memory at once.
const AT_ONCE: u32 = 500;

pub(crate) fn facts(connection: &Connection, of: FactsOf<'_>) -> TxResult<DatabaseFacts> {
    let mut facts = DatabaseFacts::default();
    if matches!(of, FactsOf::All) {
        facts.findings = damage(connection)?;
        check_rows(connection, &all, &mut facts.findings)?;
    }
    facts.requests = request_facts(connection, &all, &mut facts.findings)?;
    facts.known = known(connection)?;
    Ok(facts)
}

pub(crate) fn frame_facts(store: &Database, of: FactsOf<'_>, after: u64) -> Result<FactsPage> {
    let mut page = store.read(|connection| page(connection, of, after))?;
    let abandoned = abandoned(store, &store.dir, || store.attempts(Attempts::Running))?;
    for frame in &mut page.frames {
        let id = frame.frame.id;
        let checkpoint = frame.frame.checkpoint.filter(|_| frame.frame.state != FrameState::Done);
        frame.files =
            files(&store.dir, id, checkpoint).map_err(|error| StoreError::io(&store.dir.frame_path(id), error))?;
        let runs = matches!(frame.frame.state, FrameState::Running { .. }) && !frame.running.is_empty();
        frame.files.held |= runs && !abandoned.contains_key(&id);
    }
    Ok(page)
}

fn all(_: &str) -> String {
    String::new()
}

pub(crate) fn other_schema(store: &Database) -> Result<Vec<String>> {
    let differences = store.read(|connection| connection.sqlite().map_or(Ok(Vec::new()), schema::differences))?;
    let name = |difference| match difference {
        Difference::MissingIndex { name, .. } | Difference::Other { name } => name,
    };
    Ok(differences.into_iter().map(name).collect())
}

pub(crate) fn make_index(connection: &Connection, missing: &str) -> TxResult<bool> {
    let Some(connection) = connection.sqlite() else { return Ok(false) };
    for difference in schema::differences(connection)? {
        if let Difference::MissingIndex { name, sql } = difference
            && name == missing
        {
            connection.execute_batch(&sql)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn damage(connection: &Connection) -> TxResult<Vec<FsckFinding>> {
    // A server keeps its files and references itself.
    let Some(sqlite) = connection.sqlite() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let damage: Vec<String> = connection.read_all("PRAGMA integrity_check", [], |row| row.get(0))?;
    found.extend(damage.into_iter().filter(|said| said != "ok").map(|said| FindingKind::Database { said }));
    found.extend(schema::differences(sqlite)?.into_iter().map(|difference| match difference {
        Difference::MissingIndex { name, .. } => FindingKind::MissingIndex { name },
        Difference::Other { name } => FindingKind::OtherSchema { name },
    }));
    let lost = |row: &Row<'_>| Ok(FindingKind::LostReference { table: row.get(0)?, to: row.get(2)? });
    found.extend(connection.read_all("PRAGMA foreign_key_check", [], lost)?);
    Ok(found.into_iter().map(|kind| FsckFinding { frame: None, kind }).collect())
}

/// The records of the frames in `members`, without their files.
pub(crate) fn members(connection: &Connection) -> TxResult<(Vec<FrameFacts>, DatabaseFacts)> {
    let condition = |table: &str| {
        let of = TABLES.iter().find(|of| of.name == table).map_or("false", |of| of.of_members);
        format!("WHERE {of}")
    };
    let mut facts = DatabaseFacts::default();
    check_rows(connection, &condition, &mut facts.findings)?;
    let frames = read(connection, "frames", "id", condition, &mut facts.findings, frames::from_row)?;
    let held = FrameFiles { held: true, ..FrameFiles::default() };
    let with_facts = |frame| Ok(FrameFacts { files: held, ..facts_of(connection, frame)? });
    let frames = frames.into_iter().map(with_facts).collect::<TxResult<_>>()?;
    facts.requests = request_facts(connection, &condition, &mut facts.findings)?;
    Ok((frames, facts))
}

/// The next frames, without their files.
fn page(connection: &Connection, of: FactsOf<'_>, after: u64) -> TxResult<FactsPage> {
    let sql = format!("SELECT seq FROM frames WHERE seq > ?1 ORDER BY seq LIMIT 1 OFFSET {}", AT_ONCE - 1);
    let last: Option<i64> = connection.read_first(&sql, [signed(after)], |row| row.get("seq"))?;
    let condition = |_: &str| format!("WHERE seq > {after} AND seq <= {} ORDER BY seq", last.unwrap_or(i64::MAX));
    let elsewhere = chains::elsewhere(connection)?;
    let is_meant =
        |row: &Row<'_>| Ok::<_, rusqlite::Error>(of.has(id(row, "id")?) && !elsewhere.contains(&id(row, "root")?));
    let frame = |row: &Row<'_>| if is_meant(row)? { frames::from_row(row).map(Some) } else { Ok(None) };
    let mut findings = Vec::new();
    let frames = read(connection, "frames", "id", condition, &mut findings, frame)?;
    let frames = frames.into_iter().flatten().map(|frame| facts_of(connection, frame));
    Ok(FactsPage { frames: frames.collect::<TxResult<_>>()?, findings, next: last.map(i64::unsigned_abs) })
}

/// The records of a frame.
fn facts_of(connection: &Connection, frame: Frame) -> TxResult<FrameFacts> {
    let sql = "SELECT id, output_from FROM attempts WHERE frame = ?1 AND ended IS NULL";
    let running = connection.read_all(sql, [Id(frame.id)], |row| Ok((id(row, "id")?, count(row, "output_from")?)))?;
    let replied = connection.finds("SELECT 1 FROM replies WHERE frame = ?1", [Id(frame.id)])?;
    Ok(FrameFacts { frame, replied, running, files: FrameFiles::default() })
}

fn known(connection: &Connection) -> TxResult<Known> {
    let mut known = Known::default();
    connection.each("SELECT id, parent, root, depth FROM frames", [], |row| {
        let place =
            || Ok(TreePosition { parent: maybe_id(row, "parent")?, root: id(row, "root")?, depth: row.get("depth")? });
        // Unreadable rows are reported where they are read as a whole.
        if let (Ok(frame), Ok(place)) = (id(row, "id"), place() as rusqlite::Result<TreePosition>) {
            known.insert(frame, place);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(known)
}

/// Looks for rows that cannot be read, or with values that no attempt can have. `condition` selects the rows of a table.
fn check_rows(
    connection: &Connection,
    condition: &impl Fn(&str) -> String,
    findings: &mut Vec<FsckFinding>,
) -> TxResult<()> {
    let attempt = |row: &Row<'_>| {
        let Attempt { spending, total, .. } = attempt_rows::from_row(row)?;
        time(row, "waited_since")?;
        maybe_json::<Vec<(RequestId, RequestResult)>>(row, "given")?;
        let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } =
            spending.usage;
        let tokens = [input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens];
        let are_counts = tokens.iter().chain([&spending.requests]).all(|count| *count <= MOST);
        possible(are_counts && is_sum(spending.usd) && is_sum(total.usd), "it has spent an impossible amount")
    };
    let chain = |row: &Row<'_>| {
        id::<FrameId>(row, "root")?;
        from_json::<Limits>(row, "limits")?;
        let name: Option<String> = row.get("name")?;
        possible(name.is_none_or(|name| name.parse::<ChainName>().is_ok()), "its name is invalid")?;
        possible(is_sum(row.get("removed_usd")?), "it has spent an impossible amount")
    };
    let answer = |row: &Row<'_>| {
        let _: RequestId = id(row, "question")?;
        time(row, "answered")?;
        maybe_json::<Origin>(row, "origin").map(drop)
    };
    let stop = |row: &Row<'_>| {
        let _: FrameId = id(row, "frame")?;
        time(row, "asked")?;
        maybe_time(row, "ended")?;
        from_json::<Stop>(row, "stop").map(drop)
    };
    read(connection, "attempts", "id", condition, findings, attempt)?;
    read(connection, "chains", "root", condition, findings, chain)?;
    read(connection, "replies", "frame", condition, findings, |row| id::<FrameId>(row, "frame").map(drop))?;
    read(connection, "answers", "question", condition, findings, answer)?;
    read(connection, "stops", "frame", condition, findings, stop)?;
    read(connection, "messages", "id", condition, findings, |row| messages::from_row(row).map(drop))?;
    read(connection, "events", "frame", condition, findings, |row| events::from_row(row).map(drop))?;
    Ok(())
}

/// Sums of larger counts and amounts may be more than a database can add up.
const MOST: u64 = 1 << 40;

fn is_sum(usd: f64) -> bool {
    (0.0..=1e9).contains(&usd)
}

fn possible(is_possible: bool, otherwise: &'static str) -> rusqlite::Result<()> {
    let impossible = || rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Null, otherwise.into());
    if is_possible { Ok(()) } else { Err(impossible()) }
}

fn request_facts(
    connection: &Connection,
    condition: &impl Fn(&str) -> String,
    findings: &mut Vec<FsckFinding>,
) -> TxResult<Vec<RequestFacts>> {
    let request = |row: &Row<'_>| {
        let Request { id, frame, state, .. } = requests::from_row(row)?;
        let withdrawn = state == RequestState::Withdrawn;
        Ok(RequestFacts { id, frame, child: maybe_id(row, "child")?, withdrawn })
    };
    read(connection, "requests", "id", condition, findings, request)
}

/// The readable rows of a table. The others become findings.
fn read<T>(
    connection: &Connection,
    table: &'static str,
    key: &str,
    condition: impl Fn(&str) -> String,
    findings: &mut Vec<FsckFinding>,
    of: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> TxResult<Vec<T>> {
    let mut readable = Vec::new();
    connection.each(&format!("SELECT * FROM {table} {}", condition(table)), [], |row| {
        match of(row) {
            Ok(value) => readable.push(value),
            Err(error) => {
                let (id, why) = (row.get(key).unwrap_or_default(), reason(&error));
                findings.push(FsckFinding { frame: None, kind: FindingKind::Unreadable { table, id, why } });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(readable)
}

/// Why a row cannot be read. A column number would mean nothing to people.
fn reason(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, error) => error.to_string(),
        error => error.to_string(),
    }
}

fn files(dir: &StateDir, frame: FrameId, checkpoint: Option<AttemptId>) -> io::Result<FrameFiles> {
    // If this is unknown, a process may hold the lease.
    let held = Lease::is_held(dir, frame).unwrap_or(true);
    let output = fs::metadata(dir.printed(frame)).map_or(0, |file| file.len());
    let copy = checkpoint.map(|attempt| checkpoint::lines(&dir.checkpoint(frame, attempt))).transpose()?;
    Ok(FrameFiles { held, output, copy: copy.unwrap_or_default(), ..FrameFiles::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, testing};
    use std::collections::HashSet;

    fn held(store: &Store) -> Vec<bool> {
        let page = store.housekeeping().frame_facts(FactsOf::All, 0).unwrap();
        page.frames.iter().map(|frame| frame.files.held).collect()
    }

    #[test]
    fn what_the_database_itself_finds_is_among_the_facts() {
        let (_temp, store) = testing::in_file();
        let root = store.root();
        let facts = || store.housekeeping().facts(FactsOf::All).unwrap();
        assert_eq!(facts().findings, []);
        store.sqlite().execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM frames").unwrap();
        let found = facts();
        let is_lost =
            |found: &FsckFinding| matches!(&found.kind, FindingKind::LostReference { to, .. } if to == "frames");
        assert!(found.findings.iter().any(is_lost), "of {}: {:?}", root.short(), found.findings);
    }

    #[test]
    fn frames_are_read_in_order_a_few_at_a_time_and_again_only_those_that_are_meant() {
        let (_temp, store) = testing::store();
        let all: Vec<FrameId> = (0..=2 * AT_ONCE).map(|_| store.root()).collect();
        let read = |of: FactsOf<'_>| {
            let facts = store.housekeeping().facts(of).unwrap();
            assert_eq!((facts.known.len(), facts.findings), (all.len(), Vec::new()));
            let (mut read, mut next) = (Vec::new(), Some(0));
            while let Some(after) = next {
                let page = store.housekeeping().frame_facts(of, after).unwrap();
                assert_eq!(page.findings, []);
                read.extend(page.frames.iter().map(|frame| frame.frame.id));
                next = page.next;
            }
            read
        };
        assert_eq!(read(FactsOf::All), all);
        let some = HashSet::from([all[0], all[700]]);
        assert_eq!(read(FactsOf::Again(&some)), [all[0], all[700]]);
    }

    #[test]
    fn a_frame_is_held_by_whoever_has_its_lease() {
        let (_temp, store) = testing::store();
        let root = store.root();
        assert_eq!(held(&store), [false]);
        let lease = Lease::try_take(store.dir(), root).unwrap().unwrap();
        assert_eq!(held(&store), [true], "its runner may be about to record that it runs");
        store.start(root);
        assert_eq!(held(&store), [true]);
        drop(lease);
        assert_eq!(held(&store), [false], "its runner has abandoned it");
        store.execute("UPDATE attempts SET ended = began", []);
        assert_eq!(held(&store), [false], "it runs on record only");
    }
}
