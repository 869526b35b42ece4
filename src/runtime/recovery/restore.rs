//! Restores what a frame needs in Claude Code's folders to continue: Claude Code cleans them up after some weeks, they
//! may have been moved, a person may have continued the session, and a discarded attempt must leave them unchanged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::ancestry::{self, Broken};
use crate::claude::transcript::{locate, session_facts};
use crate::core::agent::session_file_names::SessionFolder;
use crate::core::chain::frame::{Frame, KeptConversation};
use crate::core::id::{AttemptId, SessionId};
use crate::failpoint::{self, Step};
use crate::runtime::delivery::stale_files;
use crate::runtime::recovery::foreign_session::Unknown;
use crate::runtime::recovery::{diverged_session, foreign_session};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::checkpoint::Compared;
use crate::store::files::durable::remove_partial;
use crate::store::files::{checkpoint, tool_results};
use crate::store::{self, Attempt, Recovery, Store};

/// Restores what a frame's next attempt needs: the copy of the conversation that it continues, the agent's other session
/// files, and the large tool results, which the conversation names by path. Returns the file to continue from. `None` if
/// no file exists, or the attempt begins a conversation.
pub(crate) fn prepare(store: &Store, frame: &Frame) -> Result<Option<PathBuf>, RuntimeError> {
    let Some(config) = config_dir(&frame.launch) else { return Ok(None) };
    refuse_foreign(store, frame, &config)?;
    let own = own_copy(frame);
    match own {
        Some(copy) => complete_copy(store, frame, copy, &config)?,
        None => clear(store, frame, &config)?,
    }
    let Some(kept) = frame.continues() else { return Ok(None) };
    let place = place(&config, frame, kept.session);
    let copy = store.dir().checkpoint(kept.frame, kept.copy);
    if frame.is_adopted() && !matches!(compared(store, kept, &place)?, Compared::Same | Compared::Less) {
        keep(store, frame, kept, &place)?;
    }
    let owner = if kept.frame == frame.id { Some(frame.clone()) } else { store.frame(kept.frame)? };
    if let Some(owner) = owner
        && restore_tool_results(store, &owner, kept.copy, &config)?
        && own.is_some()
        && place.is_file()
    {
        // The conversation contains former paths of the results.
        fs::remove_file(&place).map_err(in_folder(&config, "replace the transcript"))?;
    }
    let file = if copy.is_file() { copy } else { place };
    // Claude Code may list a deleted file.
    if !file.is_file() {
        return Ok(None);
    }
    let broken = |broken| RuntimeError::BrokenConversation { frame: frame.id, session: kept.session, broken };
    check(&file)?.map_err(broken)?;
    Ok(Some(file))
}

/// Makes room for the session of a recorded attempt. Claude Code writes a fork to the place of its session, or continues the
/// transcript there. `source` is what is continued.
pub(crate) fn make_room(
    store: &Store,
    frame: &Frame,
    in_place: bool,
    source: Option<&Path>,
) -> Result<(), RuntimeError> {
    let Some(config) = config_dir(&frame.launch) else { return Ok(()) };
    refuse_foreign(store, frame, &config)?;
    let place = place(&config, frame, frame.session);
    if let Some(copy) = own_copy(frame)
        && compared(store, own(frame, copy), &place)? == Compared::Other
    {
        // A person may continue the session at this moment.
        diverged_session::save(store, frame, &place, Some(copy))?;
    }
    remove_partial(&place).map_err(in_folder(&config, "remove a transcript that was not put back"))?;
    if let Some(source) = source.filter(|_| in_place) {
        return checkpoint::put(source, &place).map_err(in_folder(&config, "put the transcript back"));
    }
    failpoint::around(Step::MakeRoom, || remove(&place)).map_err(in_folder(&config, "make room for the transcript"))
}

/// Refuses to replace or continue a session that merely has the same id as the frame's.
fn refuse_foreign(store: &Store, frame: &Frame, config: &Path) -> Result<(), RuntimeError> {
    let adopted = frame.continues().filter(|_| frame.is_adopted());
    for (session, copy) in
        [(frame.session, own_copy(frame))].into_iter().chain(adopted.map(|kept| (kept.session, Some(kept.copy))))
    {
        let place = place(config, frame, session);
        if !place.is_file() {
            continue;
        }
        let copy = match copy {
            Some(copy) => match compared(store, KeptConversation { frame: frame.id, copy, session }, &place)? {
                // Without a copy, the transcript may be all that remains of the agent.
                Compared::Same | Compared::Less | Compared::NoCopy => continue,
                Compared::Other => Some(store.dir().checkpoint(frame.id, copy)),
            },
            None => None,
        };
        let attempts = store.attempts(frame.id)?;
        // An attempt starts only if there is no foreign session. If another host has continued the agent since, nothing is known of
        // what the attempt left behind here.
        let has_started = |attempt: &Attempt| attempt.ended.is_some() && attempt.ran != Some(Duration::ZERO);
        if attempts.iter().any(|attempt| attempt.ran_here && attempt.session == session && has_started(attempt)) {
            continue;
        }
        let unknown = if attempts.is_empty() { Unknown::IsForeign } else { Unknown::IsOwn };
        if foreign_session::is_foreign(&place, copy.as_deref(), || store.dir().open_printed(frame.id, 0), unknown)?
            && !is_of_discarded_attempt(store, frame, &place)?
        {
            return Err(foreign_session::foreign(frame.id, place));
        }
    }
    Ok(())
}

