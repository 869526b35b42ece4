//! The facts that `fsck` judges: what the database says, and what of it is in the state directory.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use rusqlite::{Connection, Row};

use crate::core::chain::state::FrameState;
use crate::core::housekeeping::fsck::{Files, FrameFacts, RequestFacts};
use crate::core::housekeeping::fsck_finding::{FindingKind, FsckFinding};
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::core::requests::state::RequestState;
use crate::failpoint::Step;
use crate::store::chains::abandoned::abandoned;
use crate::store::database::codec::{count, from_json, id, maybe_id, maybe_time};
use crate::store::database::schema::{self, Difference};
use crate::store::error::{Result, StoreError, TxResult};
use crate::store::files::checkpoint;
use crate::store::files::lease::Lease;
use crate::store::files::state_dir::StateDir;
use crate::store::housekeeping::door::Housekeeping;
use crate::store::tables::frames;
use crate::store::tables::tree_rows::TABLES;

/// What the database holds.
#[derive(Debug, Default)]
pub struct Facts {
    /// Every frame that can be read.
    pub frames: Vec<FrameFacts>,
    /// Every request that can be read.
    pub requests: Vec<RequestFacts>,
    /// What could not be read, and what the database itself found.
    pub findings: Vec<FsckFinding>,
}

impl Housekeeping<'_> {
    /// What the database says, all of it at one moment, and what is there of each frame's files. Transcripts in Claude
    /// Code's folders are for the caller to look at.
    ///
    /// # Errors
    ///
    /// The database or the state directory cannot be read.
    pub fn facts(&self) -> Result<Facts> {
        let mut facts = self.0.read(|connection| {
            let mut facts = Facts { findings: damage(connection)?, ..Facts::default() };
            gather(connection, |_| String::new(), &mut facts)?;
            Ok(facts)
        })?;
        let abandoned = abandoned(self.0)?;
        for frame in &mut facts.frames {
            let id = frame.frame.id;
            frame.files = files(&self.0.dir, id, frame.frame.checkpoint)
                .map_err(|error| StoreError::io(&self.0.dir.frame_path(id), error))?;
            let runs = matches!(frame.frame.state, FrameState::Running { .. }) && !frame.running.is_empty();
            frame.files.held |= runs && !abandoned.contains_key(&id);
        }
        Ok(facts)
    }
}

