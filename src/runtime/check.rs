//! `fsck`: gathers the facts, has them judged, and repairs what can be repaired without losing anything.

use std::io;
use std::path::PathBuf;

use super::{RuntimeError, while_trying};
use crate::claude::command::config_dir;
use crate::claude::transcript;
use crate::core::check::{Lines, judge};
use crate::core::flaw::{Flaw, What};
use crate::core::frame::Frame;
use crate::core::id::{FrameId, SessionId};
use crate::store::{Lease, Leftover, Store, checkpoint, size};

/// What is wrong. Other processes may be at work meanwhile: what changes between two looks is not wrong, but under way.
///
/// # Errors
///
/// [`RuntimeError`] when the database or the state directory cannot be read.
pub fn check(store: &Store) -> Result<Vec<Flaw>, RuntimeError> {
    let mut found = look(store)?;
    if !found.is_empty() {
        let again = look(store)?;
        found.retain(|finding| again.contains(finding));
    }
    Ok(found)
}

/// Repairs one finding, if that loses nothing. Returns what was done; `None`: a person has to do something.
///
/// # Errors
///
/// [`RuntimeError`] when a file cannot be written or deleted.
pub fn repair(store: &Store, finding: &Flaw) -> Result<Option<String>, RuntimeError> {
    match (&finding.what, finding.frame) {
        (What::Leftover { path }, frame) => {
            let removed = store.remove_leftover(&Leftover { path: path.clone(), frame, bytes: size(path) })?;
            Ok(removed.then(|| format!("removed {}", path.display())))
        }
        (What::Open { path, .. }, _) => {
            store.make_private(path)?;
            Ok(Some(format!("made {} private", path.display())))
        }
        (What::NoCopy { session } | What::TornCopy { session }, Some(frame)) => keep_again(store, frame, *session),
        _ => Ok(None),
    }
}

fn look(store: &Store) -> Result<Vec<Flaw>, RuntimeError> {
    let mut facts = store.facts()?;
    for frame in &mut facts.frames {
        let transcript = frame.frame.checkpoint.and_then(|session| found(&frame.frame, session));
        let lines = transcript.map(|path| checkpoint::lines(&path)).transpose();
        frame.files.transcript = lines.map_err(while_trying("read a transcript"))?.unwrap_or_default();
    }
    let leftovers = store.leftovers()?.into_iter().filter(|leftover| !leftover.is_routine());
    let leftovers = leftovers.map(|left| Flaw { frame: left.frame, what: What::Leftover { path: left.path } });
    let judged = judge(&facts.frames, &facts.requests);
    Ok(facts.findings.into_iter().chain(judged).chain(leftovers).chain(store.not_private()?).collect())
}

/// The transcript in Claude Code's folder is at least as long as a copy of it: nobody writes to a checkpoint.
fn keep_again(store: &Store, id: FrameId, session: SessionId) -> Result<Option<String>, RuntimeError> {
    let Some(_lease) = Lease::try_take(store.dir(), id)? else { return Ok(None) };
    let Some(frame) = store.frame(id)?.filter(|frame| frame.checkpoint == Some(session)) else { return Ok(None) };
    let copy = store.dir().checkpoint(id, session);
    let transcript = found(&frame, session).filter(|path| matches!(checkpoint::lines(path), Ok(Lines::Whole)));
    let (from, done) = match transcript {
        Some(path) => (path, "copied the transcript of"),
        None => (copy, "cut what was torn off the copy of"),
    };
    match checkpoint::keep(store.dir(), id, session, &from) {
        Ok(()) => Ok(Some(format!("{} {done} session {}", id.short(), session.short()))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
    }
}

fn found(frame: &Frame, session: SessionId) -> Option<PathBuf> {
    config_dir(&frame.launch).and_then(|config| transcript::find(&config, &frame.cwd, session))
}
