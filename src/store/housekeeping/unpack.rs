//! Reads an archive: its files into a directory that is nobody's, and its rows as they will be written here. Nobody has
//! decided then whether to take it up.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::agent::launch::Launch;
use crate::core::housekeeping::export_format::{BadArchive, Header, LONGEST_LINE, Reading, Record, Row, piece};
use crate::core::housekeeping::inventory::{AllowedCall, Command, Inventory, Start};
use crate::core::housekeeping::relocation::Moves;
use crate::core::id::FrameId;
use crate::core::requests::plan::Decided;
use crate::core::requests::question::{Permit, permit};
use crate::core::requests::request::{External, Wish};
use crate::store::database::error::{Result, StoreError};
use crate::store::database::schema;
use crate::store::database::store::Store;
use crate::store::files::durable::{sync, sync_dir};
use crate::store::files::state_dir::create_private;
use crate::store::housekeeping::export_error::ArchiveError;

/// Files that are nobody's yet. They are deleted when this is dropped.
pub(crate) struct Stage {
    path: PathBuf,
}

/// An archive that was read. Nothing of it is there yet; its files are nobody's.
pub struct Unpacked {
    pub(crate) stage: Stage,
    pub(crate) header: Header,
    /// As they will be written.
    pub(crate) rows: Vec<Row>,
    pub(crate) frames: Vec<FrameId>,
    inventory: Inventory,
}

/// What a chain finds here, in the place of what it had elsewhere. Nothing in an archive names a program to run.
#[derive(Clone, Debug)]
pub struct Here {
    /// The `claude` of this machine.
    pub claude: PathBuf,
    /// `PATH` of this shell.
    pub path: Option<String>,
    /// What else of this shell's environment it records: another machine's could lead to an API that gets this user's key.
    pub environment: BTreeMap<String, String>,
    /// Directories that have other paths here.
    pub moves: Moves,
}

impl Store {
    /// Reads an archive, with its directories moved.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`] when it cannot be read, or a state directory that cannot be written.
    pub fn unpack(&self, from: &mut dyn BufRead, here: &Here) -> Result<Unpacked> {
        let path = self.dir.stage().map_err(|error| StoreError::io(&self.dir.frames(), error))?;
        let stage = Stage { path };
        let (header, mut rows, frames) = read(from, &stage, &here.moves)?;
        if header.schema > schema::known() {
            return Err(ArchiveError::from(BadArchive::Newer(header.program)).into());
        }
        for row in &mut rows {
            adapt(row, here)?;
        }
        let inventory = inventory(header.root, &rows)?;
        Ok(Unpacked { stage, header, rows, frames, inventory })
    }
}

impl Unpacked {
    /// What the chain would run.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}

type Contents = (Header, Vec<Row>, Vec<FrameId>);

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
                *archive = Some((header, Vec::new(), Vec::new()));
            }
            (Record::Row(row), Some((_, rows, _))) => rows.push(row),
            (Record::File(file), Some((_, _, frames))) => {
                if !frames.contains(&file.frame) {
                    frames.push(file.frame);
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
                sync(&file)
            }
            _ => sync(&file),
        }
    };
    let folder = path.parent().map_or(Ok(()), sync_dir);
    finish().and(folder).map_err(|error| StoreError::io(&path, error))
}

