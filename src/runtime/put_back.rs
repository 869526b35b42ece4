//! Puts back what a frame needs of Claude Code's folders to go on: it cleans them up after some weeks, and they may have
//! been moved.

use std::path::Path;

use super::{RuntimeError, while_trying};
use crate::claude::command::config_dir;
use crate::claude::transcript;
use crate::core::frame::Frame;
use crate::core::id::SessionId;
use crate::store::{Store, checkpoint, results};

/// Puts back the transcript that a frame's next session is a fork of, so that it can be forked, and the large results of tools, which the
/// conversation names by their paths.
pub(super) fn put_back(store: &Store, frame: &Frame) -> Result<(), RuntimeError> {
    let (Some((owner, session)), Some(config)) = (frame.forked(), config_dir(&frame.launch)) else { return Ok(()) };
    let place = transcript::find(&config, &frame.cwd, session)
        .unwrap_or_else(|| transcript::expected(&config, &frame.cwd, session));
    let owner = if owner == frame.id { Some(frame.clone()) } else { store.frame(owner)? };
    let Some(owner) = owner else { return Ok(()) };
    if put_results_back(store, &owner, session, &config)? && place.is_file() {
        // It names places where the results are not any more.
        std::fs::remove_file(&place).map_err(while_trying("replace the transcript"))?;
    }
    let restored = checkpoint::restore(store.dir(), owner.id, session, &place);
    if restored.map_err(while_trying("put the transcript back"))? {
        tracing::info!(session = %session, "put the transcript back at {}", place.display());
    }
    Ok(())
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
