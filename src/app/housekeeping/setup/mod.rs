//! Writes the convention and an example task for a project, or removes both. Also installs the plugin.
//!
//! Each change is planned first, so that a person can see it. It is carried out only if the file has not changed since.

pub(crate) mod init;
mod memory_file;
pub(crate) mod plugin;
pub(crate) mod uninit;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::config::trust;
use crate::app::error::{AppError, Refusal};
use crate::app::view::outcome::{Change, SetupView};
use crate::claude::environment::memory_files::CLAUDE_MD;
use crate::core::text::section::Author;
use memory_file::MemoryFile;

/// The CLAUDE.md to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The CLAUDE.md of the project in this directory. `config` is Claude Code's directory, whose instructions also apply.
    Project { directory: PathBuf, config: Option<PathBuf> },
    /// The user's CLAUDE.md, in Claude Code's directory.
    User(PathBuf),
}

/// The file name of the example task.
const TASK: &str = "hello.md";
/// The instructions of the example task. They need no permissions.
const TASK_TEXT: &str = "\
# Agent instructions

_follow_:
1. _ask_ \"Which colour do you like best?\" `--option red=\"like fire\" --option blue=\"like the sea\" --free-text`.
2. _terminate_ {one sentence about that colour}.
";

/// A change that can be shown and carried out.
#[derive(Debug)]
pub(crate) struct Plan {
    file: MemoryFile,
    pub(crate) change: Change,
    after: String,
    /// The file that already defines the words without `init`, and the words that it leaves out. In this case nothing is
    /// added.
    pub(crate) defined_in: Option<(PathBuf, Vec<&'static str>)>,
    /// The example task that is created or removed.
    pub(crate) task: Option<PathBuf>,
    /// A person's file in the place of the example task, which is kept.
    pub(crate) kept_task: Option<PathBuf>,
    /// A file in a directory above from which agents get no instructions any more.
    pub(crate) hides: Option<PathBuf>,
}

impl Place {
    /// The path of CLAUDE.md, whether or not it exists.
    fn file(&self) -> PathBuf {
        match self {
            Self::Project { directory, .. } => directory.join(CLAUDE_MD),
            Self::User(config) => config.join(CLAUDE_MD),
        }
    }

    /// The path of the example task. Only projects have one.
    fn task(&self) -> Option<PathBuf> {
        match self {
            Self::Project { directory, .. } => Some(directory.join(TASK)),
            Self::User(_) => None,
        }
    }

    fn author(&self) -> Author<'static> {
        match self {
            Self::Project { .. } => Author { writes: "agent-cli init", removes: "agent-cli uninit" },
            Self::User(_) => Author { writes: "agent-cli init --user", removes: "agent-cli uninit --user" },
        }
    }
}

impl Plan {
    /// The path of CLAUDE.md.
    pub(crate) fn file(&self) -> &Path {
        &self.file.path
    }

    /// The target of CLAUDE.md, if it is a link.
    pub(crate) fn leads_to(&self) -> Option<&Path> {
        self.file.leads_to.as_deref()
    }

    /// Each file that changes, with its text before and after. The text of a missing file is empty.
    pub(crate) fn texts(&self) -> Vec<(&Path, &str, &str)> {
        let is_new = self.change == Change::Added;
        let (old, new) = if is_new { ("", TASK_TEXT) } else { (TASK_TEXT, "") };
        let file = (self.change != Change::Unchanged).then(|| (self.file(), self.file.before(), self.after.as_str()));
        file.into_iter().chain(self.task.iter().map(|task| (task.as_path(), old, new))).collect()
    }

    /// The result for people and programs. With `dry_run`, nothing was changed.
    pub(crate) fn view(&self, dry_run: bool) -> SetupView<'_> {
        let defined_in = self.defined_in.as_ref().map(|(path, _)| path.as_path());
        SetupView { file: self.file(), change: self.change, defined_in, task: self.task.as_deref(), dry_run }
    }

    /// Changes the files.
    pub(crate) fn carry_out(&self, asker: &Asker) -> Result<(), AppError> {
        asker.may(PersonsTask::SetUp)?;
        let path = self.file();
        let failed = |error: &io::Error| Refusal::failure(format!("{} was not changed: {error}", path.display()));
        if self.change != Change::Unchanged {
            self.file.refuse_if_changed()?;
        }
        match self.change {
            Change::Unchanged => return Ok(()),
            Change::Deleted => fs::remove_file(path).map_err(|error| failed(&error))?,
            Change::Added | Change::Updated | Change::Removed => {
                trust::replace(self.leads_to().unwrap_or(path), &self.after, 0o644).map_err(|error| failed(&error))?;
            }
        }
        let Some(task) = &self.task else { return Ok(()) };
        let done = if self.change == Change::Added { create(task) } else { fs::remove_file(task) };
        let (name, file) = (task.display(), path.display());
        Ok(done.map_err(|error| Refusal::failure(format!("{file} was changed, but {name} was not: {error}")))?)
    }
}

/// Whether a file is the example task as `init` writes it.
fn is_sample(task: &Path) -> bool {
    fs::read(task).is_ok_and(|text| text == TASK_TEXT.as_bytes())
}

/// Creates the example task. Keeps a file or link that was created in the meantime.
fn create(task: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(task) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        file => file?,
    };
    // Remove an incomplete file: it would look like a task.
    file.write_all(TASK_TEXT.as_bytes()).inspect_err(|_| drop(fs::remove_file(task)))
}

#[cfg(test)]
mod tests;
