//! Unused files of the state directory, which a killed process or a removed frame left behind.

use std::collections::HashMap;
use std::fs::{self};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use uuid::Uuid;

use crate::core::chain::frame::Baseline;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::TEMPORARY;
use crate::store::files::entries::{entries, remove};
use crate::store::files::lease::Lease;
use crate::store::housekeeping::orphans::{Orphan, TRASH, is_orphan, is_run, of_frame, orphan};
use crate::store::housekeeping::removable::Trash;
use crate::store::sql::database::codec::{Id, id, maybe_id, maybe_json};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, TxResult};

/// The unused files. Files of a running frame are in use.
pub(super) fn orphan_files(store: &Database) -> Result<Vec<Orphan>> {
    let frames = store.dir.frames();
    let broken = |error| StoreError::io(&frames, error);
    // First the directories, then the frames: a frame is recorded before it gets a directory.
    let entries = entries(&frames).map_err(broken)?;
    let known = copies(store)?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        match name.parse::<FrameId>().ok().map(|frame| (frame, known.get(&frame))) {
            Some((frame, Some(copies))) => {
                found.extend(of_frame(&entry.path(), frame, copies).map_err(broken)?);
            }
            // A session that is being adopted has a directory before it is recorded.
            Some((frame, None)) if is_run(&store.dir, frame) => {}
            Some((_, None)) => found.extend(orphan(entry.path(), None)),
            None if is_orphan(name, entry.metadata()) => found.extend(orphan(entry.path(), None)),
            // Not created by this program.
            None => {}
        }
    }
    found.retain(|orphan| orphan.frame.is_none_or(|frame| !is_run(&store.dir, frame)));
    found.sort();
    Ok(found)
}

/// Removes a file or directory if it is still unused. Returns whether it did.
pub(super) fn remove_orphan_file(store: &Database, orphan: &Orphan) -> Result<bool> {
    let Some(frame) = orphan.frame else {
        let name = orphan.path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if name.is_some_and(|frame| is_run(&store.dir, frame)) {
            return Ok(false);
        }
        return Ok(discard_unused(store, std::slice::from_ref(&orphan.path))?.delete()? == 1);
    };
    let Some(_lease) = Lease::try_take(&store.dir, frame)? else { return Ok(false) };
    let copies = store.query(|connection| copies_of(connection, frame))?;
    let broken = |error| StoreError::io(&orphan.path, error);
    let still = of_frame(&store.dir.frame_path(frame), frame, &copies).map_err(broken)?;
    if !still.iter().any(|now| now.path == orphan.path) {
        return Ok(false);
    }
    remove(&orphan.path).map_err(broken)?;
    Ok(true)
}

/// Moves the directories of removed frames to the trash in one transaction, with one disk sync.
pub(super) fn discard_frame_dirs(store: &Database, frames: &[FrameId]) -> Result<Trash> {
    let paths = frames.iter().map(|frame| store.dir.frame_path(*frame)).filter(|path| path.exists());
    let paths: Vec<PathBuf> = paths.collect();
    if paths.is_empty() { Ok(Trash::default()) } else { discard_unused(store, &paths) }
}

/// Moves files and directories that still belong to no frame to the trash.
fn discard_unused(store: &Database, paths: &[PathBuf]) -> Result<Trash> {
    // A frame that is being imported gets its directory within its transaction, so none does during this one.
    let trash = store.write(Step::Remove, |connection| {
        let mut moved = Vec::new();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            let exists = |frame: FrameId| connection.finds("SELECT 1 FROM frames WHERE id = ?1", [Id(frame)]);
            if name.map(exists).transpose()? == Some(true) {
                continue;
            }
            let trash = store.dir.frames().join(format!("{TRASH}{}{TEMPORARY}", Uuid::new_v4()));
            match fs::rename(path, &trash) {
                // Another process removed it first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                renamed => renamed.map_err(|error| StoreError::io(path, error))?,
            }
            // The second name of a file in that directory.
            name.map(|frame| fs::remove_file(store.dir.lease_file(frame)));
            moved.push(trash);
        }
        Ok(moved)
    })?;
    Ok(Trash::new(trash))
}