impl Housekeeping<'_> {
    /// What in the database is missing, or is not what this program makes.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn other_schema(&self) -> Result<Vec<String>> {
        let differences = self.0.read(schema::differences)?;
        let name = |difference| match difference {
            Difference::MissingIndex { name, .. } | Difference::Other { name } => name,
        };
        Ok(differences.into_iter().map(name).collect())
    }

    /// Makes an index that is missing. Returns whether it was.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn make_index(&self, missing: &str) -> Result<bool> {
        self.0.write(Step::Migrate, |connection| {
            for difference in schema::differences(connection)? {
                if let Difference::MissingIndex { name, sql } = difference
                    && name == missing
                {
                    connection.execute_batch(&sql)?;
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

fn damage(connection: &Connection) -> TxResult<Vec<FsckFinding>> {
    let mut found = Vec::new();
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    for said in statement.query_map([], |row| row.get::<_, String>(0))? {
        let said = said?;
        found.extend((said != "ok").then_some(FindingKind::Database { said }));
    }
    found.extend(schema::differences(connection)?.into_iter().map(|difference| match difference {
        Difference::MissingIndex { name, .. } => FindingKind::MissingIndex { name },
        Difference::Other { name } => FindingKind::OtherSchema { name },
    }));
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let lost = statement.query_map([], |row| Ok(FindingKind::LostReference { table: row.get(0)?, to: row.get(2)? }))?;
    found.extend(lost.collect::<rusqlite::Result<Vec<_>>>()?);
    Ok(found.into_iter().map(|kind| FsckFinding { frame: None, kind }).collect())
}

/// What the database says of the frames in `members`, without their files.
pub(crate) fn members(connection: &Connection) -> TxResult<Facts> {
    let condition = |table: &str| {
        let of = TABLES.iter().find(|of| of.name == table).map_or("false", |of| of.of_members);
        format!("WHERE {of}")
    };
    let mut facts = Facts::default();
    gather(connection, condition, &mut facts)?;
    facts.frames.iter_mut().for_each(|facts| facts.files.held = true);
    Ok(facts)
}

/// `condition` says which rows of a table are looked at.
fn gather(connection: &Connection, condition: impl Fn(&str) -> String, facts: &mut Facts) -> TxResult<()> {
    let mut running: HashMap<FrameId, Vec<(AttemptId, u64)>> = HashMap::new();
    let attempt = |row: &Row<'_>| {
        let attempt = (id(row, "id")?, count(row, "output_from")?);
        Ok((id(row, "frame")?, attempt, maybe_time(row, "ended")?.is_some()))
    };
    for (frame, attempt, ended) in read(connection, "attempts", "id", &condition, facts, attempt)? {
        if !ended {
            running.entry(frame).or_default().push(attempt);
        }
    }
    let replies = read(connection, "replies", "frame", &condition, facts, |row| id(row, "frame"))?;
    let replied: HashSet<FrameId> = replies.into_iter().collect();
    for frame in read(connection, "frames", "id", &condition, facts, frames::from_row)? {
        let (replied, running) = (replied.contains(&frame.id), running.remove(&frame.id).unwrap_or_default());
        facts.frames.push(FrameFacts { frame, replied, running, files: Files::default() });
    }
    read(connection, "answers", "question", &condition, facts, |row| id::<RequestId>(row, "question"))?;
    let request = |row: &Row<'_>| {
        from_json::<RequestKind>(row, "detail")?;
        Ok(RequestFacts {
            id: id(row, "id")?,
            frame: id(row, "frame")?,
            child: maybe_id(row, "child")?,
            withdrawn: from_json::<RequestState>(row, "state")? == RequestState::Withdrawn,
        })
    };
    let requests = read(connection, "requests", "id", &condition, facts, request)?;
    facts.requests.extend(requests);
    Ok(())
}

/// The rows of a table that can be read. The others become findings.
fn read<T>(
    connection: &Connection,
    table: &'static str,
    key: &str,
    condition: impl Fn(&str) -> String,
    facts: &mut Facts,
    of: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> TxResult<Vec<T>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} {}", condition(table)))?;
    let mut rows = statement.query([])?;
    let mut readable = Vec::new();
    while let Some(row) = rows.next()? {
        match of(row) {
            Ok(value) => readable.push(value),
            Err(error) => {
                let (id, why) = (row.get(key).unwrap_or_default(), error.to_string());
                facts.findings.push(FsckFinding { frame: None, kind: FindingKind::Unreadable { table, id, why } });
            }
        }
    }
    Ok(readable)
}

fn files(dir: &StateDir, frame: FrameId, checkpoint: Option<AttemptId>) -> io::Result<Files> {
    // If that is unknown, somebody may hold it.
    let held = Lease::is_held(dir, frame).unwrap_or(true);
    let output = fs::metadata(dir.printed(frame)).map_or(0, |file| file.len());
    let copy = checkpoint.map(|attempt| checkpoint::lines(&dir.checkpoint(frame, attempt))).transpose()?;
    Ok(Files { held, output, copy: copy.unwrap_or_default(), ..Files::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, testing};

    fn held(store: &Store) -> Vec<bool> {
        store.housekeeping().facts().unwrap().frames.iter().map(|frame| frame.files.held).collect()
    }

    #[test]
    fn what_the_database_itself_finds_is_among_the_facts() {
        let (_temp, store) = testing::store();
        let root = store.root();
        assert_eq!(store.housekeeping().facts().unwrap().findings, []);
        store.connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM frames").unwrap();
        let found = store.housekeeping().facts().unwrap();
        let is_lost =
            |found: &FsckFinding| matches!(&found.kind, FindingKind::LostReference { to, .. } if to == "frames");
        assert!(found.findings.iter().any(is_lost), "of {}: {:?}", root.short(), found.findings);
    }

    #[test]
    fn a_frame_is_held_by_whoever_has_its_lease() {
        let (_temp, store) = testing::store();
        let root = store.root();
        assert_eq!(held(&store), [false]);
        let lease = Lease::try_take(&store.dir, root).unwrap().unwrap();
        assert_eq!(held(&store), [true], "its runner may be about to record that it runs");
        store.start(root);
        assert_eq!(held(&store), [true]);
        drop(lease);
        assert_eq!(held(&store), [false], "its runner has abandoned it");
        store.connection.execute_batch("UPDATE attempts SET ended = began").unwrap();
        assert_eq!(held(&store), [false], "it runs on record only");
    }
}
