//! Takes up a tree that was exported: all of it, or nothing.
//!
//! The files come first, into a directory that is nobody's. Then one transaction writes the rows, checks them as `fsck`
//! would, and gives the files to their frames. Whoever is killed before its end leaves what `gc` removes.

use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, Value as SqlValue};
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;

use super::archive::ArchiveError;
use super::codec;
use super::error::Fault;
use super::files::create_private;
use super::members::{self, TABLES};
use super::{Result, Store, StoreError, check, frames, schema};
use crate::core::archive::{BadArchive, Header, LONGEST_LINE, Reading, Record, Row, piece, session_of};
use crate::core::check::judge;
use crate::core::frame::{Frame, Task};
use crate::core::id::FrameId;
use crate::core::launch::Launch;
use crate::core::moves::Moves;
use crate::core::request::Wish;
use crate::core::state::FrameState;
use crate::crash::Step;

/// Files that are nobody's yet. They are deleted when this is dropped.
struct Stage {
    path: PathBuf,
}

/// What an archive holds, its files apart.
struct Contents {
    header: Header,
    rows: Vec<Row>,
    frames: Vec<FrameId>,
}

impl Store {
    /// Takes up the tree in an archive, with the directories that it names moved. Returns its root.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`] when the archive is refused, [`StoreError::Newer`] when its rows are of a newer database, or
    /// a database or a state directory that cannot be written. Nothing of it is there then.
    pub fn import(&self, from: &mut dyn BufRead, moves: &Moves) -> Result<FrameId> {
        let path = self.dir.stage().map_err(|error| StoreError::io(&self.dir.frames(), error))?;
        let stage = Stage { path };
        let archive = read(from, &stage, moves)?;
        if archive.header.schema > schema::known() {
            return Err(ArchiveError::from(BadArchive::Newer(archive.header.program)).into());
        }
        let root = archive.header.root;
        let mut given = Vec::new();
        let written = self.write(Step::Import, |connection| {
            connection.pragma_update(None, "defer_foreign_keys", true)?;
            for row in &archive.rows {
                insert(connection, row, moves)?;
            }
            verify(connection, root, &archive.rows)?;
            usable(connection, &stage)?;
            for id in &archive.frames {
                if frames::load(connection, *id)?.is_none_or(|frame| frame.root != root) {
                    return Err(damaged("a file is of no frame"));
                }
            }
            for id in &archive.frames {
                let place = self.dir.frame_path(*id);
                // Rows are in the way no more; the files of a frame that was removed may be.
                let _ = fs::remove_dir_all(&place);
                fs::rename(stage.folder(*id), &place).map_err(|error| StoreError::io(&place, error))?;
                given.push(place);
            }
            let frames = self.dir.frames();
            File::open(&frames).and_then(|folder| folder.sync_all()).map_err(|error| StoreError::io(&frames, error))?;
            Ok(root)
        });
        if written.is_err() {
            given.iter().for_each(|place| drop(fs::remove_dir_all(place)));
        }
        written
    }
}

/// Reads all of an archive, and puts its files into the stage.
fn read(from: &mut dyn BufRead, stage: &Stage, moves: &Moves) -> Result<Contents> {
    let mut reading = Reading::default();
    let mut archive: Option<Contents> = None;
    let mut open: Option<(File, PathBuf)> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = from.take(LONGEST_LINE + 1).read_until(b'\n', &mut line).map_err(ArchiveError::Read)?;
        if got == 0 {
            break;
        }
        let record = reading.next(&line).map_err(ArchiveError::from)?;
        if !matches!(record, Record::Text(_) | Record::Hex(_)) {
            close(open.take(), moves)?;
        }
        match (record, &mut archive) {
            (Record::Archive(header), archive) => {
                *archive = Some(Contents { header, rows: Vec::new(), frames: Vec::new() });
            }
            (Record::Row(row), Some(archive)) => archive.rows.push(row),
            (Record::File(file), Some(archive)) => {
                if !archive.frames.contains(&file.frame) {
                    archive.frames.push(file.frame);
                }
                open = Some(stage.create(file.frame, &file.name)?);
            }
            (record @ (Record::Text(_) | Record::Hex(_)), _) => {
                if let (Some((file, path)), Some(piece)) = (&mut open, piece(&record)) {
                    file.write_all(&piece).map_err(|error| StoreError::io(path, error))?;
                }
            }
            (Record::Row(_) | Record::File(_) | Record::End(_), _) => {}
        }
    }
    reading.finish().map_err(ArchiveError::from)?;
    archive.ok_or_else(|| ArchiveError::from(BadArchive::Foreign).into())
}

/// A file is complete. A transcript is told where its session works now.
fn close(open: Option<(File, PathBuf)>, moves: &Moves) -> Result<()> {
    let Some((file, path)) = open else { return Ok(()) };
    let finish = || {
        let is_transcript = path.extension().is_some_and(|extension| extension == "jsonl");
        match fs::read_to_string(&path) {
            Ok(text) if is_transcript && *moves != Moves::default() => {
                let moved: String = text.split_inclusive('\n').map(|line| moves.transcript_line(line)).collect();
                let mut file = File::options().write(true).truncate(true).open(&path)?;
                file.write_all(moved.as_bytes())?;
                file.sync_all()
            }
            _ => file.sync_all(),
        }
    };
    let folder = path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    finish().and(folder).map_err(|error| StoreError::io(&path, error))
}