/// Makes the values of a row those of this machine. What is shown to a person is what comes of this, and so is what is
/// written.
fn adapt(row: &mut Row, Here { claude, path, environment, moves }: &Here) -> Result<()> {
    // No session of this machine has started it.
    if row.table == "frames" {
        row.values.entry("started_from").and_modify(|session| *session = Value::Null);
    }
    for (column, value) in &mut row.values {
        let Value::String(text) = value else { continue };
        *text = match (row.table.as_str(), column.as_str()) {
            ("frames", "cwd") => moves.path(Path::new(text)).to_string_lossy().into_owned(),
            ("frames", "task") => written(&moves.task(parsed(text)?))?,
            ("frames", "launch") => {
                let launch: Launch = moves.launch(parsed(text)?);
                // Where that directory is not, sessions are kept where this user keeps them.
                let config_dir = launch.config_dir.filter(|dir| dir.is_dir());
                written(&Launch {
                    claude: claude.clone(),
                    path: path.clone(),
                    environment: environment.clone(),
                    config_dir,
                    ..launch
                })?
            }
            ("frames", "situation") => written(&moves.situation(parsed(text)?))?,
            ("requests", "wish") => written(&moves.wish(parsed(text)?))?,
            _ => continue,
        };
    }
    Ok(())
}

/// What the rows would run: whatever is not in it has to be unable to run or to allow anything.
fn inventory(root: FrameId, rows: &[Row]) -> Result<Inventory> {
    let mut inventory = Inventory::new(root);
    let text = |row: &Row, column: &str| row.values.get(column).and_then(Value::as_str).map(str::to_owned);
    let needed = |row: &Row, column: &str| text(row, column).ok_or_else(|| damaged("it has a row that lacks a value"));
    let answers: HashMap<_, _> = rows
        .iter()
        .filter(|row| row.table == "answers")
        .filter_map(|row| Some((text(row, "question")?, text(row, "answer")?)))
        .collect();
    for row in rows {
        let is_null = |column: &str| row.values.get(column).is_none_or(Value::is_null);
        match row.table.as_str() {
            "frames" => {
                let id: FrameId = needed(row, "id")?.parse().map_err(|_| damaged("it has a row without an id"))?;
                let (task, launch) = (parsed(&needed(row, "task")?)?, parsed(&needed(row, "launch")?)?);
                let baseline = text(row, "baseline").map(|text| parsed(&text)).transpose()?;
                let situation = text(row, "situation").map(|text| parsed(&text)).transpose()?.unwrap_or_default();
                let start = Start { cwd: needed(row, "cwd")?.into(), launch, situation };
                inventory.add(id, task, start, baseline);
            }
            "chains" => inventory.limits = parsed(&needed(row, "limits")?)?,
            "requests" if is_null("withdrawn") => {
                let agent = needed(row, "frame")?.parse().map_err(|_| damaged("it has a row without an id"))?;
                let answer = answers.get(&needed(row, "id")?).and_then(|answer| permit(answer));
                match parsed(&needed(row, "wish")?)? {
                    // In the mode that was chosen with it, the agent may be for the rest of its life.
                    Wish::Plan(plan) => {
                        let decided = answers.get(&needed(row, "id")?).and_then(|answer| plan.decided(answer));
                        if let Some(Decided::Approved { mode }) = decided {
                            let (tool, input) = ("ExitPlanMode".to_owned(), json!({"continues in the mode": mode}));
                            inventory.allowed_calls.push(AllowedCall { agent, tool, input });
                        }
                    }
                    _ if !is_null("delivered") => {}
                    Wish::Wait(External::Command(command)) if is_null("settled") => {
                        inventory.commands.push(Command { agent, command });
                    }
                    Wish::Permission { tool, input, .. } if answer == Some(Permit::Allow) => {
                        inventory.allowed_calls.push(AllowedCall { agent, tool, input });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(inventory)
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))
}

fn written<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| damaged(&error.to_string()))
}

/// The archive is not what was written.
pub(crate) fn damaged(why: &str) -> StoreError {
    ArchiveError::from(BadArchive::Damaged(why.to_owned())).into()
}

impl Stage {
    pub(crate) fn folder(&self, frame: FrameId) -> PathBuf {
        self.path.join(frame.to_string())
    }

    fn create(&self, frame: FrameId, name: &str) -> Result<(File, PathBuf)> {
        let path = self.folder(frame).join(name);
        let make = || {
            crate::store::files::durable::make_private(path.parent().unwrap_or(&self.path))?;
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
