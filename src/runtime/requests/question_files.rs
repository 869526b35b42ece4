//! Questions in files: what an agent asks with, and what a person has written there.
//!
//! An agent has named the file, and anybody may replace it at any time: whatever is there, it neither hangs nor fills the memory,
//! and no link leads elsewhere.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use nix::unistd::{Uid, User};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::core::chain::origin::{FromFile, Origin};
use crate::core::chain::pace::InFile;
use crate::core::id::RequestId;
use crate::core::requests::answer;
use crate::core::requests::question::Form;
use crate::core::requests::question::file::{self, BadText, Written};
use crate::core::requests::request::RequestKind;
use crate::failpoint::{self, Step};
use crate::runtime::RuntimeError;
use crate::runtime::requests::record::{self, Reach};
use crate::store::{Attempts, Caller, Store, StoreError};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The file that an agent asks with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionFile {
    /// As its agent calls it.
    name: String,
    reach: Reach,
    /// Absolute, in a directory without links.
    path: PathBuf,
    /// Whether the file is to be made.
    new: bool,
    /// Why it cannot be asked with now. Its question may have been asked before.
    refused: Option<String>,
}

/// What is in the file of a question that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No answer, and why.
    Nothing(String),
    /// An answer that counts from this time on, unless the file changes.
    Soon(Timestamp),
    Answer(Found),
}

/// An answer in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    text: String,
    owner: u32,
    modified: Timestamp,
}

impl QuestionFile {
    /// The file at `path`. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// Why the calling agent cannot ask with it.
    pub(crate) fn named(store: &Store, caller: Caller, path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let refused = |why: String| refused(&name, &why);
        let path = real(path).map_err(|error| refused(error.to_string()))?;
        if path.to_str().is_none() {
            return Err(refused("its path is not UTF-8".to_owned()));
        }
        let reach = record::reach(store, caller).map_err(|error| error.to_string())?;
        if reach.below.as_ref().is_some_and(|below| !path.starts_with(below)) {
            return Err(refused("it is outside your directory".to_owned()));
        }
        Ok(Self { name, path, reach, new: false, refused: None })
    }

    /// The question in it.
    ///
    /// # Errors
    ///
    /// It has none.
    pub(crate) fn question(&self) -> Result<String, String> {
        let text = read(&self.path).map_err(|why| refused(&self.name, &why))?.text;
        match file::question(&text) {
            Err(BadText::NoQuestion) => Err(refused(&self.name, &BadText::NoQuestion.to_string())),
            // The same call may have been made before there was an answer.
            asked => Ok(asked.unwrap_or(&text).to_owned()),
        }
    }

    /// The file of a question, and the question as one that stands in it.
    #[must_use]
    pub(crate) fn of(self, form: Form) -> (Self, Form) {
        let form = Form { file: Some(self.path.clone()), ..form };
        let (new, refused) = match fs::symlink_metadata(&self.path).is_ok() {
            true => (false, self.not_asked_with(&form).err()),
            false => (true, self.not_made().err()),
        };
        (Self { new, refused, ..self }, form)
    }

    /// Whether the file is one in which the question stands and nobody has answered.
    fn not_asked_with(&self, form: &Form) -> Result<(), String> {
        let refused = |why: String| refused(&self.name, &why);
        let text = read(&self.path).map_err(refused)?.text;
        match file::question(&text) {
            Ok(question) if question == form.question || text == file::text(form) => Ok(()),
            Ok(_) => Err(refused("it exists already: to ask with what is in it, give no question".to_owned())),
            Err(why) => Err(refused(why.to_string())),
        }
    }

    fn not_made(&self) -> Result<(), String> {
        let refused = |why: &str| Err(refused(&self.name, why));
        if self.path.extension().is_none_or(|extension| extension != "md") {
            return refused("the name of a new file has to end with .md");
        }
        if !self.reach.may_write || is_hidden(&self.path, self.reach.below.as_deref()) {
            return refused("you may not write it without a permission; write it, then give no question");
        }
        Ok(())
    }

    /// Writes the file if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be asked with.
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
        failpoint::around(Step::QuestionFile, || create(&self.path, &file::text(form))).map_err(cannot)
    }

    /// Whether a question was asked with it.
    pub(crate) fn is_of(&self, recorded: &Form) -> bool {
        recorded.file.as_ref() == Some(&self.path)
    }
}