/// Adds to an error in which of Claude Code's folders it occurred.
fn in_folder<'a>(folder: &'a Path, what: &'a str) -> impl FnOnce(io::Error) -> RuntimeError + 'a {
    move |source| RuntimeError::ClaudeFolder { what: format!("{what} in"), folder: folder.to_owned(), source }
}

/// Restores Claude Code's folders to their state before an attempt that is not kept, with this transcript.
pub(crate) fn undo(store: &Store, frame: &Frame, transcript: Option<&Path>) -> Result<(), RuntimeError> {
    let Some(config) = config_dir(&frame.launch) else { return Ok(()) };
    let place = transcript.map_or_else(|| place(&config, frame, frame.session), Path::to_owned);
    // What its agent planned in it is in its transcript.
    let folders = folders(store, frame, &config, &place)?;
    match own_copy(frame) {
        Some(copy) => {
            let restored = checkpoint::restore(store.dir(), frame.id, copy, &place);
            restored.map_err(in_folder(&config, "put the transcript back"))?;
            let forgotten = tool_results::forget(store.dir(), frame.id, frame.session, &place);
            forgotten.map_err(in_folder(&config, "delete the results of a discarded attempt"))?;
        }
        None => locate::delete(&place).map_err(in_folder(&config, "delete a discarded transcript"))?,
    }
    restore_beside(store, frame, &folders, true)
}

/// Keeps the agent's other session files with the copy of an attempt.
pub(crate) fn keep_beside(
    store: &Store,
    frame: &Frame,
    attempt: AttemptId,
    transcript: &Path,
) -> Result<(), RuntimeError> {
    let Some(config) = config_dir(&frame.launch) else { return Ok(()) };
    let folders = folders(store, frame, &config, transcript)?;
    let kept = store::files::session_files::keep(store.dir(), frame.id, attempt, frame.checkpoint, &folders);
    kept.map_err(while_trying("keep copies of what the agent has besides its conversation"))
}

/// A digest of the file at `transcript`, by which it is recognised later.
pub(crate) fn digest(transcript: &Path) -> Result<Option<String>, RuntimeError> {
    match stale_files::digest(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        digest => digest.map(Some).map_err(while_trying("read the transcript")),
    }
}

/// Whether the session in which the agent of `frame` waits was continued outside agent-cli.
pub(crate) fn went_on(store: &Store, frame: &Frame, place: &Path) -> Result<bool, RuntimeError> {
    let Some(copy) = own_copy(frame) else { return Ok(false) };
    Ok(compared(store, own(frame, copy), place)? == Compared::Other && !is_of_discarded_attempt(store, frame, place)?)
}

/// Checks whether the conversation in a transcript reaches its beginning.
pub(crate) fn check(transcript: &Path) -> Result<Result<(), Broken>, RuntimeError> {
    let file = File::open(transcript).map_err(while_trying("read the transcript"))?;
    ancestry::check(BufReader::new(file)).map_err(while_trying("read the transcript"))
}

/// Where the transcript of a session of the frame is, or would be.
fn place(config: &Path, frame: &Frame, session: SessionId) -> PathBuf {
    locate::find(config, &frame.cwd, session).unwrap_or_else(|| locate::expected(config, &frame.cwd, session))
}

/// The kept copy of the frame's own session. An adopted session belongs to its user.
fn own_copy(frame: &Frame) -> Option<AttemptId> {
    frame.checkpoint.filter(|_| !frame.is_adopted())
}

fn own(frame: &Frame, copy: AttemptId) -> KeptConversation {
    KeptConversation { frame: frame.id, copy, session: frame.session }
}

fn compared(store: &Store, kept: KeptConversation, place: &Path) -> Result<Compared, RuntimeError> {
    let compared = checkpoint::compare(store.dir(), kept.frame, kept.copy, place);
    compared.map_err(while_trying("compare the transcript with its copy"))
}

