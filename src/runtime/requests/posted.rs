//! Questions that agents post as files in a folder that a person has named, and answers in files.
//!
//! Agents and other programs write there. Whatever is in the folder, it neither hangs nor fills the memory, and nothing outside of
//! it is read or written: no link is followed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use nix::unistd::{Uid, User};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::core::chain::frame::Frame;
use crate::core::chain::origin::Origin;
use crate::core::chain::tree::Tree;
use crate::core::id::RequestId;
use crate::core::posted::answered::{self, End};
use crate::core::posted::place::{ANSWERED, PENDING, Posted};
use crate::core::posted::{marker, pending};
use crate::core::requests::answer;
use crate::core::requests::question::Form;
use crate::core::requests::request::{Request, RequestKind};
use crate::failpoint::{self, Step};
use crate::runtime::RuntimeError;
use crate::runtime::requests::question_files::asked_until;
use crate::store::{Caller, Seen, Store, StoreError};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Records the questions that an agent says it has posted in its last lines. One whose file cannot be read is recorded, too: a
/// person is told, and can answer all the same.
pub(crate) fn record(store: &Store, frame: &Frame, caller: Caller, reply: &str) -> Result<(), RuntimeError> {
    let Some(dir) = &frame.launch.questions_dir else { return Ok(()) };
    for id in marker::posted(reply) {
        let posted = Posted { dir: dir.clone(), id, trouble: None };
        let form = form(&posted).unwrap_or_else(|why| in_trouble(posted, why));
        store.request(caller, None, &[RequestKind::Ask(form)])?;
    }
    Ok(())
}

/// Whether the agents of a chain wait for answers to posted questions, or have yet to get one.
pub(crate) fn any(tree: &Tree) -> bool {
    requests(tree).next().is_some()
}

/// Brings records and files together: reads questions again that could not be read, records answers that are in files, and files
/// answers that were given in other ways. What cannot be written is written by the next look.
pub(crate) fn look(store: &Store, tree: &Tree) -> Result<(), RuntimeError> {
    for (request, form, posted) in requests(tree) {
        if request.state.is_resolved() {
            file(store, request.id, form);
            continue;
        }
        let read_now = posted.trouble.as_ref().and_then(|_| form_of(posted));
        if let Some(form) = &read_now {
            store.looked(request.id, &Seen::Form(form))?;
        }
        take(store, request.id, read_now.as_ref().unwrap_or(form), posted)?;
    }
    Ok(())
}

/// Files a posted question that was answered or has expired.
pub(crate) fn file(store: &Store, id: RequestId, form: &Form) {
    let Some(posted) = &form.posted else { return };
    if let Err(why) = file_end(store, id, form, posted) {
        tracing::warn!("the end of the question {} cannot be filed in {}: {why}", id.short(), posted.dir.display());
    }
}

/// Adds to posted questions, for people, why the file of an answer does not count.
pub(crate) fn observe(store: &Store, tree: &mut Tree) -> Result<(), RuntimeError> {
    for request in tree.requests_mut() {
        let is_open = !request.state.is_resolved();
        let RequestKind::Ask(form) = &mut request.kind else { continue };
        let kind = RequestKind::Ask(form.clone());
        let Some(posted) = form.posted.as_mut().filter(|posted| is_open && posted.trouble.is_none()) else { continue };
        posted.trouble = match answer_in(posted, asked_until(store, request.id)?) {
            Err(why) => why,
            Ok(found) => answer::from_text(&kind, &found.text).err().map(|why| format!("{}: {why}", in_folder(posted))),
        };
    }
    Ok(())
}

fn in_folder(posted: &Posted) -> String {
    format!("{ANSWERED}/{}.json", posted.id)
}

fn requests(tree: &Tree) -> impl Iterator<Item = (&Request, &Form, &Posted)> {
    let requests = tree.leaves_up().into_iter().flat_map(|node| &node.requests);
    requests.filter_map(|request| match &request.kind {
        RequestKind::Ask(form) => Some((request, form, form.posted.as_ref()?)),
        _ => None,
    })
}

/// The question as it is in its file now.
fn form(posted: &Posted) -> Result<Form, String> {
    let name = posted
        .file_name()
        .ok_or("its name may only have letters, digits, `.`, `_` and `-`, and not begin with `.` or `-`")?;
    let of = |why: String| format!("{}/{PENDING}/{name} {why}", posted.dir.display());
    let found = Folder::open(&posted.dir, PENDING).map_err(|error| of(said(&error)))?.read(&name).map_err(of)?;
    let found = found.ok_or_else(|| of("does not exist".to_owned()))?;
    pending::question(&found.text, posted.clone(), found.changed).map_err(|why| of(why.to_string()))
}

fn form_of(posted: &Posted) -> Option<Form> {
    form(posted).ok()
}

