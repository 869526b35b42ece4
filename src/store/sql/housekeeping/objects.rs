//! The content of copies in object storage, and the list of all objects there.
//!
//! An object is listed before it is written, and until it is deleted, so that none is forgotten after a kill. Each has a name of its
//! own, and a copy refers only to objects that are new or to which another copy of the frame refers. So an old object without a copy
//! never gets one again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

/// Writes the content of files to object storage if this host has one. What the frame has there already is not written again. If it
/// fails, the content belongs in the database, so that a pause never fails because of it.
pub(crate) fn store_all(store: &Database, frame: FrameId, files: &[(String, PathBuf)]) -> Result<Stored> {
    let stored = match store.object_storage() {
        Ok(None) => return Ok(Stored::new()),
        Ok(Some(storage)) => write(store, storage, frame, files),
        Err(error) => Err(error),
    };
    match stored {
        Err(error @ StoreError::ObjectStorage { .. }) => {
            tracing::warn!("the database keeps the files of {} instead: {error}", frame.short());
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
    let mut known: HashMap<String, String> = known?.into_iter().collect();
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

/// Reads an object, which must be what was written. `place` and `digest` are those that the list has.
pub(crate) fn read(store: &Database, object: &str, place: &str, expected: &str) -> Result<Vec<u8>> {
    // Where this host reads and writes is decided here, not in the database.
    let storage = store.object_storage()?.filter(|storage| storage.place() == place);
    let storage = storage.ok_or_else(|| StoreError::OtherObjectStorage(place.to_owned()))?;
    let content = storage.get(object, LARGEST)?;
    if digest(&content) == expected {
        return Ok(content);
    }
    let why = format!("the object {object} is not what was written");
    Err(StoreError::ObjectStorage { place: place.to_owned(), why })
}

/// Deletes the objects that no copy needs: of a frame, or of all. What fails is tried again by the next `gc`.
pub(crate) fn sweep(store: &Database, frame: Option<FrameId>) {
    let sweep = || -> Result<()> {
        if let Some(storage) = store.object_storage()? {
            while sweep_step(store, storage, frame)? == IN_A_STEP {}
        }
        Ok(())
    };
    if let Err(error) = sweep() {
        tracing::warn!("files that no chain needs remain in the object storage until the next gc: {error}");
    }
}

/// The objects of a frame that exists may be about to get their copies. The second statement sees the copies that were recorded before
/// the first had locked the objects, and no copy can be recorded later.
fn sweep_step(store: &Database, storage: &ObjectStorage, frame: Option<FrameId>) -> Result<usize> {
    let unused = format!(
        "SELECT o.id FROM objects AS o WHERE o.place = ?1 AND (?2::text IS NULL OR o.frame = ?2)
           AND NOT EXISTS (SELECT 1 FROM copies AS c WHERE c.object = o.id)
           AND (o.made < clock_timestamp() - interval '1 hour' OR NOT EXISTS (SELECT 1 FROM frames AS f WHERE f.id = o.frame))
         LIMIT {IN_A_STEP} FOR UPDATE OF o SKIP LOCKED"
    );
    let delete = "DELETE FROM objects WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM copies WHERE object = ?1)";
    let step = |connection: &Connection| -> TxResult<usize> {
        let values = (storage.place(), frame.map(Id));
        let ids: Vec<String> = connection.read_all(&unused, values, |row| row.get("id"))?;
        let (found, mut gone) = (ids.len(), Vec::new());
        for id in ids {
            if connection.change(delete, [&id])? == 1 {
                gone.push(id);
            }
        }
        storage.delete(&gone)?;
        Ok(found)
    };
    Ok(store.beside(Step::KeepCopies, step)?.unwrap_or_default())
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use jiff::Timestamp;
    use tempfile::TempDir;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::housekeeping::hosting::Offer;
    use crate::core::housekeeping::retention::Retention;
    use crate::store::files::state_dir::server_file::ServerFile;
    use crate::store::handle::Store;
    use crate::store::hosts::Wanted;
    use crate::store::housekeeping::removable::Decided;
    use crate::store::records::{Caller, NewFrame};
    use crate::store::sql::testing::end_leases;
    use crate::store::testing::{another_host, ask, attempt, new, new_server, store};

    /// Makes a host use object storage in a directory from now on.
    fn using(store: &Store, directory: &Path) -> Store {
        let server = store.dir().server().unwrap().unwrap();
        let plain = server.url.split("?copies=").next().unwrap();
        let url = format!("{plain}?copies=file://{}", directory.display());
        store.dir().set_server(&ServerFile { url, ..server.clone() }).unwrap();
        Store::open(store.dir().path()).unwrap()
    }

    /// Two hosts that use the same object storage; `None` without a server.
    fn hosts(objects: &Path) -> Option<(TempDir, Store, TempDir, Store)> {
        new_server()?;
        let (temp, here) = store();
        let (other, there) = another_host(&here).expect("they share a server");
        let (here, there) = (using(&here, objects), using(&there, objects));
        Some((temp, here, other, there))
    }

    /// Ends an attempt of an agent with this session, in a question.
    fn pauses(store: &Store, root: FrameId, session: &str) {
        let given = store.deliveries(root).unwrap().into_iter().map(|it| (it.request, it.result)).collect();
        let attempt = attempt(given);
        store.begin(root, &attempt).unwrap();
        let caller = Caller { frame: root, attempt: attempt.id };
        store.request(caller, None, &[ask("When?")]).unwrap();
        store.dir().frame_dir(root).unwrap();
        fs::write(store.dir().checkpoint(root, attempt.id), session).unwrap();
        store.end(caller, &Ending::Suspended);
    }

    fn chain(store: &Store) -> FrameId {
        let cwd = store.dir().path().to_owned();
        store.create_root(&NewFrame { cwd, ..new("task") }).unwrap()
    }

    /// Takes a chain of the first host.
    fn take(store: &Store, root: FrameId, from: &Store) -> Result<Option<FrameId>> {
        let offer = Offer { shared: vec![from.dir().path().to_owned()], ..Offer::default() };
        store.hosts().unwrap().take(Wanted::Chain(root), &offer)
    }

    fn files(below: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(below) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    fn rows(store: &Store, condition: &str) -> i64 {
        let sql = format!("SELECT count(*) AS rows FROM {condition}");
        store.database().query(|connection| connection.read_one(&sql, [], |row| row.get("rows"))).unwrap()
    }

    /// Text that stays large when it is compressed.
    fn session(lines: usize) -> String {
        (0..lines).map(|_| format!("{}\n", Uuid::new_v4())).collect()
    }

    #[test]
    fn files_travel_through_object_storage() {
        let objects = tempfile::tempdir().unwrap();
        let Some((_temp, here, _other, there)) = hosts(objects.path()) else { return };
        let root = chain(&here);
        let text = session(100_000);
        pauses(&here, root, &text);
        assert_eq!((rows(&here, "copies WHERE content IS NOT NULL"), rows(&here, "objects")), (0, 4));
        assert_eq!(files(objects.path()).len(), 4);

        // What has not changed is not written again, and what is no longer needed is deleted.
        there.answer(here.questions(None, true).unwrap()[0].id, "now").unwrap();
        let longer = format!("{text}{}", session(10));
        here.execute("UPDATE objects SET made = made - interval '2 hours'", []);
        pauses(&here, root, &longer);
        assert_eq!((rows(&here, "objects"), files(objects.path()).len()), (4, 4));
        let is_new = "objects WHERE made > clock_timestamp() - interval '1 hour'";
        assert_eq!(rows(&here, is_new), 1);

        end_leases(&here);
        let elsewhere = tempfile::tempdir().unwrap();
        let other = using(&there, elsewhere.path());
        let take = |store: &Store| take(store, root, &here);
        let place = format!("file://{}", objects.path().display());
        assert!(matches!(take(&other), Err(StoreError::OtherObjectStorage(named)) if named == place));
        let there = using(&other, objects.path());
        let damaged = files(objects.path()).pop().unwrap();
        let content = fs::read(&damaged).unwrap();
        for wrong in [vec![0; 10], vec![0; 3 << 20]] {
            fs::write(&damaged, wrong).unwrap();
            assert!(matches!(take(&there), Err(StoreError::ObjectStorage { .. })));
        }
        fs::remove_file(&damaged).unwrap();
        assert!(matches!(take(&there), Err(StoreError::ObjectStorage { .. })));
        assert!(there.elsewhere(root).unwrap().is_some(), "nothing has changed");
        fs::write(&damaged, content).unwrap();
        assert_eq!(take(&there).unwrap(), Some(root));
        let kept = there.frame(root).unwrap().unwrap().checkpoint.unwrap();
        assert_eq!(fs::read_to_string(there.dir().checkpoint(root, kept)).unwrap(), longer);
    }

    #[test]
    fn nothing_is_left_of_a_chain_that_was_removed() {
        let objects = tempfile::tempdir().unwrap();
        let Some((_temp, here, _other, there)) = hosts(objects.path()) else { return };
        let (root, stays) = (chain(&here), chain(&here));
        pauses(&here, root, "a session\n");
        pauses(&here, stays, "a session\n");
        // A killed process has listed this one, and perhaps written it.
        let written = "INSERT INTO objects (id, place, frame, digest) SELECT ?1, place, frame, digest FROM objects WHERE frame = ?2";
        here.execute(written, ("left", Id(stays)));
        fs::write(objects.path().join("left"), "").unwrap();
        let removed = [Decided { root, attempts: 1 }];
        let everything = Retention { before: Timestamp::MAX, failed: true, open: true };
        assert_eq!(here.remove_trees(&removed, everything), [root]);
        assert_eq!(files(objects.path()).len(), 2, "it may be about to be recorded");
        here.execute("UPDATE objects SET made = made - interval '2 hours'", []);
        // With another place, it is not this host that knows what to delete.
        let elsewhere = tempfile::tempdir().unwrap();
        let there = using(&there, elsewhere.path());
        there.housekeeping().shrink().unwrap();
        assert_eq!(rows(&here, "objects"), 2);
        here.housekeeping().shrink().unwrap();
        assert_eq!((rows(&here, "objects"), files(objects.path()).len()), (1, 1));
        end_leases(&here);
        let there = using(&there, objects.path());
        assert_eq!(take(&there, stays, &here).unwrap(), Some(stays));
    }

    #[test]
    fn without_its_object_storage_a_host_copies_to_the_database() {
        let objects = tempfile::tempdir().unwrap();
        let place = objects.path().join("objects");
        let Some((_temp, here, _other, there)) = hosts(&place) else { return };
        let (before, after) = (chain(&here), chain(&here));
        pauses(&here, before, "a session\n");
        fs::remove_dir_all(&place).unwrap();
        fs::write(&place, "in the way").unwrap();
        pauses(&here, after, "another session\n");
        assert_eq!(rows(&here, "copies WHERE content IS NOT NULL"), 1);
        end_leases(&here);
        assert_eq!(take(&there, after, &here).unwrap(), Some(after));
        assert!(matches!(take(&there, before, &here), Err(StoreError::ObjectStorage { .. })));
    }
}
