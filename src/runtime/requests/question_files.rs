//! Questions in files: what an agent asks, and what a person has written there.
//!
//! An agent has named the file, and any process may replace it at any time: links are not followed.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::Mode;

use crate::core::id::RequestId;
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::question_file::{self, BadText, NoAnswerYet, WrittenAnswer};
use crate::core::waits::wait_progress::WaitProgress;
use crate::failpoint::{self, Step};
use crate::runtime::RuntimeError;
use crate::runtime::requests::file_content::{self, Content, Earlier, FLAGS, digest};
use crate::runtime::requests::spawn_request::{self, Reach};
use crate::store::{Attempts, Caller, Store, StoreError};

/// The file that an agent asks with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionFile {
    /// The name that its agent uses.
    name: String,
    reach: Reach,
    /// Absolute, in a directory without links.
    path: PathBuf,
    /// Whether the file must be created.
    new: bool,
    /// Why it cannot be used for asking now. Its question may have been asked before.
    refused: Option<String>,
}

/// The records about the file in which a question can be answered.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedUntil {
    /// When the attempt that asked had ended; `None`: it has not.
    pub(super) until: Option<Timestamp>,
    /// Earlier observations of the file.
    seen: WaitProgress,
}

/// The content of the file in which an open question can be answered.
pub(super) enum FoundAnswer {
    /// Not an answer yet, and why.
    None(String),
    /// Text that does not count, and why.
    Refused(String),
    /// A text that is not an answer to the question, and why.
    Invalid(String),
    /// An answer that counts from this time on, unless the file changes.
    Soon(Timestamp),
    /// The same, if this observation of the file is recorded now.
    ToNote(WaitProgress),
    /// An answer, together with the file.
    Answer(String, Content),
}

impl QuestionFile {
    /// The file at `path`, which is relative to `directory`. Nothing is written yet.
    pub(crate) fn named(store: &Store, caller: Caller, path: &Path, directory: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let refused = |why: String| refused_as(&name, &why);
        let path = real(&directory.join(path)).map_err(|error| refused(error.to_string()))?;
        if path.to_str().is_none() {
            return Err(refused("its path is not UTF-8".to_owned()));
        }
        let reach = spawn_request::reach(store, caller).map_err(|error| error.to_string())?;
        if reach.below.as_ref().is_some_and(|below| !path.starts_with(below)) {
            return Err(refused("it is outside your directory".to_owned()));
        }
        Ok(Self { name, path, reach, new: false, refused: None })
    }

    /// Its question.
    pub(crate) fn question(&self) -> Result<String, String> {
        let text = read(&self.path).map_err(|why| refused_as(&self.name, &why))?.text;
        match question_file::question(&text) {
            Err(BadText::NoQuestion) => Err(refused_as(&self.name, &BadText::NoQuestion.to_string())),
            // The same call may have been made before there was an answer.
            asked => Ok(asked.unwrap_or(&text).to_owned()),
        }
    }

    /// The file of a question, and the question with that file in its form.
    pub(crate) fn of(self, form: Form) -> (Self, Form) {
        let form = Form { file: Some(self.path.clone()), ..form };
        let (new, refused) = if fs::symlink_metadata(&self.path).is_ok() {
            (false, self.not_asked_with(&form).err())
        } else {
            (true, self.not_made().err())
        };
        let refused =
            refused.or_else(|| question_file::check(&form).err().map(|why| refused_as(&self.name, &why.to_string())));
        (Self { new, refused, ..self }, form)
    }

    /// Whether the file contains the question without an answer.
    fn not_asked_with(&self, form: &Form) -> Result<(), String> {
        let refused = |why: String| refused_as(&self.name, &why);
        let text = read(&self.path).map_err(refused)?.text;
        match question_file::question(&text) {
            Ok(question) if question == form.question || text == question_file::text(form) => Ok(()),
            Ok(_) => Err(refused("it exists already: to ask with what is in it, give no question".to_owned())),
            Err(why) => Err(refused(why.to_string())),
        }
    }

    fn not_made(&self) -> Result<(), String> {
        let refused = |why: &str| Err(refused_as(&self.name, why));
        if self.path.extension().is_none_or(|extension| extension != "md") {
            return refused("the name of a new file has to end with .md");
        }
        if !self.reach.may_write || is_hidden(&self.path, self.reach.below.as_deref()) {
            return refused("you may not write it without a permission; write it, then give no question");
        }
        Ok(())
    }