/// The question to a person if there is none to read.
fn in_trouble(posted: Posted, why: String) -> Form {
    let question = format!(
        "The agent says that it has posted the question {}, but it cannot be read: {why}. Mend the file, or answer here what you \
         know: the agent is told your answer.",
        posted.id
    );
    Form { posted: Some(Posted { trouble: Some(why), ..posted }), ..Form::text(&question) }
}

/// Records the answer in the file of an open question, if there is one that counts.
fn take(store: &Store, id: RequestId, form: &Form, posted: &Posted) -> Result<(), RuntimeError> {
    let Ok(found) = answer_in(posted, asked_until(store, id)?) else { return Ok(()) };
    let Ok(text) = answer::from_text(&RequestKind::Ask(form.clone()), &found.text) else { return Ok(()) };
    match store.record_answer(id, &text, &found.origin(), false) {
        // Somebody else was faster.
        Ok(_) | Err(StoreError::AlreadyAnswered { .. } | StoreError::QuestionWithdrawn(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The text of the answer in a file. `None` as an error: there is no file. What was written while the agent worked, the agent may
/// have written.
fn answer_in(posted: &Posted, asked_until: Option<Timestamp>) -> Result<Content, Option<String>> {
    let name = posted.file_name().ok_or(None)?;
    let of = |why: String| Some(format!("{ANSWERED}/{name} {why}"));
    let folder = match Folder::open(&posted.dir, ANSWERED) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(None),
        folder => folder.map_err(|error| of(said(&error)))?,
    };
    let found = folder.read(&name).map_err(of)?.ok_or(None)?;
    if asked_until.is_none_or(|until| found.changed < until) {
        return Err(of("was written while its agent still worked: save it once more".to_owned()));
    }
    let text = answered::answer(&found.text).map_err(|why| of(why.to_string()))?;
    Ok(Content { text, ..found })
}

/// Writes the answer, or that nobody gave one in time, into the folder of answers, unless it came from there, and removes the
/// question from that of open ones.
fn file_end(store: &Store, id: RequestId, form: &Form, posted: &Posted) -> Result<(), String> {
    let Some(name) = posted.file_name() else { return Ok(()) };
    let asked = match Folder::open(&posted.dir, PENDING) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        folder => Some(folder.map_err(|error| said(&error))?),
    };
    let answers = Folder::made(&posted.dir, ANSWERED).map_err(|error| said(&error))?;
    let until = asked_until(store, id).map_err(|error| error.to_string())?;
    let is_filed =
        answers.read(&name).ok().flatten().is_some_and(|found| until.is_some_and(|until| found.changed >= until));
    if !is_filed && let Some(given) = store.questions(id, false).map_err(|error| error.to_string())?.pop() {
        let by = given.origin.unwrap_or_default();
        let end = match (given.answer.as_deref(), given.answered, given.expired) {
            (Some(answer), Some(at), _) => End::Answered { answer, at, by: &by },
            (_, _, Some(at)) => End::Expired { default: form.default.as_deref(), at },
            _ => return Ok(()),
        };
        let question = asked.as_ref().and_then(|folder| folder.read(&name).ok().flatten());
        let question = question.as_ref().map(|content| content.text.as_str());
        let text = answered::file(question, &posted.id, &form.question, &end);
        failpoint::around(Step::AnswerFile, || answers.write(&name, &text)).map_err(|error| error.to_string())?;
    }
    asked.map_or(Ok(()), |folder| folder.remove(&name)).map_err(|error| error.to_string())
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => LINK.to_owned(),
        ErrorKind::NotADirectory => LINK.to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// A folder, opened once: nothing that is done in it can be led elsewhere.
struct Folder(OwnedFd);

/// A file's text.
struct Content {
    text: String,
    owner: u32,
    /// When anything about the file changed last. No program can set this.
    changed: Timestamp,
}

impl Content {
    /// The owner of a file is the one who last saved it, or the one who first made it.
    fn origin(&self) -> Origin {
        let user = User::from_uid(Uid::from_raw(self.owner)).ok().flatten().map(|user| user.name);
        Origin { uid: self.owner, user, process: std::process::id(), ..Origin::default() }
    }
}

impl Folder {
    fn open(dir: &Path, name: &str) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(Self::of(dir)?, name, FOLDER, Mode::empty())?))
    }

    fn made(dir: &Path, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(Self::of(dir)?, name, Mode::from(0o777)) {
            Err(error) if error != rustix::io::Errno::EXIST => Err(error.into()),
            _ => Self::open(dir, name),
        }
    }

    fn of(dir: &Path) -> io::Result<OwnedFd> {
        // It was a folder without links on the way when a person named it.
        if fs::canonicalize(dir)? != dir {
            return Err(io::Error::from(ErrorKind::NotADirectory));
        }
        Ok(rustix::fs::open(dir, FOLDER, Mode::empty())?)
    }

    /// A file's text, `None` if there is no file, or why it cannot be read.
    fn read(&self, name: &str) -> Result<Option<Content>, String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err("is a link".to_owned()),
            opened => File::from(opened.map_err(|error| said(&error.into()))?),
        };
        let metadata = opened.metadata().map_err(|error| said(&error))?;
        if !metadata.is_file() {
            return Err("is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| said(&error))?;
        if bytes.len() as u64 > LARGEST {
            return Err("is larger than 1 MiB".to_owned());
        }
        let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
        let nanoseconds = i32::try_from(metadata.ctime_nsec()).unwrap_or_default();
        let changed = Timestamp::new(metadata.ctime(), nanoseconds).unwrap_or(Timestamp::MAX);
        Ok(Some(Content { text, owner: metadata.uid(), changed }))
    }

    /// Writes a file under another name first, so that nobody reads half of it.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let new = format!(".{name}.{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match rustix::fs::openat(&self.0, &new, flags, Mode::from(0o666)) {
            // A process with that id died while it wrote.
            Err(rustix::io::Errno::EXIST) => {
                rustix::fs::unlinkat(&self.0, &new, AtFlags::empty())?;
                rustix::fs::openat(&self.0, &new, flags, Mode::from(0o666))?
            }
            made => made?,
        };
        let mut made = File::from(made);
        made.write_all(text.as_bytes())?;
        made.sync_all()?;
        rustix::fs::renameat(&self.0, &new, &self.0, name)?;
        Ok(rustix::fs::fsync(&self.0)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }
}

