//! Copies the files that an agent needs on another host to the server, and restores them. The content is in the database or in object
//! storage.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::core::housekeeping::archive::ArchiveMember;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{Durability, replace};
use crate::store::sql::database::codec::{Id, count, id, signed};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::housekeeping::chunks::{Chunks, unpack};
use crate::store::sql::housekeeping::objects::{self, Stored};
use crate::store::sql::housekeeping::{export, orphan_files};

/// Copies the files of these attempts of a frame, and the results of tools. A file whose size is that of its copy is not copied
/// again: a kept file is written once. The copies of earlier attempts remain until [`prune`] removes them. `check` fails if this host
/// may not record them.
pub(crate) fn keep(
    store: &Database,
    frame: FrameId,
    attempts: &[AttemptId],
    check: impl FnOnce(&Connection) -> TxResult<()>,
) -> Result<()> {
    if store.connection.host().is_none() {
        return Ok(());
    }
    let files = store.query(|connection| missing(connection, store, frame, attempts))?;
    let stored = objects::store_all(store, frame, &files)?;
    store.beside(Step::KeepCopies, |connection| {
        check(connection)?;
        files.iter().try_for_each(|(name, path)| write(connection, frame, name, path, &stored))
    })?;
    Ok(())
}

/// The files without a copy where copies are kept now, with their names in the records.
fn missing(
    connection: &Connection,
    store: &Database,
    frame: FrameId,
    attempts: &[AttemptId],
) -> TxResult<Vec<(String, PathBuf)>> {
    let folder = store.dir.frame_path(frame);
    let broken = |error| StoreError::io(&folder, error);
    let kept: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    let names = match export::files(&folder, &kept) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(broken)?,
    };
    let sql = "SELECT c.name, sum(c.bytes)::bigint AS bytes FROM copies AS c LEFT JOIN objects AS o ON o.id = c.object
         WHERE c.frame = ?1 GROUP BY c.name HAVING bool_and(c.object IS NULL OR o.place = ?2)";
    let read = connection
        .read_all(sql, (Id(frame), store.copies_place()), |row| Ok((row.get("name")?, count(row, "bytes")?)))?;
    let known: HashMap<String, u64> = read.into_iter().collect();
    let mut missing = Vec::new();
    for name in names {
        let path = folder.join(&name);
        if ArchiveMember::parse(&ArchiveMember::File { frame, name: name.clone() }.path()).is_none() || !path.is_file()
        {
            continue;
        }
        let bytes = path.metadata().map_err(|error| StoreError::io(&path, error))?.len();
        if known.get(&name) != Some(&bytes) {
            missing.push((name, path));
        }
    }
    Ok(missing)
}

/// Records a copy, with its content unless it is stored elsewhere.
fn write(connection: &Connection, frame: FrameId, name: &str, path: &Path, stored: &Stored) -> TxResult<()> {
    connection.run("DELETE FROM copies WHERE frame = ?1 AND name = ?2", (Id(frame), name))?;
    if let Some(chunks) = stored.get(name) {
        for (chunk, number) in chunks.iter().zip(0_i64..) {
            let sql = "INSERT INTO copies (frame, name, chunk, bytes, object) VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.run(sql, (Id(frame), name, number, signed(chunk.bytes), &chunk.object))?;
        }
        return Ok(());
    }
    for (chunk, number) in Chunks::of(path)?.zip(0_i64..) {
        let chunk = chunk?;
        let sql = "INSERT INTO copies (frame, name, chunk, bytes, content) VALUES (?1, ?2, ?3, ?4, ?5)";
        connection.run(sql, (Id(frame), name, number, signed(chunk.bytes), chunk.content))?;
    }
    Ok(())
}

/// Copies the files that the agents of a chain need. Without a chain, those of all chains of this host. The chains are recorded
/// already, and work here without the copies.
pub(crate) fn keep_all(store: &Database, root: Option<FrameId>) {
    let sql = "SELECT f.id FROM frames AS f JOIN chains AS c ON c.root = f.root
         WHERE f.checkpoint IS NOT NULL AND c.host = ?1 AND (?2::text IS NULL OR f.root = ?2)";
    let frames = if store.connection.host().is_none() {
        return;
    } else {
        store.query(|connection| connection.read_all(sql, (connection.host(), root.map(Id)), |row| id(row, "id")))
    };
    let keep_one = |frame| {
        let attempts = store.query(|connection| orphan_files::copies_of(connection, frame))?;
        keep(store, frame, &attempts, |_| Ok(()))
    };
    // One that fails does not keep the others from being copied.
    let kept = frames.map(|frames| frames.into_iter().filter_map(|frame| keep_one(frame).err()).collect::<Vec<_>>());
    if let Some(error) = kept.unwrap_or_else(|error| vec![error]).first() {
        tracing::warn!(
            "the files of some agents were not copied to the server, so other hosts cannot continue them until they have run again: {error}"
        );
    }
}