/// Ensures that everything the agent has said is in the copy, and that what a person has said is kept, too.
fn complete_copy(store: &Store, frame: &Frame, copy: AttemptId, config: &Path) -> Result<(), RuntimeError> {
    let place = place(config, frame, frame.session);
    match compared(store, own(frame, copy), &place)? {
        Compared::Other if is_better(&place, &store.dir().checkpoint(frame.id, copy))? => {
            keep(store, frame, own(frame, copy), &place)?;
        }
        // The process that ended that attempt died before it could do this.
        Compared::Other if is_of_discarded_attempt(store, frame, &place)? => undo(store, frame, Some(&place))?,
        Compared::Other => {
            diverged_session::save(store, frame, &place, Some(copy))?;
            let restored = checkpoint::restore(store.dir(), frame.id, copy, &place);
            restored.map_err(in_folder(config, "put the transcript back"))?;
        }
        // The copy may have been removed without the original.
        Compared::NoCopy => keep(store, frame, own(frame, copy), &place)?,
        Compared::Same | Compared::Less => {}
    }
    if !store::files::session_files::is_kept(store.dir(), frame.id, copy) {
        return keep_beside(store, frame, copy, &place);
    }
    let folders = folders(store, frame, config, &place)?;
    restore_beside(store, frame, &folders, false)
}

/// Removes the remains of attempts if no copy of the session exists, and keeps what a person has said.
fn clear(store: &Store, frame: &Frame, config: &Path) -> Result<(), RuntimeError> {
    let place = place(config, frame, frame.session);
    if !place.is_file() {
        return Ok(());
    }
    if !is_of_discarded_attempt(store, frame, &place)? {
        diverged_session::save(store, frame, &place, None)?;
    }
    undo(store, frame, Some(&place))
}

/// Whether the file at `place` is from the last attempt, which was not kept.
fn is_of_discarded_attempt(store: &Store, frame: &Frame, place: &Path) -> Result<bool, RuntimeError> {
    let discarded = store.attempts(frame.id)?.pop().and_then(|attempt| attempt.leaves);
    Ok(discarded.is_some() && discarded == digest(place)?)
}

fn folders(store: &Store, frame: &Frame, config: &Path, place: &Path) -> Result<Vec<SessionFolder>, RuntimeError> {
    let copy = own_copy(frame).map(|copy| store.dir().checkpoint(frame.id, copy));
    let mut plans = BTreeSet::new();
    for transcript in copy.iter().map(PathBuf::as_path).chain([place]) {
        plans.extend(session_facts::plans(transcript).map_err(while_trying("read the transcript"))?);
    }
    Ok(locate::folders(config, place, frame.session, plans))
}

fn restore_beside(store: &Store, frame: &Frame, folders: &[SessionFolder], exactly: bool) -> Result<(), RuntimeError> {
    let restored = store::files::session_files::restore(store.dir(), frame.id, own_copy(frame), folders, exactly);
    restored.map_err(while_trying("put back what the agent has besides its conversation"))
}

/// Whether the conversation in `transcript` is complete and the one in the copy is not.
fn is_better(transcript: &Path, copy: &Path) -> Result<bool, RuntimeError> {
    Ok(check(copy)?.is_err() && check(transcript)?.is_ok())
}

/// Makes the file in Claude Code's folder the copy to continue from.
fn keep(store: &Store, frame: &Frame, kept: KeptConversation, place: &Path) -> Result<(), RuntimeError> {
    if !place.is_file() {
        return Ok(());
    }
    match checkpoint::keep(store.dir(), frame.id, kept.copy, place) {
        // It is empty.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(()),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
        Ok(()) => {
            let kept = tool_results::keep(store.dir(), frame.id, kept.session, place);
            kept.map_err(while_trying("keep copies of the results of tools"))
        }
    }
}

/// Removes a file. Another process may have removed it first.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether any results are no longer where the conversation says.
///
/// They are restored to their former place if it is in the directory that Claude Code uses now. After an import, or if that
/// directory was moved, they are put where Claude Code would put them today, and the conversation is updated.
fn restore_tool_results(
    store: &Store,
    frame: &Frame,
    checkpoint: AttemptId,
    config: &Path,
) -> Result<bool, RuntimeError> {
    let sessions = tool_results::sessions(store.dir(), frame.id).map_err(while_trying("find the results of tools"))?;
    let attempts = if sessions.is_empty() { Vec::new() } else { store.attempts(frame.id)? };
    let mut is_changed = false;
    for session in sessions {
        let of_session = attempts.iter().rev().filter(|attempt| attempt.session == session);
        let old = of_session.filter_map(|attempt| attempt.transcript.clone()).next();
        let new = match &old {
            Some(old) if locate::is_place(old, config, session) => old.clone(),
            _ => locate::expected(config, &frame.cwd, session),
        };
        if let Some(old) = old.filter(|old| *old != new) {
            let (old, new_folder) = (old.with_extension(""), new.with_extension(""));
            let changed = tool_results::tell(store.dir(), frame.id, checkpoint, &old, &new_folder);
            is_changed |= changed.map_err(while_trying("write the new place of results into a transcript"))?;
            store.record_recovery(frame.id, session, Recovery::Moved(&new))?;
        }
        let restored = tool_results::restore(store.dir(), frame.id, session, &new);
        restored.map_err(while_trying("put the results of tools back"))?;
    }
    Ok(is_changed)
}

#[cfg(test)]
mod tests;