fn refused(name: &str, why: &str) -> String {
    format!("cannot ask with {name}: {why}")
}

/// Whether Claude Code would ask before it writes there, even where it writes without asking.
fn is_hidden(path: &Path, below: Option<&Path>) -> bool {
    let below = below.and_then(|below| path.strip_prefix(below).ok()).unwrap_or(path);
    below.components().any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
}

/// The path without links in its directory.
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

/// When the attempt that asked a question had ended; `None`: it has not.
pub(super) fn asked_until(store: &Store, question: RequestId) -> Result<Option<Timestamp>, StoreError> {
    Ok(store.attempts(Attempts::ThatAsked(question))?.pop().and_then(|attempt| attempt.ended))
}

/// What the file at `path` says about a question. `asked_until`: when the attempt that asked it had ended; `None`: it has not.
pub(crate) fn look(path: &Path, form: &Form, asked_until: Option<Timestamp>, now: Timestamp) -> Look {
    let name = path.display();
    let read = match read(path) {
        Ok(read) => read,
        Err(why) => return Look::Nothing(format!("{name} {why}")),
    };
    let Written { answer, closed } = match file::written(&read.text, form) {
        Ok(written) => written,
        Err(why) => return Look::Nothing(format!("{name} {why}")),
    };
    // What was written while the agent worked, the agent may have written.
    if asked_until.is_none_or(|until| read.changed < until) {
        return Look::Nothing(format!("{name} was changed while its agent still worked: save it once more"));
    }
    match file::counts_from(closed, read.modified, now) {
        Some(time) => Look::Soon(time),
        None => {
            let text = answer.to_owned();
            Look::Answer(Found { text, owner: read.owner, modified: read.modified })
        }
    }
}

/// What the file of a question says, as far as that can be said without the record of its attempt.
pub(crate) fn answer_state(path: &Path, form: &Form, now: Timestamp) -> InFile {
    match look(path, form, Some(Timestamp::MIN), now) {
        Look::Nothing(_) => InFile::NoAnswer,
        Look::Soon(time) => InFile::Soon(time),
        Look::Answer(found) => InFile::Answer(found.modified),
    }
}

/// What there is to say to a person about the file of an open question.
pub(crate) fn in_words(
    store: &Store,
    id: RequestId,
    form: &Form,
    now: Timestamp,
) -> Result<Option<String>, RuntimeError> {
    let Some(path) = &form.file else { return Ok(None) };
    Ok(Some(match look(path, form, asked_until(store, id)?, now) {
        Look::Nothing(why) => why,
        Look::Soon(time) => {
            let seconds = time.duration_since(now).as_secs().max(1);
            format!("{} has an answer, which counts in {seconds} s unless the file changes", path.display())
        }
        Look::Answer(found) => match answer::from_text(&RequestKind::Ask(form.clone()), &found.text) {
            Ok(_) => format!("{} has an answer, which the next resume records", path.display()),
            Err(why) => format!("{}: {why}", path.display()),
        },
    }))
}

