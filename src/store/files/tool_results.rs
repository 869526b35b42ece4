//! The large results of tools. Claude Code writes them to files next to the session in which the tool ran, and every fork of
//! that session refers to them by path: they must exist as long as one of its forks continues.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::failpoint::{self, Step};
use crate::store::files::checkpoint::copy;
use crate::store::files::durable::{Durability, replace};
use crate::store::files::entries::entries;
use crate::store::files::state_dir::StateDir;

/// The directory of results, in the directory of a session.
pub(crate) const FOLDER: &str = "tool-results";

/// Copies the results next to a transcript that have no copy yet. When this returns, the copies survive a power failure.
pub(crate) fn keep(dir: &StateDir, frame: FrameId, session: SessionId, transcript: &Path) -> io::Result<()> {
    copy_missing(Step::KeepCopy, &transcript.with_extension("").join(FOLDER), &kept(dir, frame, session))
}

/// Restores missing results next to a transcript from their copies.
pub(crate) fn restore(dir: &StateDir, frame: FrameId, session: SessionId, transcript: &Path) -> io::Result<()> {
    copy_missing(Step::PutBack, &kept(dir, frame, session), &transcript.with_extension("").join(FOLDER))
}

/// Deletes the results next to a transcript that have no copy: they belong to a discarded attempt.
pub(crate) fn forget(dir: &StateDir, frame: FrameId, session: SessionId, transcript: &Path) -> io::Result<()> {
    let kept = kept(dir, frame, session);
    for entry in entries(&transcript.with_extension("").join(FOLDER))? {
        if !kept.join(entry.file_name()).exists() {
            failpoint::around(Step::RemoveCopy, || fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

/// The sessions of a frame whose tools had large results.
pub(crate) fn sessions(dir: &StateDir, frame: FrameId) -> io::Result<Vec<SessionId>> {
    let names = entries(&dir.frame_path(frame))?.into_iter().filter(|entry| entry.path().is_dir());
    Ok(names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Replaces the paths of results in the kept copy of a checkpoint: `old` is the former directory of a session, `new` its
/// current one. Returns whether there were any.
pub(crate) fn tell(dir: &StateDir, frame: FrameId, checkpoint: AttemptId, old: &Path, new: &Path) -> io::Result<bool> {
    let copy = dir.checkpoint(frame, checkpoint);
    let Ok(text) = fs::read_to_string(&copy) else { return Ok(false) };
    // As in a JSON string, without the quotes.
    let written = |path: &Path| {
        let text = serde_json::Value::from(path.join(FOLDER).to_string_lossy()).to_string();
        text.trim_matches('"').to_owned() + "/"
    };
    let updated = text.replace(&written(old), &written(new));
    if updated == text {
        return Ok(false);
    }
    replace(Step::PutBack, &copy, Durability::PowerFailure, |file| file.write_all(updated.as_bytes()))?;
    Ok(true)
}

fn kept(dir: &StateDir, frame: FrameId, session: SessionId) -> PathBuf {
    dir.frame_path(frame).join(session.to_string()).join(FOLDER)
}

/// Results never change, so the same length means the same content.
fn copy_missing(step: Step, from: &Path, to: &Path) -> io::Result<()> {
    for entry in entries(from)? {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let length = entry.metadata()?.len();
        if !source.is_file() || target.metadata().is_ok_and(|found| found.len() == length) {
            continue;
        }
        copy(step, &mut File::open(&source)?, length, &target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::store;

    #[test]
    fn results_are_kept_and_put_back_where_they_are_missing() {
        let (temp, store) = store();
        let (frame, session) = (FrameId::random(), SessionId::random());
        let transcript = temp.path().join(format!("projects/x/{session}.jsonl"));
        let result = transcript.with_extension("").join(FOLDER).join("b1.txt");
        keep(store.dir(), frame, session, &transcript).unwrap();
        assert_eq!(sessions(store.dir(), frame).unwrap(), []);
        fs::create_dir_all(result.parent().unwrap()).unwrap();
        fs::write(&result, "a long text").unwrap();
        keep(store.dir(), frame, session, &transcript).unwrap();
        assert_eq!(sessions(store.dir(), frame).unwrap(), [session]);
        fs::remove_dir_all(temp.path().join("projects")).unwrap();
        restore(store.dir(), frame, session, &transcript).unwrap();
        assert_eq!(fs::read_to_string(&result).unwrap(), "a long text");
        fs::write(&result, "a lon").unwrap();
        restore(store.dir(), frame, session, &transcript).unwrap();
        assert_eq!(fs::read_to_string(&result).unwrap(), "a long text");
    }

    #[test]
    fn of_the_results_of_a_discarded_attempt_those_that_are_kept_stay() {
        let (temp, store) = store();
        let (frame, session) = (FrameId::random(), SessionId::random());
        let transcript = temp.path().join(format!("projects/x/{session}.jsonl"));
        let folder = transcript.with_extension("").join(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kept.txt"), "a long text").unwrap();
        keep(store.dir(), frame, session, &transcript).unwrap();
        fs::write(folder.join("new.txt"), "another").unwrap();
        forget(store.dir(), frame, session, &transcript).unwrap();
        assert!(folder.join("kept.txt").exists() && !folder.join("new.txt").exists());
    }

    #[test]
    fn a_conversation_refers_to_the_new_place_of_results() {
        let (_temp, store) = store();
        let (frame, session) = (FrameId::random(), AttemptId::random());
        store.dir().frame_dir(frame).unwrap();
        let copy = store.dir().checkpoint(frame, session);
        fs::write(&copy, "{\"a\":\"to: /old \\\"x\\\"/s/tool-results/b1.txt\\n\"}\n").unwrap();
        let (old, new) = (Path::new("/old \"x\"/s"), Path::new("/new/s"));
        assert!(tell(store.dir(), frame, session, old, new).unwrap());
        assert_eq!(fs::read_to_string(&copy).unwrap(), "{\"a\":\"to: /new/s/tool-results/b1.txt\\n\"}\n");
        assert!(!tell(store.dir(), frame, session, old, new).unwrap());
    }
}
