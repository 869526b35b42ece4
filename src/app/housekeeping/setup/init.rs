//! Adds the convention to CLAUDE.md, or updates it.
//!
//! Agents need no permission rules for the convention: each attempt gets the rules for its requests (`permission_rules`).

use std::fs;
use std::path::PathBuf;

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::housekeeping::setup::memory_file::MemoryFile;
use crate::app::housekeeping::setup::{Place, Plan};
use crate::app::view::outcome::Change;
use crate::claude::environment::memory_files::memory;
use crate::core::agent::launch::Launch;
use crate::core::requests::convention;
use crate::core::text::section;

/// Plans the change.
pub(crate) fn plan(asker: &Asker, place: &Place) -> Result<Plan, AppError> {
    asker.may(PersonsTask::SetUp)?;
    let file = MemoryFile::read(place)?;
    let unchanged = |file: MemoryFile| Plan {
        after: file.before().to_owned(),
        file,
        change: Change::Unchanged,
        defined_in: None,
        task: None,
        kept_task: None,
    };
    if let Some(section) = file.section()? {
        let after = section.with_body(convention::TEXT);
        if after == file.before() {
            return Ok(unchanged(file));
        }
        file.refuse_if_read_only()?;
        return Ok(Plan { after, change: Change::Updated, ..unchanged(file) });
    }
    if let Some(defined_in) = defined(place, &file) {
        return Ok(Plan { defined_in: Some(defined_in), ..unchanged(file) });
    }
    file.refuse_if_read_only()?;
    let after = section::add(file.text(), place.author(), convention::TEXT);
    let (task, kept_task) = match place.task() {
        Some(task) if fs::symlink_metadata(&task).is_ok() => (None, Some(task)),
        task => (task, None),
    };
    Ok(Plan { after, change: Change::Added, task, kept_task, ..unchanged(file) })
}

/// Finds a file that defines the words without `init`: CLAUDE.md itself, or another file that agents get. Returns its path
/// and the words that it leaves out.
fn defined(place: &Place, file: &MemoryFile) -> Option<(PathBuf, Vec<&'static str>)> {
    let missing = |text: &str| {
        let used = convention::used(text);
        let missing: Vec<_> = convention::words().into_iter().filter(|word| !used.contains(word)).collect();
        (missing, !used.is_empty())
    };
    // Defining some words twice would confuse agents more than adding none.
    if let (missing, true) = missing(file.before()) {
        return Some((file.path.clone(), missing));
    }
    let Place::Project { directory, config } = place else { return None };
    let others = memory(directory, None, config.as_deref(), &Launch::default()).texts;
    let all = others.into_iter().find(|(_, text)| missing(text).0.is_empty());
    all.map(|(path, _)| (path, Vec::new()))
}
