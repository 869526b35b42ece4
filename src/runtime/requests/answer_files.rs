//! The files in which open questions can be answered: reads them, and records the answers.

use std::path::Path;

use jiff::Timestamp;

use crate::core::chain::check_schedule::{InFile, RefusedAnswer};
use crate::core::chain::tree::Tree;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::answer;
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::answer_file::{AnswerFile, AnswerFileContent};
use crate::core::requests::question_form::question_file::QUIET;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::steering::origin::FromFile;
use crate::core::waits::wait_progress::WaitProgress;
use crate::runtime::RuntimeError;
use crate::runtime::requests::question_files::{AskedUntil, FoundAnswer};
use crate::runtime::requests::{file_content, posted, question_files};
use crate::store::{Question, Requests, Seen, Store, StoreError};

/// Adds the state of these files to the questions of a chain.
pub(crate) fn observe(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<(), RuntimeError> {
    for request in tree.requests_mut().filter(|request| !request.state.is_resolved()) {
        if let RequestKind::Ask(form) = &mut request.kind {
            form.answer_file = seen(store, request.id, form, &request.progress, now)?.map(Box::new);
        }
    }
    Ok(())
}

/// Records what an ended attempt leaves in the files of its questions: it is never an answer, whatever happens to the files.
/// `ended`: when, if that is some time ago.
pub(crate) fn note_earlier(store: &Store, attempt: AttemptId, ended: Option<Timestamp>) -> Result<(), RuntimeError> {
    for (request, _) in store.requests(Requests::Undelivered(attempt))? {
        let RequestKind::Ask(form) = &request.kind else { continue };
        let earlier = match (&form.posted, &form.file) {
            (Some(posted), _) => posted::earlier_in(posted),
            (None, Some(path)) => question_files::earlier_in(path, form),
            (None, None) => None,
        };
        // Later content is not the agent's.
        let Some(earlier) = earlier.filter(|earlier| ended.is_none_or(|ended| earlier.changed < ended)) else {
            continue;
        };
        if !request.progress.was_earlier(&earlier.what) {
            store.looked(request.id, &Seen::Progress(&request.progress.with_earlier(&earlier.what)))?;
        }
    }
    Ok(())
}

/// Reads posted questions again that could not be read, and records the answers to posted questions in files.
pub(crate) fn update_posted(store: &Store, tree: &Tree, now: Timestamp) -> Result<(), RuntimeError> {
    for (request, form, posted) in posted::requests(tree).filter(|(request, ..)| !request.state.is_resolved()) {
        let read_now = posted.trouble.as_ref().and_then(|why| posted::form_of(form, posted, why));
        if let Some(form) = &read_now {
            store.looked(request.id, &Seen::Form(form))?;
        }
        take(store, request, read_now.as_ref().unwrap_or(form), now)?;
    }
    Ok(())
}

/// Records the answer in the file of an open question, if there is one that counts.
pub(crate) fn take(store: &Store, request: &Request, form: &Form, now: Timestamp) -> Result<(), RuntimeError> {
    let Some(path) = form.answered_in() else { return Ok(()) };
    match find_answer(&path, form, &AskedUntil::read(store, request.id, &request.progress)?, now) {
        FoundAnswer::Answer(text, read) => {
            let file = form.posted.is_none().then_some(FromFile { path, changed: read.changed });
            match store.record_answer(request.id, &text, &read.origin(file), false) {
                // Another process recorded it first.
                Err(
                    StoreError::AlreadyAnswered { .. }
                    | StoreError::QuestionExpired { .. }
                    | StoreError::QuestionWithdrawn(_),
                ) => Ok(()),
                recorded => Ok(recorded.map(drop)?),
            }
        }
        FoundAnswer::ToNote(seen) => Ok(store.looked(request.id, &Seen::Progress(&seen)).map(drop)?),
        // Text that is not an answer is reported with the question.
        FoundAnswer::None(_) | FoundAnswer::Refused(_) | FoundAnswer::Invalid(_) | FoundAnswer::Soon(_) => Ok(()),
    }
}

fn find_answer(path: &Path, form: &Form, asked: &AskedUntil, now: Timestamp) -> FoundAnswer {
    let found = match &form.posted {
        Some(posted) => posted::find_answer(posted, asked),
        None => question_files::find_answer(path, form, asked, now),
    };
    match found {
        FoundAnswer::Answer(text, read) => match answer::from_text(&RequestKind::Ask(form.clone()), &text) {
            Ok(text) => FoundAnswer::Answer(text, read),
            Err(why) => FoundAnswer::Invalid(format!("has an answer that does not count: {why}")),
        },
        found => found,
    }
}

/// The state of the file in which a question can be answered, as far as it can be determined without the record of the attempt
/// that asked.
pub(crate) fn state(form: &Form, seen: &WaitProgress, now: Timestamp) -> InFile {
    let Some(path) = form.answered_in() else { return InFile::NoAnswer };
    let refused = |why: String| InFile::Refused { was_reported: seen.was_reported(&why), why };
    match find_answer(&path, form, &AskedUntil::some_time(seen), now) {
        FoundAnswer::None(_) => InFile::NoAnswer,
        // The file may still be being written.
        FoundAnswer::Refused(why) => file_content::quiet_from(&path, now).map_or_else(|| refused(why), InFile::Soon),
        FoundAnswer::Invalid(why) => refused(why),
        FoundAnswer::Soon(time) => InFile::Soon(time),
        // The process that runs the chain records it.
        FoundAnswer::ToNote(_) => InFile::Answer(Timestamp::MAX),
        FoundAnswer::Answer(_, read) => InFile::Answer(read.changed),
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

/// Adds the state of its file to a question.
pub(crate) fn observed(store: &Store, question: Question, now: Timestamp) -> Result<Question, RuntimeError> {
    let is_open = question.answered.is_none() && question.expired.is_none();
    match question.kind {
        RequestKind::Ask(form) if is_open && form.answered_in().is_some() => {
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
    let Some(path) = form.answered_in() else { return Ok(None) };
    let content = match find_answer(&path, form, &AskedUntil::read(store, id, seen)?, now) {
        FoundAnswer::None(why) => AnswerFileContent::Unanswered { why },
        FoundAnswer::Refused(why) | FoundAnswer::Invalid(why) => AnswerFileContent::Refused { why },
        FoundAnswer::Soon(counts_at) => AnswerFileContent::Soon { counts_at },
        FoundAnswer::ToNote(_) => AnswerFileContent::Soon { counts_at: now.saturating_add(QUIET).unwrap_or(now) },
        FoundAnswer::Answer(..) => AnswerFileContent::Answered,
    };
    Ok(Some(AnswerFile { path, content }))
}
