//! Files closed posted questions: writes the answer into one folder, and removes the question from the other.
//!
//! Whether a question must still be filed follows from its record, so an unavailable folder is served once it is available
//! again.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Serialize;

use crate::core::id::{FrameId, RequestId};
use crate::core::posted::answered::{self, End};
use crate::core::posted::pending;
use crate::core::requests::answer;
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::answer_file::{ANSWERED, PENDING, Posted};
use crate::core::requests::request::RequestKind;
use crate::failpoint::{self, Step};
use crate::runtime::RuntimeError;
use crate::runtime::requests::file_content::Content;
use crate::runtime::requests::posted::folder::{Folder, said};
use crate::store::{Asked, Question, Questions, Seen, Store};

/// Files the closed questions of one chain, or of all. If a folder is unavailable, its questions remain unfiled, which is not
/// an error.
pub(crate) fn file_ended(store: &Store, root: Option<FrameId>) -> Result<(), RuntimeError> {
    for unfiled in unfiled(store, root)? {
        match file(&unfiled) {
            Ok(()) => drop(store.looked(unfiled.given.id, &Seen::Filed)?),
            Err(why) => tracing::debug!("{} is not filed: {why}", unfiled.given.id.short()),
        }
    }
    Ok(())
}

/// The files that appear once the remaining questions can be filed.
pub(crate) fn awaited(store: &Store) -> Result<Vec<PathBuf>, RuntimeError> {
    Ok(unfiled(store, None)?.into_iter().filter_map(|unfiled| unfiled.posted.pending()).collect())
}

/// A closed posted question whose files do not say that it is closed.
struct Unfiled {
    given: Question,
    form: Form,
    posted: Posted,
    /// Whether its files now belong to another, open question.
    is_superseded: bool,
}

fn unfiled(store: &Store, of: Option<FrameId>) -> Result<Vec<Unfiled>, RuntimeError> {
    let mut found = store.questions(Questions::Unfiled(of), false)?;
    // The files of the others are on their own hosts.
    found.retain(|question| store.elsewhere(question.frame).is_ok_and(|host| host.is_none()));
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let place = |question: &Question| match &question.kind {
        RequestKind::Ask(form) => form.posted.clone().map(|posted| (posted.dir, posted.id)),
        _ => None,
    };
    let open: Vec<_> = store.questions(Asked::Anywhere, true)?.iter().filter_map(place).collect();
    let unfiled = |given: Question| {
        let is_superseded = place(&given).is_some_and(|place| open.contains(&place));
        let RequestKind::Ask(form) = given.kind.clone() else { return None };
        Some(Unfiled { posted: form.posted.clone()?, form, given, is_superseded })
    };
    Ok(found.into_iter().filter_map(unfiled).collect())
}

/// A closed posted question that could not be filed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Hindered {
    question: RequestId,
    /// The file that is still to be written.
    path: PathBuf,
    why: String,
}

/// The questions of a chain that could not be filed at the last try, which was just now.
pub(crate) fn hindered(store: &Store, of: FrameId) -> Result<Vec<Hindered>, RuntimeError> {
    let hindered = |unfiled: Unfiled| {
        let path = unfiled.posted.answered()?;
        let why = file(&unfiled).err()?;
        Some(Hindered { question: unfiled.given.id, path, why })
    };
    Ok(unfiled(store, Some(of))?.into_iter().filter_map(hindered).collect())
}

impl Hindered {
    pub(crate) fn in_words(&self) -> String {
        let (question, path) = (self.question.short(), self.path.display());
        format!("the end of {question} is not yet in {path}: {}; a later resume writes it", self.why)
    }
}

fn folders(posted: &Posted) -> Result<(Option<Folder>, Folder), String> {
    let of = |name: &str, why: String| format!("{} {why}", posted.dir.join(name).display());
    let asked = match Folder::open(&posted.dir, PENDING) {
        Ok(folder) => Some(folder),
        Err(_) if !posted.dir.exists() => return Err(format!("{} does not exist", posted.dir.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(of(PENDING, said(&error))),
    };
    let answers = Folder::made(&posted.dir, ANSWERED).map_err(|error| of(ANSWERED, said(&error)))?;
    Ok((asked, answers))
}

/// Files a question. Writes nothing twice, and does not touch files of a later question with the same name.
fn file(unfiled: &Unfiled) -> Result<(), String> {
    let Unfiled { given, form, posted, is_superseded } = unfiled;
    let Some(name) = posted.file_name().filter(|_| !is_superseded) else { return Ok(()) };
    let by = given.origin.clone().unwrap_or_default();
    let (end, ended) = match (given.answer.as_deref(), given.answered, given.expired) {
        (Some(answer), Some(at), _) => (End::Answered { answer, at, by: &by }, at),
        (_, _, Some(at)) => (End::Expired { default: form.default.as_deref(), at }, at),
        _ => return Ok(()),
    };
    let (asked, answers) = folders(posted)?;
    let question = asked.as_ref().and_then(|folder| folder.read(&name).ok().flatten());
    // An agent may have asked again under the same name.
    let is_own = |found: &Content| found.changed <= ended || asks(found, posted).as_ref() == Some(&form.question);
    let question = question.filter(is_own);
    let there = answers.read(&name).ok().flatten();
    let is_filed = |there: &Content| match given.answer.as_deref() {
        _ if answered::recorded_as(&there.text) == Some(given.id) => true,
        Some(answer) => own_answer(there, form).as_deref() == Some(answer),
        None => false,
    };
    if !there.as_ref().is_some_and(is_filed) {
        let [asked, there] = [&question, &there].map(|found| found.as_ref().map(|found| found.text.as_str()));
        let text = answered::file(asked, there, given.id, &posted.id, &form.question, &end);
        failpoint::around(Step::AnswerFile, || answers.write(&name, &text)).map_err(|error| error.to_string())?;
    }
    match (asked, question) {
        (Some(folder), Some(_)) => folder.remove(&name).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

fn asks(found: &Content, posted: &Posted) -> Option<String> {
    Some(pending::question(&found.text, posted.clone(), found.changed).ok()?.question)
}

/// The answer that a person has written, as it would have been recorded.
fn own_answer(there: &Content, form: &Form) -> Option<String> {
    answer::from_text(&RequestKind::Ask(form.clone()), &answered::answer(&there.text).ok()?).ok()
}
