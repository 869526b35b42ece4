//! Questions that agents post as files in a folder that a person has named, and answers in files.
//!
//! Agents and other programs can write anything there.

pub(crate) mod filing;
mod folder;

use std::io::ErrorKind;

use jiff::Timestamp;

use crate::core::chain::frame::Frame;
use crate::core::chain::tree::Tree;
use crate::core::posted::{announced, answered, pending};
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::answer_file::{ANSWERED, PENDING, Posted};
use crate::core::requests::request::{Request, RequestKind};
use crate::runtime::RuntimeError;
use crate::runtime::requests::file_content::{self, Earlier, digest};
use crate::runtime::requests::posted::folder::{Folder, said};
use crate::runtime::requests::question_files::{AskedUntil, EARLY, FoundAnswer};
use crate::store::{Caller, Store};

/// Records the questions that an agent announces in its last lines. A question whose file cannot be read is recorded, too: a
/// person is told about it, and can answer nevertheless.
pub(crate) fn record(store: &Store, frame: &Frame, caller: Caller, reply: &str) -> Result<(), RuntimeError> {
    let Some(dir) = &frame.launch.questions_dir else { return Ok(()) };
    for id in announced(reply) {
        let posted = Posted { dir: dir.clone(), id, trouble: None };
        let form = form(&posted).unwrap_or_else(|why| in_trouble(posted, why));
        let form = form.expiring_after(frame.launch.questions_expire, Timestamp::now());
        store.request(caller, None, &[RequestKind::Ask(form)])?;
    }
    Ok(())
}

/// Whether an agent announces posted questions.
pub(crate) fn is_any(frame: &Frame, reply: &str) -> bool {
    frame.launch.questions_dir.is_some() && !announced(reply).is_empty()
}

/// Whether the agents of a chain wait for answers to posted questions, or have yet to get one.
pub(crate) fn any(tree: &Tree) -> bool {
    requests(tree).next().is_some()
}

/// The posted questions of a chain.
pub(super) fn requests(tree: &Tree) -> impl Iterator<Item = (&Request, &Form, &Posted)> {
    let requests = tree.leaves_up().into_iter().flat_map(|node| &node.requests);
    requests.filter_map(|request| match &request.kind {
        RequestKind::Ask(form) => Some((request, form, form.posted.as_ref()?)),
        _ => None,
    })
}

/// The current question in its file.
fn form(posted: &Posted) -> Result<Form, String> {
    let name = posted
        .file_name()
        .ok_or("its name may only have letters, digits, `.`, `_` and `-`, and not begin with `.` or `-`")?;
    let of = |why: String| format!("{}/{PENDING}/{name} {why}", posted.dir.display());
    let found = Folder::open(&posted.dir, PENDING).map_err(|error| of(said(&error)))?.read(&name).map_err(of)?;
    let found = found.ok_or_else(|| of("does not exist".to_owned()))?;
    pending::question(&found.text, posted.clone(), found.changed).map_err(|why| of(why.to_string()))
}

/// Like [`form`], for a question that could not be read; `None`: it still cannot be read, for the same reason `why`. Unless
/// its file says when it expires, its earlier expiry applies.
pub(super) fn form_of(unread: &Form, posted: &Posted, why: &str) -> Option<Form> {
    let form = match form(posted) {
        Err(now) if now == why => return None,
        read => read.unwrap_or_else(|now| in_trouble(posted.clone(), now)),
    };
    Some(Form { expires_at: form.expires_at.or(unread.expires_at), ..form })
}

/// The question that a person is shown if the file cannot be read.
fn in_trouble(posted: Posted, why: String) -> Form {
    let question = format!(
        "The agent says that it has posted the question {}, but it cannot be read: {why}. Fix the file, or answer here what you \
         know: the agent is told your answer.",
        posted.id
    );
    Form { posted: Some(Posted { trouble: Some(why), ..posted }), ..Form::text(&question) }
}

/// What the agent that posted a question has left as its answer.
pub(super) fn earlier_in(posted: &Posted) -> Option<Earlier> {
    let read = Folder::open(&posted.dir, ANSWERED).ok()?.read(&posted.file_name()?);
    let Ok(found) = read else { return file_content::earlier_unread(&posted.answered()?) };
    found.map(|found| Earlier { what: digest(&found.text, true), changed: found.changed })
}

/// What the file of an answer says. Anything written while the agent worked may come from the agent.
pub(super) fn find_answer(posted: &Posted, asked: &AskedUntil) -> FoundAnswer {
    let Some(name) = posted.file_name() else { return FoundAnswer::None("cannot be a file".to_owned()) };
    let folder = match Folder::open(&posted.dir, ANSWERED) {
        Ok(folder) => folder,
        Err(error) if error.kind() != ErrorKind::NotFound => return FoundAnswer::Refused(said(&error)),
        Err(_) if posted.dir.exists() => return FoundAnswer::None("does not exist".to_owned()),
        Err(_) => return FoundAnswer::Refused(format!("cannot be read: {} does not exist", posted.dir.display())),
    };
    let found = match folder.read(&name) {
        Ok(Some(found)) => found,
        Ok(None) => return FoundAnswer::None("does not exist".to_owned()),
        Err(why) => return FoundAnswer::Refused(why),
    };
    if answered::recorded_as(&found.text).is_some() {
        return FoundAnswer::None("has the answer to an earlier question of this name".to_owned());
    }
    match answered::answer(&found.text) {
        Err(why) => FoundAnswer::Refused(why.to_string()),
        Ok(_) if asked.is_early(&digest(&found.text, true), &found) => FoundAnswer::Refused(EARLY.to_owned()),
        Ok(text) => FoundAnswer::Answer(text, found),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use rustix::fs::Mode;

    use super::*;
    use crate::runtime::requests::file_content::LARGEST;

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
            ("folder", "is a directory"),
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
}
