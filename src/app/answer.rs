//! Answers a question, or allows or denies a tool call or a plan.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::app::asker::PersonsTask;
use crate::app::error::{AnswerError, AppError};
use crate::app::lists::whole_question;
use crate::app::{App, lookup};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::answer;
use crate::core::requests::proposed_plan::{Permit, PlanDecision, permit};
use crate::core::requests::request::RequestKind;
use crate::core::requests::request_state::RequestEvent;
use crate::runtime::requests::agent_lookup;
use crate::runtime::run::status;
use crate::store::{Driving, Question, Requests, Scope, Store, StoreError, Target};

/// An answer to record, and how to record it.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) question: RequestId,
    pub(crate) text: String,
    /// Take the text literally, even if it looks like an option's number.
    pub(crate) is_verbatim: bool,
    /// The permission mode to continue in, if the answer allows a plan.
    pub(crate) mode: Option<String>,
    /// Replace an earlier answer.
    pub(crate) replace: bool,
    /// The [digest] of the question as the person saw it. `None` if it cannot have changed since.
    pub(crate) shown: Option<String>,
}

impl Input {
    /// Creates the input for an answer from a form, which showed the question with the [digest] `shown`.
    pub(crate) fn entered(question: RequestId, text: String, shown: Option<String>) -> Self {
        Self { question, text, is_verbatim: true, mode: None, replace: false, shown }
    }
}

/// Builds the answer that denies a call or a plan.
pub(crate) fn denial(reason: Option<&str>) -> String {
    reason.map_or_else(|| "deny".to_owned(), |reason| format!("deny {reason}"))
}

/// A recorded answer.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) chain: FrameId,
    /// The text that the agent gets.
    pub(crate) text: String,
    /// Whether a process is running the chain, which then continues automatically.
    pub(crate) running_elsewhere: bool,
}

/// Whether a question can be answered.
#[derive(Debug)]
pub(crate) enum AnswerStatus {
    Open(Question),
    Answered(Question),
    Expired,
    /// The agent no longer waits for an answer.
    Gone,
}

/// Why a valid answer comes too late.
#[derive(Debug)]
pub(crate) enum TooLate {
    /// Another answer was recorded.
    Answered(Option<Box<Question>>),
    /// The earlier answer, which this one would have replaced, was delivered.
    Delivered(AppError),
    /// The chain was removed.
    Removed,
    /// The question is closed.
    Closed(AppError),
}

/// An answer that lets an agent act.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    /// The mode in which the agent would continue, if this approves a plan.
    pub(crate) mode: Option<String>,
}

/// The size limit of an answer, in bytes. Each answer is stored several times and becomes part of a conversation.
const LARGEST: usize = 8 << 20;

/// Refuses askers that an agent may have started.
pub(crate) fn only_people(app: &App<'_>) -> Result<(), AppError> {
    app.asker.may(PersonsTask::Answer)?;
    for session in &app.asker.sessions {
        if let Some(agent) = agent_lookup::agent_of(app.store, *session)? {
            return Err(AnswerError::InSessionOf(agent).into());
        }
    }
    Ok(())
}

/// Resolves an id, a name or `last` to a question, or to a chain or agent with all of its questions.
pub(crate) fn named(app: &App<'_>, id: &str) -> Result<Target, AppError> {
    Ok(app.store.lookup(Scope::QuestionsFirst, &lookup::id_of(app, id)?)?)
}

/// Finds the question that an id names. The id of a chain or agent names its only open question or, with `replace`, the only one
/// whose answer can be replaced.
pub(crate) fn question_named(app: &App<'_>, id: &str, replace: bool) -> Result<RequestId, AppError> {
    let agent = match named(app, id)? {
        // A request that is not a question is refused when it is answered.
        Target::Request(request) => return Ok(request),
        Target::Frame(agent) => agent,
    };
    let questions = if replace { replaceable(app.store, agent)? } else { app.store.questions(Some(agent), true)? };
    match questions.as_slice() {
        [only] => Ok(only.id),
        [] if replace => Err(AnswerError::NoAnswer(agent).into()),
        [] => Err(no_open_question(app.store, agent)?.into()),
        _ if replace => Err(AnswerError::SeveralAnswers { agent, answered: questions }.into()),
        _ => Err(AnswerError::SeveralOpenQuestions { agent, open: questions }.into()),
    }
}

/// The error for a chain or agent without an open question.
pub(crate) fn no_open_question(store: &Store, agent: FrameId) -> Result<AnswerError, StoreError> {
    Ok(AnswerError::NoOpenQuestion { agent, replaceable: replaceable(store, agent)? })
}

/// The answered questions of a chain or agent whose answers were not delivered.
fn replaceable(store: &Store, agent: FrameId) -> Result<Vec<Question>, StoreError> {
    let mut questions = store.questions(Some(agent), false)?;
    questions.retain(|asked| asked.answer.is_some());
    let mut found = Vec::new();
    for asked in questions {
        let request = store.requests(Requests::One(asked.id))?.pop();
        if request.is_some_and(|(request, _)| request.state.after(RequestEvent::Replace).is_ok()) {
            found.push(asked);
        }
    }
    Ok(found)
}