const LINK: &str = "is not in a folder, or there is a link on the way";
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir(path.join(PENDING)).unwrap();
        (temp, path)
    }

    fn posted(dir: &Path, id: &str) -> Posted {
        Posted { dir: dir.to_owned(), id: id.to_owned(), trouble: None }
    }

    #[test]
    fn whatever_is_posted_it_is_said_why_it_is_no_question() {
        let (_temp, dir) = folder();
        let at = |name: &str| dir.join(PENDING).join(name);
        fs::write(dir.join("secret"), r#"{"question": "secret"}"#).unwrap();
        symlink(dir.join("secret"), at("link.json")).unwrap();
        fs::create_dir(at("folder.json")).unwrap();
        fs::write(at("half.json"), r#"{"question": "Wh"#).unwrap();
        fs::write(at("binary.json"), b"\xff").unwrap();
        File::create(at("large.json")).unwrap().set_len(LARGEST + 1).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo.json"), rustix::fs::FileType::Fifo, Mode::from(0o600), 0)
            .unwrap();
        for (id, expected) in [
            ("missing", "does not exist"),
            ("link", "is a link"),
            ("folder", "is not a regular file"),
            ("half", "is not JSON: EOF"),
            ("binary", "is not UTF-8"),
            ("large", "is larger than 1 MiB"),
            ("fifo", "is not a regular file"),
            ("../secret", "its name may only have letters"),
        ] {
            let why = form(&posted(&dir, id)).unwrap_err();
            assert!(why.contains(expected), "{id}: {why}");
        }
    }

    #[test]
    fn a_folder_that_is_a_link_is_neither_read_nor_written() {
        let (_temp, dir) = folder();
        let (_other, elsewhere) = folder();
        fs::write(elsewhere.join(PENDING).join("q1.json"), r#"{"question": "secret"}"#).unwrap();
        fs::remove_dir(dir.join(PENDING)).unwrap();
        symlink(elsewhere.join(PENDING), dir.join(PENDING)).unwrap();
        symlink(&elsewhere, dir.join(ANSWERED)).unwrap();
        assert!(form(&posted(&dir, "q1")).unwrap_err().contains("there is a link on the way"));
        assert!(Folder::made(&dir, ANSWERED).is_err());
        symlink(&elsewhere, dir.join("whole")).unwrap();
        assert!(form(&posted(&dir.join("whole"), "q1")).is_err());
    }

    #[test]
    fn an_answer_is_written_whole_and_replaces_what_a_dead_process_left() {
        let (_temp, dir) = folder();
        let folder = Folder::made(&dir, ANSWERED).unwrap();
        fs::write(dir.join(ANSWERED).join(format!(".q1.json.{}", std::process::id())), "half").unwrap();
        folder.write("q1.json", "whole").unwrap();
        assert_eq!(folder.read("q1.json").unwrap().unwrap().text, "whole");
        assert_eq!(fs::read_dir(dir.join(ANSWERED)).unwrap().count(), 1);
        folder.remove("q1.json").unwrap();
        folder.remove("q1.json").unwrap();
    }
}
