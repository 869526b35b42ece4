//! The content of copies in object storage, and the list of all objects there.
//!
//! An object is listed before it is written, and until it is deleted, so that a kill leaves no object that is not listed. Each has its
//! own name, and a copy refers only to objects that are new or to which another copy of the frame refers. So an old object without a
//! copy never gets one again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::sql::database::codec::Id;
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::object_storage::ObjectStorage;
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::housekeeping::chunks::{Chunks, LARGEST};

/// How many objects are held in memory until they are written together.
const TOGETHER: usize = 8;

/// How many unused objects are deleted in one transaction.
const IN_A_STEP: usize = 100;

/// A chunk of a file in object storage.
#[derive(Debug)]
pub(crate) struct StoredChunk {
    pub(crate) object: String,
    /// Its size before compression.
    pub(crate) bytes: u64,
}

/// The chunks of each file in object storage.
pub(crate) type Stored = HashMap<String, Vec<StoredChunk>>;

/// Writes the content of files to object storage if this host has one. What the frame has there already is not written again. If
/// object storage fails, the caller writes the content to the database, so that the pause does not fail.
pub(crate) fn store_all(store: &Database, frame: FrameId, files: &[(String, PathBuf)]) -> Result<Stored> {
    let stored = match store.object_storage() {
        Ok(None) => return Ok(Stored::new()),
        Ok(Some(storage)) => write(store, storage, frame, files),
        Err(error) => Err(error),
    };
    match stored {
        Err(error @ StoreError::ObjectStorage { .. }) => {
            tracing::warn!("{error}; the files of {} are in the database instead", frame.short());
            Ok(Stored::new())
        }
        stored => stored,
    }
}

fn write(store: &Database, storage: &ObjectStorage, frame: FrameId, files: &[(String, PathBuf)]) -> Result<Stored> {
    let sql = "SELECT o.digest, o.id FROM objects AS o WHERE o.frame = ?1 AND o.place = ?2
         AND EXISTS (SELECT 1 FROM copies AS c WHERE c.object = o.id)";
    let values = (Id(frame), storage.place());
    let known = store.query(|connection| {
        connection.read_all(sql, values, |row| Ok((row.get::<_, String>("digest")?, row.get::<_, String>("id")?)))
    });
    let mut known: HashMap<String, String> = known?.into_iter().filter(|(_, id)| is_name(id)).collect();
    // Somebody may have deleted them, and each later pause would refer to them.
    let present = if known.is_empty() { HashSet::new() } else { storage.present(known.values().cloned().collect())? };
    known.retain(|_, id| present.contains(id));
    let (mut stored, mut new) = (Stored::new(), Vec::new());
    for (name, path) in files {
        for chunk in Chunks::of(path)? {
            let chunk = chunk?;
            let object = match known.entry(digest(&chunk.content)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(unknown) => {
                    let id = format!("{frame}/{}", Uuid::new_v4());
                    new.push(New { id: id.clone(), digest: unknown.key().clone(), content: chunk.content });
                    unknown.insert(id).clone()
                }
            };
            stored.entry(name.clone()).or_default().push(StoredChunk { object, bytes: chunk.bytes });
            if new.len() == TOGETHER {
                put(store, storage, frame, std::mem::take(&mut new))?;
            }
        }
    }
    put(store, storage, frame, new)?;
    Ok(stored)
}

/// An object that is not written yet.
struct New {
    id: String,
    digest: String,
    content: Vec<u8>,
}

fn put(store: &Database, storage: &ObjectStorage, frame: FrameId, new: Vec<New>) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    store.beside(Step::KeepCopies, |connection| {
        let sql = "INSERT INTO objects (id, place, frame, digest) VALUES (?1, ?2, ?3, ?4)";
        new.iter().try_for_each(|object| {
            connection.run(sql, (&object.id, storage.place(), Id(frame), &object.digest)).map(drop)
        })
    })?;
    storage.put(new.into_iter().map(|object| (object.id, object.content)).collect())
}

/// Whether this program names objects like this. Another user of the database may have recorded anything.
fn is_name(id: &str) -> bool {
    id.split_once('/').is_some_and(|(frame, own)| frame.parse::<FrameId>().is_ok() && own.parse::<Uuid>().is_ok())
}