/// Records the answer in the file of an open question, if there is one.
pub(crate) fn take(store: &Store, id: RequestId, form: &Form, now: Timestamp) -> Result<(), RuntimeError> {
    let Some(path) = &form.file else { return Ok(()) };
    let Look::Answer(found) = look(path, form, asked_until(store, id)?, now) else { return Ok(()) };
    // What is not an answer stays in the file, and `questions` says why it is not.
    let Ok(text) = answer::from_text(&RequestKind::Ask(form.clone()), &found.text) else { return Ok(()) };
    match store.record_answer(id, &text, &found.origin(path), false) {
        // Somebody else was faster.
        Ok(_)
        | Err(
            StoreError::AlreadyAnswered { .. } | StoreError::QuestionExpired { .. } | StoreError::QuestionWithdrawn(_),
        ) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Found {
    /// The owner of a file is the one who last saved it, or the one who first made it.
    fn origin(&self, path: &Path) -> Origin {
        let user = User::from_uid(Uid::from_raw(self.owner)).ok().flatten().map(|user| user.name);
        let file = FromFile { path: path.to_owned(), modified: self.modified };
        Origin { uid: self.owner, user, process: std::process::id(), file: Some(file), ..Origin::default() }
    }
}

struct Content {
    text: String,
    owner: u32,
    modified: Timestamp,
    /// When anything about the file changed last. Unlike the time before, no program can set this one.
    changed: Timestamp,
}

/// The whole file, or why it cannot be read.
fn read(path: &Path) -> Result<Content, String> {
    let why = |error: io::Error| match error.kind() {
        ErrorKind::NotFound if fs::symlink_metadata(path).is_ok() => "is a link to nothing".to_owned(),
        ErrorKind::NotFound | ErrorKind::NotADirectory => "does not exist".to_owned(),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => "is a link".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    if real(path).map_err(why)? != path {
        return Err("is in a directory that was replaced by a link".to_owned());
    }
    // Opening a fifo would wait for somebody who writes to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| why(error.into()))?);
    let before = opened.metadata().map_err(why)?;
    if before.is_dir() {
        return Err("is a directory".to_owned());
    }
    if !before.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if before.len() > LARGEST {
        return Err("is larger than 1 MiB".to_owned());
    }
    let mut bytes = Vec::new();
    (&opened).take(LARGEST + 1).read_to_end(&mut bytes).map_err(why)?;
    let after = opened.metadata().map_err(why)?;
    let state =
        |found: &fs::Metadata| (found.len(), found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    if state(&before) != state(&after) || bytes.len() as u64 != after.len() {
        return Err("is being written".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let time = |seconds, nanoseconds: i64| Timestamp::new(seconds, nanoseconds as i32).unwrap_or(Timestamp::MAX);
    let (modified, changed) = (time(after.mtime(), after.mtime_nsec()), time(after.ctime(), after.ctime_nsec()));
    Ok(Content { text, owner: after.uid(), modified, changed })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(temp.path()).unwrap();
        (temp, path)
    }

    fn why(look: Look) -> String {
        match look {
            Look::Nothing(why) => why.rsplit_once('/').map_or(why.clone(), |(_, why)| why.to_owned()),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn whatever_is_there_it_is_said_why_it_is_no_answer() {
        let (_temp, folder) = folder();
        let at = |name: &str| folder.join(name);
        fs::create_dir(at("folder")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::write(at("whole"), "When?\nA: now\n---\n").unwrap();
        symlink(at("whole"), at("link")).unwrap();
        symlink(&folder, at("way")).unwrap();
        fs::write(at("binary"), b"When?\nA: \xff").unwrap();
        File::create(at("large")).unwrap().set_len(LARGEST + 1).unwrap();
        fs::write(at("empty"), "").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let now = Timestamp::now();
        let look = |name: &str| why(look(&at(name), &Form::text("When?"), Some(Timestamp::UNIX_EPOCH), now));
        for (name, expected) in [
            ("missing", "missing does not exist"),
            ("whole/below", "below does not exist"),
            ("dangling", "dangling is a link"),
            ("link", "link is a link"),
            ("way/whole", "whole is in a directory that was replaced by a link"),
            ("folder", "folder is a directory"),
            ("fifo", "fifo is not a regular file"),
            ("large", "large is larger than 1 MiB"),
            ("binary", "binary is not UTF-8"),
            ("empty", "empty no longer has the question that was asked, so nothing in it is an answer"),
        ] {
            assert_eq!(look(name), expected);
        }
        assert!(look("whole").starts_with("Answer(Found { text: \"now\", "), "{}", look("whole"));
    }

    #[test]
    fn an_answer_is_younger_than_the_attempt_that_asked_and_complete() {
        let (_temp, folder) = folder();
        let path = folder.join("q.md");
        fs::write(&path, "When?\nA: now\n").unwrap();
        let modified = read(&path).unwrap().modified;
        let later = |seconds| modified + jiff::SignedDuration::from_secs(seconds);
        let begun = Some(later(-1));
        assert_eq!(look(&path, &Form::text("When?"), begun, later(1)), Look::Soon(later(10)));
        assert!(matches!(look(&path, &Form::text("When?"), begun, later(10)), Look::Answer(_)));
        for until in [None, Some(later(1))] {
            assert_eq!(
                why(look(&path, &Form::text("When?"), until, later(20))),
                "q.md was changed while its agent still worked: save it once more"
            );
        }
    }

    #[test]
    fn a_new_file_replaces_none() {
        let (_temp, folder) = folder();
        let path = folder.join("q.md");
        create(&path, "one").unwrap();
        assert_eq!(create(&path, "two").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
