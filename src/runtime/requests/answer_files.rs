//! What is in the files in which open questions can be answered, for people.

use jiff::Timestamp;

use crate::core::chain::pace::{InFile, RefusedAnswer};
use crate::core::chain::tree::Tree;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::question::answer_file::AnswerFile;
use crate::core::requests::request::RequestKind;
use crate::core::waits::wait_progress::WaitProgress;
use crate::runtime::RuntimeError;
use crate::runtime::requests::question_files::AskedUntil;
use crate::runtime::requests::{posted, question_files};
use crate::store::{Question, Requests, Seen, Store};

/// Adds it to the questions of a chain.
pub(crate) fn observe(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<(), RuntimeError> {
    for request in tree.requests_mut().filter(|request| !request.state.is_resolved()) {
        if let RequestKind::Ask(form) = &mut request.kind {
            form.answer_file = seen(store, request.id, form, &request.progress, now)?.map(Box::new);
        }
    }
    Ok(())
}

/// Notes what an attempt that has ended leaves in the files of its questions: it is no answer, whatever happens to the files.
/// `ended`: when, if that is some time ago.
pub(crate) fn note_earlier(store: &Store, attempt: AttemptId, ended: Option<Timestamp>) -> Result<(), RuntimeError> {
    for (request, _) in store.requests(Requests::Undelivered(attempt))? {
        let RequestKind::Ask(form) = &request.kind else { continue };
        let earlier = match (&form.posted, &form.file) {
            (Some(posted), _) => posted::earlier_in(posted),
            (None, Some(path)) => question_files::earlier_in(path, form),
            (None, None) => None,
        };
        // What was written since is not the agent's.
        let Some(earlier) = earlier.filter(|earlier| ended.is_none_or(|ended| earlier.changed < ended)) else {
            continue;
        };
        if !request.progress.was_earlier(&earlier.what) {
            store.looked(request.id, &Seen::Progress(&request.progress.with_earlier(&earlier.what)))?;
        }
    }
    Ok(())
}

/// What the file in which a question can be answered says to a process that stays, or looks at all chains.
pub(crate) fn state(form: &Form, seen: &WaitProgress, now: Timestamp) -> InFile {
    match (&form.posted, &form.file) {
        (Some(posted), _) => posted::answer_state(posted, form, seen, now),
        (None, Some(path)) => question_files::answer_state(path, form, seen, now),
        (None, None) => InFile::NoAnswer,
    }
}

/// Records that a person was told why the answer in a file does not count.
pub(crate) fn record_reported(store: &Store, refused: &RefusedAnswer) -> Result<(), RuntimeError> {
    for question in store.questions(Some(refused.root), true)? {
        let RequestKind::Ask(form) = &question.kind else { continue };
        if form.answered_in().as_ref() != Some(&refused.path) {
            continue;
        }
        for (request, _) in store.requests(Requests::One(question.id))? {
            store.looked(request.id, &Seen::Progress(&request.progress.with_reported(&refused.why)))?;
        }
    }
    Ok(())
}

/// Adds it to a question.
pub(crate) fn observed(store: &Store, question: Question, now: Timestamp) -> Result<Question, RuntimeError> {
    let is_open = question.answered.is_none() && question.expired.is_none();
    match question.kind {
        RequestKind::Ask(form) if is_open => {
            let request = store.requests(Requests::One(question.id))?.pop();
            let progress = request.map(|(request, _)| request.progress).unwrap_or_default();
            let answer_file = seen(store, question.id, &form, &progress, now)?.map(Box::new);
            Ok(Question { kind: RequestKind::Ask(Form { answer_file, ..form }), ..question })
        }
        kind => Ok(Question { kind, ..question }),
    }
}

fn seen(
    store: &Store,
    id: RequestId,
    form: &Form,
    seen: &WaitProgress,
    now: Timestamp,
) -> Result<Option<AnswerFile>, RuntimeError> {
    let asked = || AskedUntil::read(store, id, seen);
    Ok(match (&form.posted, &form.file) {
        (Some(posted), _) => match posted.answered() {
            Some(path) => Some(AnswerFile { path, content: posted::content(posted, form, &asked()?) }),
            None => None,
        },
        (None, Some(path)) => {
            let content = question_files::content(path, form, &asked()?, now);
            Some(AnswerFile { path: path.clone(), content })
        }
        (None, None) => None,
    })
}
