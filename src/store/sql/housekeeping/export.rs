//! Writes a chain to an archive: everything needed to continue it.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use crate::core::agent::session_file_names::BESIDE;
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::archive::{ArchiveMember, FORMAT, Manifest, is_id, is_transcript};
use crate::core::id::FrameId;
use crate::core::text::escape;
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::files::durable::TEMPORARY;
use crate::store::files::entries::entries;
use crate::store::files::lease::Lease;
use crate::store::files::{session_files, tool_results};
use crate::store::housekeeping::archive::writer::{SCHEMA, Writer};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::housekeeping::orphan_files;
use crate::store::sql::tables::frames;
use crate::store::sql::tables::tree_rows::{self, TABLES, Table};

pub(crate) fn export(store: &Database, root: FrameId, to: &mut dyn Write) -> Result<()> {
    store.read(|connection| {
        tree_rows::collect(connection, &[root])?;
        let ids = tree_rows::frames(connection)?;
        let frames = ids.into_iter().map(|id| frames::existing(connection, id));
        let frames = frames.collect::<std::result::Result<Vec<_>, _>>()?;
        for frame in &frames {
            if matches!(frame.state, FrameState::Running { .. }) || Lease::is_held(&store.dir, frame.id)? {
                return Err(StoreError::from(ArchiveError::Running(frame.id)).into());
            }
        }
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let manifest = Manifest { program, format: FORMAT, schema: SCHEMA, root };
        let mut writer = Writer::new(to, &manifest)?;
        for table in TABLES {
            let rows = rows(connection, &table)?;
            if !rows.is_empty() {
                writer.rows(table.name, &rows)?;
            }
        }
        for frame in frames {
            let kept = frame.checkpoint.is_none_or(|session| store.dir.checkpoint(frame.id, session).is_file());
            if !kept && frame.state != FrameState::Done {
                return Err(StoreError::from(ArchiveError::NoCopy(frame.id)).into());
            }
            let earlier = orphan_files::copies_of_earlier(connection, frame.id)?;
            let kept: Vec<_> = frame.checkpoint.into_iter().chain(earlier).map(|copy| copy.to_string()).collect();
            let folder = store.dir.frame_path(frame.id);
            let names = files(&folder, &kept).map_err(|error| StoreError::io(&folder, error))?;
            for name in names {
                let path = folder.join(&name);
                let member = ArchiveMember::File { frame: frame.id, name };
                // An agent gave it a name that import always refuses.
                if ArchiveMember::parse(&member.path()).is_none() || !path.is_file() {
                    tracing::warn!("{} is left out: its name", escape::one_line(&path.display().to_string()));
                    continue;
                }
                writer.file(&member, &path)?;
            }
        }
        Ok(writer.finish()?)
    })
}

/// The copies that are kept, and the results of tools of all sessions.
pub(crate) fn files(folder: &Path, kept: &[String]) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_kept = kept.iter().any(|copy| name.starts_with(copy.as_str()));
        if is_kept && is_transcript(&name) {
            found.push(name);
        } else if is_kept && name.ends_with(BESIDE) {
            let kept = session_files::kept(&entry.path())?;
            found.extend(kept.iter().map(|file| format!("{name}/{}", file.to_string_lossy())));
        } else if is_id(&name) {
            let results = entries(&entry.path().join(tool_results::FOLDER))?;
            let results = results.iter().map(|result| result.file_name().to_string_lossy().into_owned());
            let whole = results.filter(|result| !result.ends_with(TEMPORARY));
            found.extend(whole.map(|result| format!("{name}/{}/{result}", tool_results::FOLDER)));
        }
    }
    found.sort();
    Ok(found)
}

/// The rows in the order in which they were created.
fn rows(connection: &Connection, table: &Table) -> TxResult<Vec<u8>> {
    let Table { name, of_members } = table;
    let order = if tree_rows::has_seq(name) { "ORDER BY seq" } else { "ORDER BY 1" };
    let columns = tree_rows::columns(connection, name)?;
    let sql = format!("SELECT {} FROM {name} WHERE {of_members} {order}", columns.join(", "));
    let mut text = Vec::new();
    connection.each(&sql, [], |row| {
        let mut values = Map::new();
        for (at, column) in columns.iter().enumerate() {
            values.insert(column.clone(), value(row.get_ref(at)?)?);
        }
        text.extend_from_slice(format!("{}\n", Value::Object(values)).as_bytes());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(text)
}

fn value(value: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        text @ (ValueRef::Text(_) | ValueRef::Blob(_)) => text.as_str()?.into(),
    })
}
