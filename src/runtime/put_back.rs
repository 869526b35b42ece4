//! Puts back what a frame needs of Claude Code's folders to go on: it cleans them up after some weeks, they may have been
//! moved, and a person may have gone on in the session.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::{RuntimeError, aside, while_trying};
use crate::claude::ancestry::{self, Broken};
use crate::claude::command::config_dir;
use crate::claude::transcript;
use crate::core::frame::Frame;
use crate::core::id::SessionId;
use crate::store::checkpoint::Compared;
use crate::store::{Store, checkpoint, results};

/// Puts back the transcript that a frame's next session is a fork of, so that it can be forked, and the large results of tools,
/// which the conversation names by their paths. Returns the file to fork where that is not the transcript in Claude Code's folder.
pub(super) fn put_back(store: &Store, frame: &Frame) -> Result<Option<PathBuf>, RuntimeError> {
    let (Some((owner, session)), Some(config)) = (frame.forked(), config_dir(&frame.launch)) else { return Ok(None) };
    let place = transcript::find(&config, &frame.cwd, session)
        .unwrap_or_else(|| transcript::expected(&config, &frame.cwd, session));
    let is_own = frame.checkpoint == Some(session);
    let owner = if owner == frame.id { Some(frame.clone()) } else { store.frame(owner)? };
    let Some(owner) = owner else { return whole(frame, session, &place).map(|()| None) };
    let copy = store.dir().checkpoint(owner.id, session);
    let compared = checkpoint::compare(store.dir(), owner.id, session, &place);
    let went_on = match compared.map_err(while_trying("compare the transcript with its copy"))? {
        Compared::Other if !is_own => true,
        Compared::Other if !is_of_an_attempt(store, frame, session)? || is_better(&place, &copy)? => {
            keep(store, frame, session, &place)?;
            false
        }
        Compared::Other => {
            aside::set_aside(store, frame, session, &place)?;
            true
        }
        // Whoever removed the copy has not removed what it was a copy of.
        Compared::NoCopy if is_own && place.is_file() => {
            keep(store, frame, session, &place)?;
            false
        }
        Compared::NoCopy | Compared::Same | Compared::Less => false,
    };
    if put_results_back(store, &owner, session, &config)? && is_own && place.is_file() {
        // It names places where the results are not any more.
        std::fs::remove_file(&place).map_err(while_trying("replace the transcript"))?;
    }
    // Another agent's session is left as somebody went on in it.
    if is_own || !went_on {
        let restored = checkpoint::restore(store.dir(), owner.id, session, &place);
        if restored.map_err(while_trying("put the transcript back"))? {
            tracing::info!("put the transcript of session {} back at {}", session.short(), place.display());
        }
    }
    // Who has gone on in the session may do so at this moment.
    whole(frame, session, if went_on { &copy } else { &place })?;
    Ok(went_on.then_some(copy))
}

/// Whether this program started a session. One that was adopted is its user's, to go on in.
pub(super) fn is_of_an_attempt(store: &Store, frame: &Frame, session: SessionId) -> Result<bool, RuntimeError> {
    Ok(store.attempts(frame.id)?.iter().any(|attempt| attempt.session == session))
}

/// Whether the conversation in `transcript` is all there, and that in the copy is not.
fn is_better(transcript: &Path, copy: &Path) -> Result<bool, RuntimeError> {
    Ok(check(copy)?.is_err() && check(transcript)?.is_ok())
}

/// Fails where a fork would lack some of the conversation without a word.
fn whole(frame: &Frame, session: SessionId, transcript: &Path) -> Result<(), RuntimeError> {
    // Claude Code may know of one that is not there.
    if !transcript.is_file() {
        return Ok(());
    }
    check(transcript)?.map_err(|broken| RuntimeError::BrokenConversation { frame: frame.id, session, broken })
}

/// Looks whether the conversation in a transcript reaches its beginning.
pub(super) fn check(transcript: &Path) -> Result<Result<(), Broken>, RuntimeError> {
    let file = File::open(transcript).map_err(while_trying("read the transcript"))?;
    ancestry::check(BufReader::new(file)).map_err(while_trying("read the transcript"))
}

/// Makes what lies in Claude Code's folder the copy to go on from.
fn keep(store: &Store, frame: &Frame, session: SessionId, place: &Path) -> Result<(), RuntimeError> {
    match checkpoint::keep(store.dir(), frame.id, session, place) {
        // It holds nothing.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(()),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
        Ok(()) => {
            let kept = results::keep(store.dir(), frame.id, session, place);
            kept.map_err(while_trying("keep copies of the results of tools"))
        }
    }
}

/// Returns whether results are elsewhere than the conversation said.
///
/// They go to where they were, as long as that is in the directory that Claude Code uses now. After an import, or when that
/// directory was moved, they are where Claude Code would put them today, and the conversation is told so.
fn put_results_back(store: &Store, frame: &Frame, checkpoint: SessionId, config: &Path) -> Result<bool, RuntimeError> {
    let sessions = results::sessions(store.dir(), frame.id).map_err(while_trying("find the results of tools"))?;
    let attempts = if sessions.is_empty() { Vec::new() } else { store.attempts(frame.id)? };
    let mut told = false;
    for session in sessions {
        let attempt = attempts.iter().find(|attempt| attempt.session == session);
        let old = attempt.and_then(|attempt| attempt.transcript.clone());
        let new = match &old {
            Some(old) if transcript::is_place(old, config, session) => old.clone(),
            _ => transcript::expected(config, &frame.cwd, session),
        };
        if let Some(old) = old.filter(|old| *old != new) {
            let (old, new_folder) = (old.with_extension(""), new.with_extension(""));
            let changed = results::tell(store.dir(), frame.id, checkpoint, &old, &new_folder);
            told |= changed.map_err(while_trying("tell a transcript where results are"))?;
            store.transcript_moved(session, &new)?;
        }
        let restored = results::restore(store.dir(), frame.id, session, &new);
        restored.map_err(while_trying("put the results of tools back"))?;
    }
    Ok(told)
}
