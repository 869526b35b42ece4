//! Writes a tree, with all that is needed to carry on with it, as one file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use crate::core::chain::state::FrameState;
use crate::core::housekeeping::export_format::{
    BESIDE, Checksum, End, FORMAT, FileHeader, Header, Record, Row, is_file_name, record_of, session_of,
};
use crate::core::id::FrameId;
use crate::store::chains::tree_rows::{self, TABLES, Table};
use crate::store::database::error::Fault;
use crate::store::database::error::{Result, StoreError};
use crate::store::database::schema;
use crate::store::database::store::Store;
use crate::store::files::lease::Lease;
use crate::store::files::orphan_files::entries;
use crate::store::housekeeping::export_error::ArchiveError;

/// How much of a file is in one line.
const PIECE: u64 = 1 << 20;

/// Writes records, and what must be known of them at the end.
struct Writer<'a> {
    to: &'a mut dyn Write,
    lines: u64,
    checksum: Checksum,
}

impl Store {
    /// Writes the tree of `root` to `to`: its rows, the kept copies of the sessions that its frames continue from, and the
    /// results of tools that lie beside those.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`] when an agent of the tree runs, a copy is missing, or `to` cannot be written;
    /// [`StoreError::UnknownFrame`], or a database or a state directory that cannot be read.
    pub fn export(&self, root: FrameId, to: &mut dyn Write) -> Result<()> {
        let mut writer = Writer { to, lines: 0, checksum: Checksum::default() };
        self.read(|connection| {
            tree_rows::collect(connection, root)?;
            let mut frames = Vec::new();
            for id in tree_rows::frames(connection)? {
                let frame = crate::store::chains::frames::existing(connection, id)?;
                if matches!(frame.state, FrameState::Running { .. }) || Lease::is_held(&self.dir, id)? {
                    return Err(StoreError::from(ArchiveError::Running(id)).into());
                }
                frames.push(frame);
            }
            let program = env!("CARGO_PKG_VERSION").to_owned();
            writer.write(&Record::Archive(Header { format: FORMAT, schema: schema::known(), program, root }))?;
            for table in TABLES {
                rows(connection, &table, &mut writer)?;
            }
            for frame in frames {
                let kept = frame.checkpoint.is_none_or(|session| self.dir.checkpoint(frame.id, session).is_file());
                if !kept && frame.state != FrameState::Done {
                    return Err(StoreError::from(ArchiveError::NoCopy(frame.id)).into());
                }
                let current = frame.checkpoint.map(|attempt| attempt.to_string());
                let is_current = |name: &str| current.as_ref().is_some_and(|current| name.starts_with(current));
                let folder = self.dir.frame_path(frame.id);
                let broken = |error| StoreError::io(&folder, error);
                for name in files(&folder).map_err(broken)? {
                    let is_copy = session_of(&name).is_some() || name.contains(&format!("{BESIDE}/"));
                    if !is_copy || is_current(&name) {
                        writer.file(frame.id, &name, &folder.join(&name))?;
                    }
                }
            }
            writer.end()
        })
    }
}

/// The transcripts in a frame's directory, and in those below it the results of tools and what agents had besides.
fn files(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        if session_of(&name).is_some() {
            found.push(name);
        } else if session_of(&format!("{name}.jsonl")).is_some() {
            for result in entries(&entry.path().join(crate::store::files::tool_results::FOLDER))? {
                found.push(format!(
                    "{name}/{}/{}",
                    crate::store::files::tool_results::FOLDER,
                    result.file_name().to_string_lossy()
                ));
            }
        } else if name.ends_with(BESIDE) {
            let kept = crate::store::files::session_files::kept(&entry.path())?.into_iter();
            let kept = kept.map(|file| format!("{name}/{}", file.to_string_lossy()));
            found.extend(kept.filter(|name| is_file_name(name)));
        }
    }
    found.sort();
    Ok(found)
}

/// Rows are written in the order in which they were made.
fn rows(connection: &Connection, table: &Table, writer: &mut Writer<'_>) -> std::result::Result<(), Fault> {
    let Table { name, of_members } = table;
    let has_seq = connection.column_exists(None, *name, "seq")?;
    let order = if has_seq { "ORDER BY seq" } else { "" };
    let columns = tree_rows::columns(connection, name)?;
    let mut statement =
        connection.prepare(&format!("SELECT {} FROM {name} WHERE {of_members} {order}", columns.join(", ")))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut values = Map::new();
        for (at, column) in columns.iter().enumerate() {
            values.insert(column.clone(), value(row.get_ref(at)?)?);
        }
        writer.write(&Record::Row(Row { table: (*name).to_owned(), values }))?;
    }
    Ok(())
}

fn value(value: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        text @ (ValueRef::Text(_) | ValueRef::Blob(_)) => text.as_str()?.into(),
    })
}

impl Writer<'_> {
    fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record).map_err(|error| ArchiveError::Write(error.into()))?;
        line.push(b'\n');
        self.lines += 1;
        self.checksum.add(&line);
        Ok(self.to.write_all(&line).map_err(ArchiveError::Write)?)
    }

    fn file(&mut self, frame: FrameId, name: &str, path: &Path) -> Result<()> {
        let broken = |error| StoreError::io(path, error);
        let mut file = File::open(path).map_err(broken)?;
        let bytes = file.metadata().map_err(broken)?.len();
        self.write(&Record::File(FileHeader { frame, name: name.to_owned(), bytes }))?;
        let mut left = bytes;
        let mut piece = Vec::new();
        while left > 0 {
            let want = left.min(PIECE) - piece.len() as u64;
            let got = (&mut file).take(want).read_to_end(&mut piece).map_err(broken)?;
            if got as u64 != want {
                return Err(broken(io::ErrorKind::UnexpectedEof.into()));
            }
            // A character that goes on in the next piece goes there as a whole.
            let whole = match str::from_utf8(&piece) {
                Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
                _ => piece.len(),
            };
            let rest = piece.split_off(whole);
            self.write(&record_of(&piece))?;
            left -= whole as u64;
            piece = rest;
        }
        Ok(())
    }

    fn end(&mut self) -> std::result::Result<(), Fault> {
        let end = Record::End(End { lines: self.lines, checksum: self.checksum.text() });
        self.write(&end)?;
        Ok(self.to.flush().map_err(|error| StoreError::from(ArchiveError::Write(error)))?)
    }
}
