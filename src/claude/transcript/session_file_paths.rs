//! What Claude Code keeps of a session besides its transcript, as far as an agent may need it again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::claude::transcript::locate::TASKS;
use crate::core::agent::session_file_names::{FileSelection, SessionFolder};
use crate::core::id::SessionId;
use crate::core::text::json;

/// Large tool results have the same name in every copy of a session, and are stored once.
const RESULTS: &str = "tool-results";

/// The folders of a session. `plans`: the names of its plans.
pub(crate) fn folders(
    config_dir: &Path,
    transcript: &Path,
    session: SessionId,
    plans: BTreeSet<String>,
) -> Vec<SessionFolder> {
    let all = || FileSelection::All { but: RESULTS };
    vec![
        SessionFolder { name: "session", path: transcript.with_extension(""), files: all() },
        SessionFolder { name: "tasks", path: config_dir.join(TASKS).join(session.to_string()), files: all() },
        SessionFolder {
            name: "plans",
            path: config_dir.join("plans"),
            files: FileSelection::Named(plans.into_iter().collect()),
        },
    ]
}

/// The names of a conversation's plans.
pub(crate) fn plans(transcript: &Path) -> io::Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct NamedPlan {
        slug: Option<String>,
    }
    let file = match File::open(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        file => file?,
    };
    let mut found = BTreeSet::new();
    for line in BufReader::new(file).split(b'\n') {
        let slug = json::read::<NamedPlan>(&line?).ok().and_then(|named| named.slug);
        found.extend(slug.filter(|slug| !slug.is_empty() && !slug.contains('/')));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_names_its_plans() {
        let temp = tempfile::tempdir().unwrap();
        let transcript = temp.path().join("a.jsonl");
        assert_eq!(plans(&transcript).unwrap(), BTreeSet::new());
        let lines = "{\"slug\":\"a-calm-plan\",\"type\":\"user\"}\n{\"message\":{\"slug\":\"said\"}}\n{\"slug\":\"../x\"}\n{\"to";
        std::fs::write(&transcript, lines).unwrap();
        assert_eq!(plans(&transcript).unwrap(), BTreeSet::from(["a-calm-plan".to_owned()]));
    }
}