/// The attempts of each frame whose copies are needed.
fn copies(store: &Database) -> Result<HashMap<FrameId, Vec<AttemptId>>> {
    store.query(|connection| {
        let (mut copies, mut to_begin) = (HashMap::<FrameId, Vec<AttemptId>>::new(), Vec::new());
        connection.each("SELECT id, checkpoint, baseline FROM frames", [], |row| {
            let checkpoint = maybe_id(row, "checkpoint")?;
            if checkpoint.is_none() {
                to_begin.extend(maybe_json::<Baseline>(row, "baseline").ok().flatten());
            }
            copies.insert(id(row, "id")?, checkpoint.into_iter().collect());
            Ok(ControlFlow::Continue(()))
        })?;
        let before =
            "SELECT frame, summarises FROM attempts INDEXED BY summaries WHERE outcome = 'summary' AND summarises IS NOT NULL";
        connection.each(before, [], |row| {
            if let Some(copies) = copies.get_mut(&id(row, "frame")?) {
                copies.push(id(row, "summarises")?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for Baseline { frame, checkpoint, .. } in to_begin {
            let of_source = frame.and_then(|frame| copies.get_mut(&frame));
            of_source.into_iter().for_each(|copies| copies.extend(checkpoint));
        }
        Ok(copies)
    })
}

/// The attempts of a frame whose copies are needed. The frame, or frames that have not begun, will continue from them; or
/// they contain conversations from before the frame started afresh, which a person can open.
pub(crate) fn copies_of(connection: &Connection, frame: FrameId) -> TxResult<Vec<AttemptId>> {
    let sql = "SELECT checkpoint AS copy FROM frames WHERE id = ?1 AND checkpoint IS NOT NULL
         UNION ALL SELECT baseline_checkpoint FROM frames INDEXED BY frames_by_baseline
         WHERE baseline_frame IS NOT NULL AND baseline_frame = ?1
           AND checkpoint IS NULL AND baseline_checkpoint IS NOT NULL";
    let mut copies = connection.read_all(sql, [Id(frame)], |row| id(row, "copy"))?;
    copies.extend(copies_of_earlier(connection, frame)?);
    Ok(copies)
}

/// The attempts whose copies are the conversations before a frame started afresh.
pub(super) fn copies_of_earlier(connection: &Connection, frame: FrameId) -> TxResult<Vec<AttemptId>> {
    let sql = "SELECT summarises FROM attempts INDEXED BY summaries
         WHERE frame = ?1 AND outcome = 'summary' AND summarises IS NOT NULL ORDER BY seq";
    connection.read_all(sql, [Id(frame)], |row| id(row, "summarises"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{new, store};
    use crate::store::{NewFrame, Store};

    fn names(store: &Store) -> Vec<String> {
        let name = |orphan: Orphan| orphan.path.file_name().unwrap().to_str().unwrap().to_owned();
        store.housekeeping().orphan_files().unwrap().into_iter().map(name).collect()
    }

    #[test]
    fn what_claude_is_told_by_files_can_be_forgotten() {
        let (_temp, store) = store();
        let (dir, frame) = (store.dir(), FrameId::random());
        for _ in 0..2 {
            dir.note_message(frame).unwrap();
            dir.ask_to_stop(frame, true).unwrap();
            assert!(dir.message_file(frame).exists() && dir.is_to_stop_now(frame));
            dir.forget_messages(frame).unwrap();
            dir.forget_stop(frame).unwrap();
            assert!(!dir.message_file(frame).exists() && !dir.stop_file(frame).exists());
        }
    }

    #[test]
    fn what_nobody_uses_is_found_and_removed() {
        let (_temp, store) = store();
        let (frame, _) = store.asking("When?");
        let checkpoint = store.frame(frame).unwrap().unwrap().checkpoint.unwrap();
        assert_eq!(names(&store), [""; 0]);
        let gone = FrameId::random();
        let other = AttemptId::random();
        let folder = store.dir().frame_dir(frame).unwrap();
        for name in [format!("{checkpoint}.jsonl"), format!("{other}.jsonl"), "x.tmp".into(), "out.ndjson".into()] {
            fs::write(folder.join(name), "12345").unwrap();
        }
        fs::write(store.dir().frame_dir(gone).unwrap().join("out.ndjson"), "123").unwrap();
        fs::write(store.dir().frames().join("notes.txt"), "a person's").unwrap();
        store.dir().stage().unwrap();
        let mut found = store.housekeeping().orphan_files().unwrap();
        found.sort_by_key(|orphan| orphan.bytes);
        assert_eq!(found.iter().map(|orphan| orphan.bytes).collect::<Vec<_>>(), [3, 5, 5]);
        for orphan in &found {
            assert!(store.housekeeping().remove_orphan_file(orphan).unwrap(), "{orphan:?}");
        }
        assert_eq!(names(&store), [""; 0]);
        assert!(store.dir().checkpoint(frame, checkpoint).exists());
        assert!(store.dir().frames().join("notes.txt").exists());
    }

    #[test]
    fn a_copy_with_which_another_agent_has_yet_to_begin_is_needed() {
        let (_temp, store) = store();
        let (source, copy) = (store.root(), AttemptId::random());
        let (session, frame, checkpoint) = (source.into(), Some(source), Some(copy));
        let baseline = Baseline { session, frame, checkpoint, cost_usd: 0.0, usage: None };
        store.create_root(&NewFrame { baseline: Some(baseline), ..new("fork") }).unwrap();
        store.dir().frame_dir(source).unwrap();
        let path = store.dir().checkpoint(source, copy);
        fs::write(&path, "{}").unwrap();
        assert_eq!(names(&store), [""; 0]);
        let orphan = Orphan { path: path.clone(), frame: Some(source), bytes: 2 };
        assert!(!store.housekeeping().remove_orphan_file(&orphan).unwrap());
        assert!(path.exists());
    }

    #[test]
    fn what_is_being_adopted_is_left_alone_and_what_another_one_has_removed_is_gone() {
        let (_temp, store) = store();
        let frame = FrameId::random();
        let lease = Lease::try_take(store.dir(), frame).unwrap().unwrap();
        assert_eq!(names(&store), [""; 0], "it is not recorded yet");
        let orphan = Orphan { path: store.dir().frame_path(frame), frame: None, bytes: 0 };
        assert!(!store.housekeeping().remove_orphan_file(&orphan).unwrap());
        drop(lease);
        assert_eq!(names(&store), [frame.to_string()]);
        assert!(store.housekeeping().remove_orphan_file(&orphan).unwrap());
        assert!(!store.housekeeping().remove_orphan_file(&orphan).unwrap(), "it is gone");
    }

    #[test]
    fn what_a_running_frame_uses_is_not_an_orphan() {
        let (_temp, store) = store();
        let frame = store.root();
        let lease = Lease::try_take(store.dir(), frame).unwrap().unwrap();
        let path = store.dir().frame_path(frame).join("settings.json");
        fs::write(&path, "{}").unwrap();
        assert_eq!(names(&store), [""; 0]);
        assert!(!store.housekeeping().remove_orphan_file(&Orphan { path, frame: Some(frame), bytes: 2 }).unwrap());
        drop(lease);
        assert_eq!(names(&store), ["settings.json"]);
    }

    #[test]
    fn a_directory_that_has_a_frame_by_now_stays() {
        let (_temp, store) = store();
        let frame = store.root();
        let path = store.dir().frame_dir(frame).unwrap();
        assert!(
            !store.housekeeping().remove_orphan_file(&Orphan { path: path.clone(), frame: None, bytes: 0 }).unwrap()
        );
        assert!(path.exists());
    }
}
