//! Adds the convention to CLAUDE.md, or updates it.
//!
//! Agents need no permission rules for the convention: each attempt gets the rules for its requests (`permission_rules`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::config::sources;
use crate::app::error::AppError;
use crate::app::housekeeping::setup::memory_file::MemoryFile;
use crate::app::housekeeping::setup::{Place, Plan, is_sample};
use crate::app::view::outcome::Change;
use crate::claude::environment::memory_files::{self, memory};
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
        hides: None,
    };
    if let Some(section) = file.section()? {
        // An AGENTS.md may be new.
        let imports = match imports(section.body) {
            kept if kept.is_empty() && section.removed().trim().is_empty() => {
                hidden(place, file.leads_to.as_deref(), true).imports()
            }
            kept => kept,
        };
        let after = section.with_body(&(imports + convention::TEXT));
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
    let is_new = file.before().trim().is_empty();
    let hides = hidden(place, file.leads_to.as_deref(), is_new);
    let body = hides.imports() + convention::TEXT;
    let after = section::add(file.text(), place.author(), &body);
    let (task, kept_task) = match place.task() {
        Some(task) if is_sample(&task) => (None, None),
        Some(task) if fs::symlink_metadata(&task).is_ok() => (None, Some(task)),
        task => (task, None),
    };
    Ok(Plan { after, change: Change::Added, task, kept_task, hides: hides.above, ..unchanged(file) })
}

/// The instructions for all agents, which Claude Code would no longer read if it finds a CLAUDE.md with text.
#[derive(Default)]
struct Hidden {
    /// Those in the directory itself, as it names them.
    here: Vec<&'static str>,
    /// One in a directory above.
    above: Option<PathBuf>,
}

impl Hidden {
    /// Lines with which CLAUDE.md imports those in its directory. Claude Code imports no file of a directory above.
    fn imports(&self) -> String {
        let lines = self.here.iter().map(|name| format!("@{name}\n")).collect::<String>();
        if lines.is_empty() { lines } else { lines + "\n" }
    }
}

/// `is_new`: whether CLAUDE.md has no other text. `leads_to`: its target, if it is a link.
fn hidden(place: &Place, leads_to: Option<&Path>, is_new: bool) -> Hidden {
    let Place::Project { directory, config } = place else { return Hidden::default() };
    let is_other = |file: &Path| file.is_file() && fs::canonicalize(file).is_ok_and(|file| Some(&*file) != leads_to);
    let own = directory.join(memory_files::CLAUDE_MD);
    let names = memory_files::instruction_files(directory, config.as_deref(), Some(&own));
    if !is_new || names != memory_files::OF_ALL_AGENTS {
        return Hidden::default();
    }
    // A project may come from another person, whose link could lead to a secret.
    let project = fs::canonicalize(sources::project_folder(directory)).unwrap_or_default();
    let is_inside =
        |file: PathBuf| fs::canonicalize(&file).is_ok_and(|real| real.starts_with(&project)) && is_other(&file);
    let above = directory.ancestors().skip(1).flat_map(|folder| names.iter().map(|name| folder.join(name)));
    Hidden {
        here: names.iter().copied().filter(|name| is_inside(directory.join(name))).collect(),
        above: above.into_iter().find(|file| is_other(file)),
    }
}

/// The imports at the beginning of a section.
fn imports(body: &str) -> String {
    let is_import = |line: &&str| line.starts_with('@') || line.trim().is_empty();
    let lines: String = body.split_inclusive('\n').take_while(is_import).collect();
    if lines.starts_with('@') { lines.replace("\r\n", "\n") } else { String::new() }
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
