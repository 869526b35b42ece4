//! Imports an exported tree: all of it, or nothing.
//!
//! The files are in a directory that belongs to no frame. One transaction writes the rows, checks them as `fsck` would, and
//! moves the files to their frames. If the process is killed before its end, `gc` removes them.

use std::fs;

use rusqlite::types::Value as SqlValue;
use serde_json::Value;

use crate::core::agent::child_worktree::Worktree;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::archive::{ArchiveRow, is_id};
use crate::core::housekeeping::consistency::judge;
use crate::core::housekeeping::relocation::Relocation;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::files::durable::sync_dir;
use crate::store::housekeeping::archive::adapt::Adapted;
use crate::store::housekeeping::archive::unpack::{Stage, Unpacked};
use crate::store::sql::database::codec;
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, Fault, TxResult};
use crate::store::sql::housekeeping::copies;
use crate::store::sql::housekeeping::fsck;
use crate::store::sql::tables::tree_rows::{self, TABLES};
use crate::store::sql::tables::{chains, frames};

pub(crate) fn import(store: &Database, archive: &Adapted) -> Result<FrameId> {
    let archive: &Unpacked = &archive.unpacked;
    let root = archive.root;
    let mut given = Vec::new();
    let written = store.write(Step::Import, |connection| {
        connection.defer_references()?;
        // A user of a server may add an agent to a chain of this host.
        let (chains, others): (Vec<_>, Vec<_>) = archive.rows.iter().partition(|row| row.table == "chains");
        for row in chains.into_iter().chain(others) {
            insert(connection, row)?;
        }
        verify(connection, root, &archive.rows)?;
        // The person who imports the chain names its directories, and the other chains of its family are not imported.
        chains::forget_origin(connection, root)?;
        chains::take(connection, root)?;
        if frames::existing(connection, root)?.state.is_pending() {
            chains::give_up_if_taken(connection, codec::now(), root)?;
        }
        usable(connection, &archive.stage, &archive.relocation)?;
        for id in &archive.frames {
            if frames::load(connection, *id)?.is_none_or(|frame| frame.root != root) {
                return Err(StoreError::damaged_archive("a file belongs to no agent").into());
            }
        }
        for id in &archive.frames {
            let place = store.dir.frame_path(*id);
            // Rows can no longer conflict, but the files of a removed frame may exist.
            let _ = fs::remove_dir_all(&place);
            fs::rename(archive.stage.folder(*id), &place).map_err(|error| StoreError::io(&place, error))?;
            given.push(place);
        }
        let frames = store.dir.frames();
        sync_dir(&frames).map_err(|error| StoreError::io(&frames, error))?;
        Ok(root)
    });
    // If the connection was lost at the end, the rows may have been recorded. If they were not, `gc` removes the files.
    if written.as_ref().is_err_and(|error| !matches!(error, StoreError::Server { .. })) {
        given.iter().for_each(|place| drop(fs::remove_dir_all(place)));
    }
    if written.is_ok() {
        copies::keep_all(store, Some(root));
    }
    written
}

fn insert(connection: &Connection, row: &ArchiveRow) -> TxResult<()> {
    let ids = [("chains", "root"), ("frames", "id"), ("attempts", "id"), ("requests", "id"), ("messages", "id")];
    for (table, column) in ids.into_iter().filter(|(table, _)| *table == row.table) {
        let Some(id) = row.values.get(column).and_then(Value::as_str).filter(|id| is_id(id)) else {
            return Err(StoreError::damaged_archive("it has a row without an id").into());
        };
        if connection.finds(&format!("SELECT 1 FROM {table} WHERE {column} = ?1"), [id])? {
            return Err(StoreError::from(ArchiveError::Exists(id.to_owned())).into());
        }
    }
    let known = tree_rows::columns(connection, &row.table)?;
    let mut values = Vec::new();
    for (column, value) in &row.values {
        // SQLite ignores the case of column names, but the inventory that a person was shown was read by the exact names.
        if !known.contains(column) {
            return Err(StoreError::damaged_archive("it has a row with an unknown column").into());
        }
        values.push(match value {
            Value::Null => SqlValue::Null,
            Value::String(text) => text.clone().into(),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => number.into(),
                (None, Some(number)) => number.into(),
                (None, None) => return Err(StoreError::damaged_archive("it has a number that is too large").into()),
            },
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(StoreError::damaged_archive("it has a value of no kind").into());
            }
        });
    }
    let columns: Vec<&str> = row.values.keys().map(String::as_str).collect();
    let marks: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
    let sql = format!("INSERT INTO {} ({}) VALUES ({})", row.table, columns.join(", "), marks.join(", "));
    connection.run(&sql, values).map_err(|fault| match fault {
        Fault::Sql(error) => StoreError::damaged_archive(&error.to_string()).into(),
        Fault::Known(StoreError::Server { why, .. }) => StoreError::damaged_archive(&why).into(),
        known => known,
    })
}

/// Checks that the rows are exactly the rows of one tree that is not running.
fn verify(connection: &Connection, root: FrameId, rows: &[ArchiveRow]) -> TxResult<()> {
    tree_rows::collect(connection, &[root])?;
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", table.name, table.of_members);
        let found: u32 = connection.read_one(&sql, [], |row| row.get(0))?;
        if found as usize != rows.iter().filter(|row| row.table == table.name).count() {
            return Err(StoreError::damaged_archive("it has a row of another tree").into());
        }
    }
    let (frames, facts) = fsck::members(connection)?;
    let found = facts.findings.into_iter().chain(judge(&frames, &facts.requests));
    if let Some(finding) = found.into_iter().find(|finding| !finding.is_note()) {
        return Err(StoreError::from(ArchiveError::Contradicts(finding)).into());
    }
    if !frames.iter().any(|facts| facts.frame.id == root) {
        return Err(StoreError::damaged_archive("its root is missing").into());
    }
    let running = frames.iter().find(|facts| matches!(facts.frame.state, FrameState::Running { .. }));
    match running {
        Some(facts) => Err(StoreError::from(ArchiveError::Running(facts.frame.id)).into()),
        None => Ok(()),
    }
}

/// Checks that agents which can continue will be able to.
fn usable(connection: &Connection, stage: &Stage, relocation: &Relocation) -> TxResult<()> {
    for id in tree_rows::frames(connection)? {
        let Frame { cwd, state, checkpoint, launch, .. } = frames::existing(connection, id)?;
        if state == FrameState::Done {
            continue;
        }
        let copy = checkpoint.map(|session| stage.folder(id).join(format!("{session}.jsonl")));
        if copy.is_some_and(|copy| !copy.is_file()) {
            return Err(StoreError::from(ArchiveError::NoCopy(id)).into());
        }
        let worktree = launch.worktree.map(Box::new);
        // A worktree that no agent has worked in yet is created when the frame begins.
        let will_be_made = checkpoint.is_none() && worktree.as_ref().is_some_and(|tree| tree.repository.is_dir());
        if !cwd.is_dir() && !will_be_made {
            let before =
                |worktree: Box<Worktree>| Box::new(Worktree { path: relocation.before(&worktree.path), ..*worktree });
            let (worktree, was) = (worktree.map(before), relocation.before(&cwd));
            let missing = ArchiveError::NoDirectory { frame: id, cwd: was, here: cwd, worktree };
            return Err(StoreError::from(missing).into());
        }
    }
    Ok(())
}