/// Checks that the objects of a chain's unfinished agents exist, before any is read.
pub(crate) fn check_all(store: &Database, root: FrameId) -> Result<()> {
    let Some(place) = store.copies_place() else { return Ok(()) };
    let sql =
        "SELECT DISTINCT o.id FROM copies AS c JOIN objects AS o ON o.id = c.object JOIN frames AS f ON f.id = c.frame
         WHERE f.root = ?1 AND f.status <> 'done' AND o.place = ?2";
    let ids: Vec<String> =
        store.query(|connection| connection.read_all(sql, (Id(root), place), |row| row.get("id")))?;
    if ids.is_empty() {
        return Ok(());
    }
    let Some(storage) = store.object_storage()? else { return Ok(()) };
    let present = storage.present(ids.clone())?;
    match ids.into_iter().find(|id| !present.contains(id)) {
        None => Ok(()),
        Some(id) => {
            Err(StoreError::ObjectStorage { place: place.to_owned(), why: format!("the object {id} is missing") })
        }
    }
}

/// Reads an object, which must be what was written. `place` and `digest` are those that the list has.
pub(crate) fn read(store: &Database, object: &str, place: &str, expected: &str) -> Result<Vec<u8>> {
    // Where this host reads and writes is decided here, not in the database.
    let storage = store.object_storage()?.filter(|storage| storage.place() == place);
    let storage =
        storage.filter(|_| is_name(object)).ok_or_else(|| StoreError::OtherObjectStorage(place.to_owned()))?;
    let content = storage.get(object, LARGEST)?;
    if digest(&content) == expected {
        return Ok(content);
    }
    let why = format!("the object {object} is damaged: its digest is different");
    Err(StoreError::ObjectStorage { place: place.to_owned(), why })
}

/// Deletes the objects that no copy needs: of a frame, or of all. The next `gc` tries again what fails.
pub(crate) fn sweep(store: &Database, frame: Option<FrameId>) {
    let sweep = || -> Result<()> {
        // An outage was reported already.
        let Some(storage) = store.object_storage()?.filter(|storage| !storage.is_pausing()) else { return Ok(()) };
        let (mut after, mut trouble) = (Some(String::new()), None);
        while let Some(last) = after {
            let (next, error) = sweep_step(store, storage, frame, &last)?;
            (after, trouble) = (next, trouble.or(error));
        }
        trouble.map_or(Ok(()), Err)
    };
    if let Err(error) = sweep() {
        tracing::warn!("failed to delete objects that no chain needs, which the next gc tries again: {error}");
    }
}

/// Deletes some objects after the one named `after`. Returns the name after which to continue, and why any could not be deleted.
///
/// A new object may not have a copy yet, so it is kept for an hour while its frame exists. The second statement checks again, because a
/// copy may have been recorded before the objects were locked; the lock keeps others from being recorded later.
fn sweep_step(
    store: &Database,
    storage: &ObjectStorage,
    frame: Option<FrameId>,
    after: &str,
) -> Result<(Option<String>, Option<StoreError>)> {
    let unused = format!(
        "SELECT o.id FROM objects AS o WHERE o.place = ?1 AND (?2::text IS NULL OR o.frame = ?2) AND o.id > ?3
           AND NOT EXISTS (SELECT 1 FROM copies AS c WHERE c.object = o.id)
           AND (o.made < clock_timestamp() - interval '1 hour' OR agent_cli.is_new(o.frame))
           AND (NOT agent_cli.is_limited() OR agent_cli.is_new(o.frame) OR agent_cli.may_delete(o.frame))
         ORDER BY o.id LIMIT {IN_A_STEP} FOR UPDATE OF o SKIP LOCKED"
    );
    let step = |connection: &Connection| -> TxResult<_> {
        let values = (storage.place(), frame.map(Id), after);
        let ids: Vec<String> = connection.read_all(&unused, values, |row| row.get("id"))?;
        let last = ids.last().filter(|_| ids.len() == IN_A_STEP).cloned();
        let mut unused = Vec::new();
        for id in ids {
            if is_name(&id) && !connection.finds("SELECT 1 FROM copies WHERE object = ?1", [&id])? {
                unused.push(id);
            }
        }
        let (gone, error) = storage.delete(&unused);
        for id in gone {
            connection.run("DELETE FROM objects WHERE id = ?1", [&id])?;
        }
        Ok((last, error))
    };
    Ok(store.beside(Step::KeepCopies, step)?.unwrap_or_default())
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
