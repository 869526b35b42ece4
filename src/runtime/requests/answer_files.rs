//! What is in the files in which open questions can be answered, for people.

use jiff::Timestamp;

use crate::core::chain::tree::Tree;
use crate::core::id::RequestId;
use crate::core::requests::question::Form;
use crate::core::requests::question::answer_file::AnswerFile;
use crate::core::requests::request::RequestKind;
use crate::core::waits::progress::Progress;
use crate::runtime::RuntimeError;
use crate::runtime::requests::question_files::AskedUntil;
use crate::runtime::requests::{posted, question_files};
use crate::store::{Question, Store};

/// Adds it to the questions of a chain.
pub(crate) fn observe(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<(), RuntimeError> {
    for request in tree.requests_mut().filter(|request| !request.state.is_resolved()) {
        if let RequestKind::Ask(form) = &mut request.kind {
            form.answer_file = seen(store, request.id, form, &request.progress, now)?.map(Box::new);
        }
    }
    Ok(())
}

/// Adds it to a question.
pub(crate) fn observed(store: &Store, question: Question, now: Timestamp) -> Result<Question, RuntimeError> {
    let is_open = question.answered.is_none() && question.expired.is_none();
    match question.kind {
        RequestKind::Ask(form) if is_open => {
            let answer_file = seen(store, question.id, &form, &Progress::default(), now)?.map(Box::new);
            Ok(Question { kind: RequestKind::Ask(Form { answer_file, ..form }), ..question })
        }
        kind => Ok(Question { kind, ..question }),
    }
}

fn seen(
    store: &Store,
    id: RequestId,
    form: &Form,
    seen: &Progress,
    now: Timestamp,
) -> Result<Option<AnswerFile>, RuntimeError> {
    let asked = || AskedUntil::of(store, id, seen);
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
