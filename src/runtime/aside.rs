//! A session that a person went on in while its agent waited. What was said there becomes a session of its own, so that the
//! agent can go on from where it stopped and nobody's words are lost.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::{RuntimeError, while_trying};
use crate::claude::rewrite::Entries;
use crate::core::frame::Frame;
use crate::core::id::SessionId;
use crate::core::shell::quoted;
use crate::crash::Step;
use crate::store::Store;

/// Saves what lies at `place`, the transcript of the checkpoint of `frame`, as another session, if anything was said in it that
/// the kept copy does not have.
pub(super) fn set_aside(store: &Store, frame: &Frame, session: SessionId, place: &Path) -> Result<(), RuntimeError> {
    let found = read(place)?;
    let said = found.beyond(&read(&store.dir().checkpoint(frame.id, session))?);
    if !said.are_words() {
        return Ok(());
    }
    let file_of = |session: SessionId| place.with_file_name(format!("{session}.jsonl"));
    let mut saved = (id_of(&found), found.clone());
    if found.check().is_err() {
        // Whoever had the session open when it was set aside has gone on where it was.
        for earlier in store.set_aside(frame.id)?.into_iter().filter(|earlier| file_of(*earlier).is_file()) {
            let all = read(&file_of(earlier))?.followed_by(said.clone());
            if all.check().is_ok() {
                saved = (earlier, all);
            }
        }
    }
    let (other, conversation) = saved;
    let written = store.dir().write(Step::PutBack, &file_of(other), &conversation.of_session(other));
    written.map_err(while_trying("save a conversation that went on"))?;
    store.record_set_aside(frame.id, session, other)?;
    tracing::warn!(
        "somebody has gone on in the session of {} while it waited. That conversation is kept as a session of its own: \
         cd {} && claude --resume {other} opens it. The agent goes on from where it stopped.",
        frame.id.short(),
        quoted(&frame.cwd.display().to_string()),
    );
    Ok(())
}

fn read(transcript: &Path) -> Result<Entries, RuntimeError> {
    let file = File::open(transcript).map_err(while_trying("read the transcript"))?;
    Entries::read(BufReader::new(file)).map_err(while_trying("read the transcript"))
}

/// The same for the same conversation: one that is saved twice, for somebody died in between, is one session.
fn id_of(conversation: &Entries) -> SessionId {
    let digest = Sha256::digest(conversation.of_session(SessionId(Uuid::nil())));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(Builder::from_random_bytes(bytes).into_uuid())
}