    /// Writes the file if it does not exist.
    pub(crate) fn make(&self, form: &Form) -> Result<(), RuntimeError> {
        if let Some(why) = &self.refused {
            return Err(RuntimeError::QuestionFile(why.clone()));
        }
        if !self.new {
            return Ok(());
        }
        let path = self.path.display();
        let cannot = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => RuntimeError::QuestionFile(format!("{path} exists already")),
            _ => RuntimeError::Io { what: format!("write {path}"), source: error },
        };
        failpoint::around(Step::QuestionFile, || create(&self.path, &question_file::text(form))).map_err(cannot)
    }

    /// Whether a recorded question was asked with it.
    pub(crate) fn is_of(&self, recorded: &Form) -> bool {
        recorded.file.as_ref() == Some(&self.path)
    }
}

fn refused_as(name: &str, why: &str) -> String {
    let it = if why.starts_with("is ") { "it " } else { "" };
    format!("cannot ask with {name}: {it}{why}")
}

/// Whether Claude Code would ask before it writes there, even where it writes without asking.
fn is_hidden(path: &Path, below: Option<&Path>) -> bool {
    let below = below.and_then(|below| path.strip_prefix(below).ok()).unwrap_or(path);
    below.components().any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
}

/// The path with the links in its directory resolved.
fn real(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a directory"));
    };
    Ok(fs::canonicalize(folder)?.join(name))
}

/// Never replaces a file.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist_noclobber(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

impl AskedUntil {
    /// Without the record of the attempt: it has ended.
    pub(super) fn some_time(seen: &WaitProgress) -> Self {
        Self { until: Some(Timestamp::MIN), seen: seen.clone() }
    }

    pub(super) fn read(store: &Store, question: RequestId, seen: &WaitProgress) -> Result<Self, StoreError> {
        let attempt = store.attempts(Attempts::ThatAsked(question))?.pop();
        Ok(Self { until: attempt.and_then(|attempt| attempt.ended), seen: seen.clone() })
    }

    /// Whether an answer existed before the turn of the agent that asked had ended, so that the agent may have written it. Its
    /// time alone does not show this, because it changes when the permissions or the owner of the file change.
    pub(super) fn is_early(&self, answer: &str, read: &Content) -> bool {
        let was_earlier = || self.seen.was_earlier(answer) || self.seen.was_earlier(&read.saved);
        self.until.is_none_or(|until| read.changed < until) || was_earlier()
    }
}

/// Why such an answer does not count.
pub(super) const EARLY: &str =
    "has an answer from before the end of its agent's turn, which does not count: change it, or answer with agent-cli";

/// The answer that the asking agent itself has left in the file at `path`.
pub(super) fn earlier_in(path: &Path, form: &Form) -> Option<Earlier> {
    let Ok(read) = read(path) else { return file_content::earlier_unread(path) };
    let WrittenAnswer { answer, closed } = question_file::written(&read.text, form).ok()?;
    Some(Earlier { what: digest(answer, closed), changed: read.changed })
}

/// What the file at `path` says about a question.
pub(super) fn find_answer(path: &Path, form: &Form, asked: &AskedUntil, now: Timestamp) -> FoundAnswer {
    let read = match read(path) {
        Ok(read) => read,
        Err(why) => return FoundAnswer::Refused(why),
    };
    let (answer, closed) = match question_file::written(&read.text, form) {
        Ok(WrittenAnswer { answer, closed }) => (answer.to_owned(), closed),
        Err(why @ (NoAnswerYet::NoMark | NoAnswerYet::Empty)) => return FoundAnswer::None(why.to_string()),
        Err(why @ NoAnswerYet::OtherQuestion) => return FoundAnswer::Refused(why.to_string()),
    };
    if asked.is_early(&digest(answer.as_str(), closed), &read) {
        return FoundAnswer::Refused(EARLY.to_owned());
    }
    let counts = match asked.seen.quiet_since(read.changed, now) {
        _ if closed => None,
        None => return FoundAnswer::ToNote(asked.seen.with_changed_ahead(read.changed, now)),
        Some(quiet_since) => question_file::counts_from(quiet_since, now),
    };
    counts.map_or_else(|| FoundAnswer::Answer(answer, read), FoundAnswer::Soon)
}

/// The whole file, or why it cannot be read.
fn read(path: &Path) -> Result<Content, String> {
    let why = |error: io::Error| match error.kind() {
        ErrorKind::NotFound if fs::symlink_metadata(path).is_ok() => "is a link to nothing".to_owned(),
        ErrorKind::NotADirectory => "does not exist".to_owned(),
        _ => file_content::why(&error),
    };
    if real(path).map_err(why)? != path {
        return Err("is in a directory that was replaced by a link".to_owned());
    }
    let opened = rustix::fs::open(path, FLAGS, Mode::empty()).map_err(|error| why(error.into()))?;
    file_content::content(&File::from(opened))
}

#[cfg(test)]
mod tests;
