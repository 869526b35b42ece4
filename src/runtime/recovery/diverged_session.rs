//! Sessions that a person continued while their agent waited or worked. The person's part becomes a separate session, so that
//! the agent can continue from where it stopped and nothing is lost.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::claude::environment::config_dir::config_dir;
use crate::claude::stream::output_reader;
use crate::claude::transcript::rewrite::Entries;
use crate::claude::transcript::{locate, others};
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, SessionId};
use crate::core::text::shell::quoted;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::files::checkpoint;
use crate::store::{self, Attempt, Recovery, Store};

/// Saves the transcript at `place`, which belongs to the session of `frame`, as another session if it contains anything that
/// the kept copy does not have.
pub(crate) fn save(store: &Store, frame: &Frame, place: &Path, copy: Option<AttemptId>) -> Result<(), RuntimeError> {
    let found = read(place)?;
    let known = copy.map(|copy| read(&store.dir().checkpoint(frame.id, copy))).transpose()?;
    let said = found.beyond(&known.unwrap_or_default());
    if !said.are_words() {
        return Ok(());
    }
    let file_of = |session: SessionId| place.with_file_name(format!("{session}.jsonl"));
    let conversation = found.clone().leading_to(&said);
    let mut saved = (id_of(&conversation), conversation);
    if found.check().is_err() {
        // A person who had the session open when it was set aside has continued in the same place.
        let events = store.events(frame.id, 0)?;
        for earlier in
            events.iter().filter_map(|record| record.entry.set_aside()).filter(|earlier| file_of(*earlier).is_file())
        {
            let all = read(&file_of(earlier))?.followed_by(said.clone());
            if all.check().is_ok() {
                saved = (earlier, all);
            }
        }
    }
    let (other, conversation) = saved;
    let written = checkpoint::put_text(&conversation.of_session(other), &file_of(other));
    written.map_err(while_trying("save a conversation that went on"))?;
    share_beside(frame, place, other)?;
    store.record_recovery(frame.id, frame.session, Recovery::SetAside(other))?;
    tracing::warn!(
        "somebody has continued the session of {}. That conversation is kept as a session of its own: \
         cd {} && claude --resume {other} opens it. The agent continues from where it stopped.",
        frame.id.short(),
        quoted(&frame.cwd.display().to_string()),
    );
    Ok(())
}

/// An attempt's conversation without anything that a person said in its session while it ran. Their lines remain in Claude
/// Code's folder and are set aside before the next attempt.
pub(crate) fn without_others(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    transcript: &Path,
) -> Result<Option<Vec<u8>>, RuntimeError> {
    let found = read(transcript)?;
    let begun_with = frame.continues().map(|kept| store.dir().checkpoint(kept.frame, kept.copy));
    let known = begun_with.filter(|copy| copy.is_file()).map(|copy| read(&copy)).transpose()?.unwrap_or_default();
    if !others::has_prompts(&found, &known) {
        return Ok(None);
    }
    let printed = || output_reader::names(BufReader::new(store.dir().open_printed(frame.id, attempt.output_from)?));
    let printed = printed().map_err(while_trying(READ_PRINTED))?;
    Ok(others::without_others(&found, &known, &printed))
}

fn read(transcript: &Path) -> Result<Entries, RuntimeError> {
    let file = File::open(transcript).map_err(while_trying("read the transcript"))?;
    Entries::read(BufReader::new(file)).map_err(while_trying("read the transcript"))
}

/// The saved session gets the tasks and subagents, too. Its plans have the same names in both.
fn share_beside(frame: &Frame, place: &Path, other: SessionId) -> Result<(), RuntimeError> {
    let Some(config) = config_dir(&frame.launch) else { return Ok(()) };
    let folders = |session: SessionId| {
        locate::folders(&config, &place.with_file_name(format!("{session}.jsonl")), session, BTreeSet::new())
    };
    let shared = store::files::session_files::share(&folders(frame.session), &folders(other));
    shared.map_err(while_trying("save what an agent has besides a conversation that went on"))
}

/// A fixed id for each conversation: if one is saved twice because a process died in between, it is still one session.
fn id_of(conversation: &Entries) -> SessionId {
    let digest = Sha256::digest(conversation.of_session(SessionId(Uuid::nil())));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(Builder::from_random_bytes(bytes).into_uuid())
}