/// Returns the text that [`answer()`] would record. The store refuses questions that cannot be answered.
pub(crate) fn check(app: &App<'_>, input: &Input) -> Result<String, AppError> {
    let asked = app.store.questions(input.question, false)?.pop();
    let text = with_mode(input, asked.as_ref())?;
    let Some(asked) = asked.filter(|asked| asked.answered.is_none() || input.replace) else { return Ok(text) };
    let read = if input.is_verbatim { answer::verbatim } else { answer::from_text };
    let checked = read(&asked.kind, &text).map_err(|error| {
        let (question, kind) = (asked.id, Box::new(asked.kind.clone()));
        AnswerError::NotAnAnswer { question, kind, text, replaces: input.replace, error }
    })?;
    if checked.len() > LARGEST {
        return Err(AnswerError::TooLarge(checked.len()).into());
    }
    Ok(checked)
}

fn with_mode(input: &Input, asked: Option<&Question>) -> Result<String, AnswerError> {
    let Some(mode) = &input.mode else { return Ok(input.text.clone()) };
    let is_of_plan = asked.is_none_or(|asked| matches!(asked.kind, RequestKind::Plan(_)));
    if !is_of_plan || permit(&input.text) != Some(Permit::Allow) {
        let plan = asked.filter(|_| is_of_plan).map(|asked| asked.id);
        return Err(AnswerError::NoPlanAllowed { plan, mode: mode.clone() });
    }
    Ok(format!("allow {mode}"))
}

/// Expands the short forms of an approval, such as `y` and `n`.
pub(crate) fn spelled_out(kind: &RequestKind, text: &str) -> String {
    let is_approval = matches!(kind, RequestKind::Permission { .. } | RequestKind::Plan(_));
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" | "allow" if is_approval => "allow".to_owned(),
        "n" | "no" if is_approval => "deny".to_owned(),
        _ => text.to_owned(),
    }
}

/// Returns the approval that `text` gives, if any. The person must have seen the question first.
pub(crate) fn approval(kind: &RequestKind, text: &str) -> Option<Approval> {
    match kind {
        RequestKind::Permission { .. } if permit(text) == Some(Permit::Allow) => Some(Approval { mode: None }),
        RequestKind::Plan(plan) => match plan.decided(text) {
            Some(PlanDecision::Approved { mode }) => Some(Approval { mode: Some(mode) }),
            _ => None,
        },
        _ => None,
    }
}

/// Checks whether a question can be answered. With `replace`, an answered question can be answered again.
pub(crate) fn answer_status(app: &App<'_>, question: RequestId, replace: bool) -> Result<AnswerStatus, AppError> {
    Ok(match app.store.questions(question, false)?.pop() {
        None => AnswerStatus::Gone,
        Some(asked) if has_expired(&asked, app.now) => AnswerStatus::Expired,
        Some(asked) if asked.answer.is_none() || replace => AnswerStatus::Open(asked),
        Some(asked) => AnswerStatus::Answered(asked),
    })
}

/// Whether a question has expired, even if the expiry is not recorded yet.
pub(crate) fn has_expired(asked: &Question, now: Timestamp) -> bool {
    let is_over = matches!(&asked.kind, RequestKind::Ask(form) if form.is_over(now));
    asked.expired.is_some() || asked.answer.is_none() && is_over
}

/// When an open question expires.
pub(crate) fn expires_at(asked: &Question, now: Timestamp) -> Option<Timestamp> {
    match &asked.kind {
        RequestKind::Ask(form) if asked.answer.is_none() => form.expires_at.filter(|at| *at > now),
        _ => None,
    }
}

/// Whether a question on a screen can no longer be answered, or has been answered in its file in the meantime.
pub(crate) fn is_outdated(app: &App<'_>, asked: &Question, replace: bool) -> Result<bool, AppError> {
    if matches!(&asked.kind, RequestKind::Ask(form) if form.answered_in().is_some()) {
        // Records the answer in the file.
        status::can_continue(app.store, asked.root)?;
    }
    Ok(!matches!(answer_status(app, asked.id, replace)?, AnswerStatus::Open(_)))
}

/// Like [`answer()`], for a person who has seen the question. The question may have been closed in the meantime.
pub(crate) fn answer_in_time(app: &App<'_>, input: &Input) -> Result<Result<Outcome, TooLate>, AppError> {
    match answer(app, input) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(AppError::Store(StoreError::AlreadyAnswered { .. })) => {
            Ok(Err(TooLate::Answered(app.store.questions(input.question, false)?.pop().map(Box::new))))
        }
        Err(error @ AppError::Store(StoreError::Delivered(_))) => Ok(Err(TooLate::Delivered(error))),
        Err(AppError::Store(StoreError::UnknownRequest(_))) => Ok(Err(TooLate::Removed)),
        Err(error @ AppError::Store(StoreError::QuestionWithdrawn(_) | StoreError::QuestionExpired { .. })) => {
            Ok(Err(TooLate::Closed(error)))
        }
        Err(error) => Err(error),
    }
}

/// Hashes everything that a person sees of a question: its text, the changes that a call would make now, and where.
pub(crate) fn digest(store: &Store, asked: &Question) -> Result<String, StoreError> {
    let shown = whole_question::body(store, asked, None)?;
    let bytes = Sha256::digest(format!("{}\n{shown}", asked.id));
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Records an answer. The agent gets it when the chain continues.
pub(crate) fn answer(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    only_people(app)?;
    let text = check(app, input)?;
    if let Some(shown) = &input.shown
        && let Some(asked) = app.store.questions(input.question, false)?.pop()
        && asked.answered.is_none()
        && digest(app.store, &asked)? != *shown
    {
        return Err(AnswerError::Changed(input.question).into());
    }
    let question = app.store.record_answer(input.question, &text, &app.asker.origin, input.replace)?;
    let running_elsewhere = Driving::is_marked(app.store.dir(), question.root)?;
    Ok(Outcome { chain: question.root, text, running_elsewhere })
}

#[cfg(test)]
mod tests;
