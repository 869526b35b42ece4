//! Sessions of Claude Code that have the id of an agent's session but belong to another conversation: an archive may name any
//! id. Such a session is never replaced, and no agent continues it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::claude::environment::config_dir::config_dir;
use crate::claude::stream::output_reader;
use crate::claude::transcript::locate::SessionLocations;
use crate::claude::transcript::rewrite::Entries;
use crate::core::id::FrameId;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Brought;

/// Refuses a chain that would take over an existing session.
pub(crate) fn refuse_import(chain: &[Brought]) -> Result<(), RuntimeError> {
    let mut places = SessionLocations::default();
    for Brought { frame, launch, cwd, session, copy, printed } in chain {
        let Some(config) = config_dir(launch) else { continue };
        let Some(place) = places.find(&config, cwd, *session) else { continue };
        if is_foreign(&place, copy.as_deref(), || File::open(printed), Unknown::IsForeign)? {
            return Err(foreign(*frame, place));
        }
    }
    Ok(())
}

pub(super) fn foreign(frame: FrameId, transcript: PathBuf) -> RuntimeError {
    RuntimeError::ForeignSession { frame, transcript }
}

/// How to classify a transcript if nothing of the agent's exists to compare it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    IsForeign,
    /// The agent had a conversation that was lost.
    IsOwn,
}

/// Whether a transcript has messages, and none of them is in the kept copy or was printed by the agent.
pub(super) fn is_foreign(
    transcript: &Path,
    copy: Option<&Path>,
    printed: impl FnOnce() -> io::Result<File>,
    unknown: Unknown,
) -> Result<bool, RuntimeError> {
    let found = entries(transcript)?;
    if !found.are_words() {
        return Ok(false);
    }
    let names = |entries: &Entries| {
        entries.rows().filter_map(|(_, row)| row["uuid"].as_str().map(str::to_owned)).collect::<HashSet<_>>()
    };
    let mut known = copy.map(entries).transpose()?.as_ref().map(names).unwrap_or_default();
    let printed = match printed() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HashSet::new()),
        opened => opened.and_then(|opened| output_reader::names(&mut BufReader::new(opened) as &mut dyn BufRead)),
    };
    known.extend(printed.map_err(while_trying("read what claude printed"))?);
    Ok(if known.is_empty() { unknown == Unknown::IsForeign } else { known.is_disjoint(&names(&found)) })
}

/// The entries of a file that may not exist.
fn entries(transcript: &Path) -> Result<Entries, RuntimeError> {
    let read = match File::open(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::default()),
        opened => opened.and_then(|opened| Entries::read(BufReader::new(opened))),
    };
    read.map_err(while_trying("read the transcript"))
}