/// Removes the copies of attempts other than these, which the frame no longer needs.
pub(crate) fn prune(connection: &Connection, frame: FrameId, needed: &[AttemptId]) -> TxResult<()> {
    let kept: Vec<String> = needed.iter().map(ToString::to_string).collect();
    let sql = "SELECT DISTINCT name FROM copies WHERE frame = ?1";
    let names: Vec<String> = connection.read_all(sql, [Id(frame)], |row| row.get("name"))?;
    // The results of tools are in folders of sessions.
    let is_of_attempt =
        |name: &str| name.split_once('/').is_none_or(|(folder, _)| folder.parse::<AttemptId>().is_err());
    for name in names.iter().filter(|name| is_of_attempt(name) && !kept.iter().any(|kept| name.starts_with(kept))) {
        connection.run("DELETE FROM copies WHERE frame = ?1 AND name = ?2", (Id(frame), name))?;
    }
    Ok(())
}

/// The copies that a chain needs: those of its agents, and of the agents whose conversations they will begin with.
pub(crate) fn listed(connection: &Connection, root: FrameId) -> TxResult<Vec<(FrameId, String)>> {
    let sql = "SELECT c.frame, c.name FROM copies AS c WHERE c.chunk = 0 AND (c.frame IN (SELECT id FROM frames WHERE root = ?1)
         OR c.frame IN (SELECT baseline_frame FROM frames WHERE root = ?1 AND checkpoint IS NULL)) ORDER BY c.frame, c.name";
    connection.read_all(sql, [Id(root)], |row| Ok((id(row, "frame")?, row.get("name")?)))
}

/// Writes the files of a chain's agents to the state directory, and returns which.
pub(crate) fn restore(store: &Database, root: FrameId) -> Result<Vec<(FrameId, String)>> {
    let listed = store.query(|connection| listed(connection, root))?;
    let finished = "SELECT id FROM frames WHERE root = ?1 AND status = 'done'";
    let finished: HashSet<FrameId> =
        store.query(|connection| connection.read_all(finished, [Id(root)], |row| id(row, "id")))?.into_iter().collect();
    objects::check_all(store, root)?;
    for (frame, name) in &listed {
        let member = ArchiveMember::File { frame: *frame, name: name.clone() };
        // Another program can have written to the database.
        if ArchiveMember::parse(&member.path()).is_none() {
            continue;
        }
        let broken = |error| StoreError::io(&store.dir.frame_path(*frame), error);
        let path = store.dir.frame_dir(*frame).map_err(broken)?.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(broken)?;
        }
        let mut failed = Ok(());
        let written = replace(Step::Take, &path, Durability::PowerFailure, |file| {
            failed = read(store, *frame, name, file);
            if failed.is_ok() { Ok(()) } else { Err(io::Error::other("the copy cannot be read")) }
        });
        match failed {
            // It may never continue.
            Err(error @ StoreError::OtherObjectStorage(_)) if finished.contains(frame) => {
                tracing::warn!("{}: {error}", frame.short());
                continue;
            }
            failed => failed?,
        }
        written.map_err(broken)?;
    }
    Ok(listed)
}

/// A chunk as it is recorded.
enum Content {
    Here(Vec<u8>),
    Stored { object: String, place: String, digest: String },
}

/// Reads a file chunk by chunk.
fn read(store: &Database, frame: FrameId, name: &str, file: &mut File) -> Result<()> {
    let broken = |error| StoreError::io(Path::new(name), error);
    for number in 0_i64.. {
        let content = match store.query(|connection| chunk(connection, frame, name, number))? {
            None => break,
            Some(Content::Here(content)) => content,
            Some(Content::Stored { object, place, digest }) => objects::read(store, &object, &place, &digest)?,
        };
        unpack(&content, file).map_err(broken)?;
    }
    file.flush().map_err(broken)
}

fn chunk(connection: &Connection, frame: FrameId, name: &str, number: i64) -> TxResult<Option<Content>> {
    let sql = "SELECT c.content, o.id, o.place, o.digest FROM copies AS c LEFT JOIN objects AS o ON o.id = c.object
         WHERE c.frame = ?1 AND c.name = ?2 AND c.chunk = ?3";
    let values: [&dyn rusqlite::ToSql; 3] = [&Id(frame), &name, &number];
    let mut found = None;
    connection.each(sql, values.as_slice(), |row| {
        found = Some(match row.get::<_, Option<Vec<u8>>>("content")? {
            Some(content) => Content::Here(content),
            None => Content::Stored { object: row.get("id")?, place: row.get("place")?, digest: row.get("digest")? },
        });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