fn insert(connection: &Connection, row: &Row, moves: &Moves) -> std::result::Result<(), Fault> {
    if !TABLES.iter().any(|table| table.name == row.table) {
        return Err(damaged("it has a row of an unknown table"));
    }
    let ids = [("frames", "id"), ("attempts", "session"), ("requests", "id")];
    for (table, column) in ids.into_iter().filter(|(table, _)| *table == row.table) {
        let Some(id) = row.values.get(column).and_then(Value::as_str).filter(|id| is_id(id)) else {
            return Err(damaged("it has a row without an id"));
        };
        let mut statement = connection.prepare_cached(&format!("SELECT 1 FROM {table} WHERE {column} = ?1"))?;
        if statement.exists([id])? {
            return Err(StoreError::from(ArchiveError::Exists(id.to_owned())).into());
        }
    }
    let mut values = Vec::new();
    for (column, value) in &row.values {
        if column == "seq" || !connection.column_exists(None, row.table.as_str(), column.as_str())? {
            return Err(damaged("it has a row with an unknown column"));
        }
        values.push(match value {
            Value::Null => SqlValue::Null,
            Value::String(text) => moved(&row.table, column, text, moves)?.into(),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => number.into(),
                (None, Some(number)) => number.into(),
                (None, None) => return Err(damaged("it has a number that is too large")),
            },
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(damaged("it has a value of no kind")),
        });
    }
    let columns: Vec<&str> = row.values.keys().map(String::as_str).collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", row.table, columns.join(", "));
    let values = values.into_iter().map(ToSqlOutput::Owned);
    connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map_err(|error| damaged(&error.to_string()))?;
    Ok(())
}

/// A value with its directories moved.
fn moved(table: &str, column: &str, text: &str, moves: &Moves) -> std::result::Result<String, Fault> {
    fn of<T: serde::de::DeserializeOwned>(text: &str) -> std::result::Result<T, Fault> {
        serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))
    }
    match (table, column) {
        ("frames", "cwd") => Ok(moves.path(Path::new(text)).to_string_lossy().into_owned()),
        ("frames", "task") => codec::json(&moves.task(of::<Task>(text)?), &[]),
        ("frames", "launch") => {
            let mut launch = moves.launch(of::<Launch>(text)?);
            // Where that directory is not, sessions are kept where this user keeps them.
            launch.config_dir = launch.config_dir.filter(|dir| dir.is_dir());
            codec::json(&launch, &[])
        }
        ("requests", "wish") => codec::json(&moves.wish(of::<Wish>(text)?), &[]),
        _ => Ok(text.to_owned()),
    }
}

/// The rows are those of one tree that rests, all of them, and no others.
fn verify(connection: &Connection, root: FrameId, rows: &[Row]) -> std::result::Result<(), Fault> {
    members::collect(connection, root)?;
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", table.name, table.of_members);
        let found: u32 = connection.query_row(&sql, [], |row| row.get(0))?;
        if found as usize != rows.iter().filter(|row| row.table == table.name).count() {
            return Err(damaged("it has a row of another tree"));
        }
    }
    let facts = check::members(connection)?;
    let found = facts.findings.into_iter().chain(judge(&facts.frames, &facts.requests));
    if let Some(finding) = found.into_iter().find(|finding| !finding.is_note()) {
        return Err(StoreError::from(ArchiveError::Contradicts(finding)).into());
    }
    if !facts.frames.iter().any(|facts| facts.frame.id == root) {
        return Err(damaged("its root is missing"));
    }
    let running = facts.frames.iter().find(|facts| matches!(facts.frame.state, FrameState::Running { .. }));
    match running {
        Some(facts) => Err(StoreError::from(ArchiveError::Running(facts.frame.id)).into()),
        None => Ok(()),
    }
}

/// What will go on can go on.
fn usable(connection: &Connection, stage: &Stage) -> std::result::Result<(), Fault> {
    for id in members::frames(connection)? {
        let Frame { cwd, state, checkpoint, launch, .. } = frames::existing(connection, id)?;
        if state == FrameState::Done {
            continue;
        }
        let copy = checkpoint.map(|session| stage.folder(id).join(format!("{session}.jsonl")));
        if copy.is_some_and(|copy| !copy.is_file()) {
            return Err(StoreError::from(ArchiveError::NoCopy(id)).into());
        }
        let worktree = launch.worktree.map(Box::new);
        // One that nobody has worked in yet is made when the frame begins.
        let will_be_made = checkpoint.is_none() && worktree.as_ref().is_some_and(|tree| tree.repository.is_dir());
        if !cwd.is_dir() && !will_be_made {
            return Err(StoreError::from(ArchiveError::NoDirectory { frame: id, cwd, worktree }).into());
        }
    }
    Ok(())
}

/// As this program writes one.
fn is_id(text: &str) -> bool {
    session_of(&format!("{text}.jsonl")).is_some()
}

fn damaged(why: &str) -> Fault {
    StoreError::from(ArchiveError::from(BadArchive::Damaged(why.to_owned()))).into()
}

impl Stage {
    fn folder(&self, frame: FrameId) -> PathBuf {
        self.path.join(frame.to_string())
    }

    fn create(&self, frame: FrameId, name: &str) -> Result<(File, PathBuf)> {
        let path = self.folder(frame).join(name);
        let make = || {
            super::files::make_private(path.parent().unwrap_or(&self.path))?;
            create_private(&path)
        };
        Ok((make().map_err(|error| StoreError::io(&path, error))?, path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be deleted, gc removes.
        let _ = fs::remove_dir_all(&self.path);
    }
}
