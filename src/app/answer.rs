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
use crate::runtime::requests::agent_lookup;
use crate::runtime::run::status;
use crate::store::{Driving, Question, Scope, Store, StoreError, Target};

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
    match &app.asker.runner {
        Some(runner) if !agent_lookup::is_of_notification(app.store, &runner.notifications)? => {
            Err(AnswerError::BelowRunner(runner.process).into())
        }
        _ => Ok(()),
    }
}

/// Resolves an id, a name or `last` to a question, or to a chain or agent with all of its questions.
pub(crate) fn named(app: &App<'_>, id: &str) -> Result<Target, AppError> {
    Ok(app.store.lookup(Scope::QuestionsFirst, &lookup::id_of(app, id)?)?)
}

/// Finds the question that an id names. The id of a chain or agent names its only open question or, with `replace` and if none is
/// open, the one that was answered last.
pub(crate) fn question_named(app: &App<'_>, id: &str, replace: bool) -> Result<RequestId, AppError> {
    let agent = match named(app, id)? {
        // A request that is not a question is refused when it is answered.
        Target::Request(request) => return Ok(request),
        Target::Frame(agent) => agent,
    };
    let open = app.store.questions(Some(agent), true)?;
    match open.as_slice() {
        [only] => Ok(only.id),
        [] if replace => {
            let answered = app.store.questions(Some(agent), false)?.into_iter().filter(|asked| asked.answer.is_some());
            let last = answered.max_by_key(|asked| asked.answered);
            last.map(|asked| asked.id).ok_or_else(|| AnswerError::NoAnswer(agent).into())
        }
        [] => Err(AnswerError::NoOpenQuestion(agent).into()),
        _ => Err(AnswerError::SeveralOpenQuestions { agent, open }.into()),
    }
}

/// Returns the text that [`answer()`] would record. The store refuses questions that cannot be answered.
pub(crate) fn check(app: &App<'_>, input: &Input) -> Result<String, AppError> {
    let asked = app.store.questions(input.question, false)?.pop();
    let text = with_mode(input, asked.as_ref())?;
    let Some(asked) = asked.filter(|asked| asked.answered.is_none() || input.replace) else { return Ok(text) };
    let read = if input.is_verbatim { answer::verbatim } else { answer::from_text };
    let checked = read(&asked.kind, &text).map_err(|error| {
        let (question, kind) = (asked.id, Box::new(asked.kind.clone()));
        AnswerError::NotAnAnswer { question, kind, text, error }
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::app::chains::stop;
    use crate::app::{Asker, testing};
    use crate::claude::processes::marks::Runner;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::SessionId;
    use crate::core::requests::answer::NoAnswer;
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::core::steering::stop_order::StopKind;
    use crate::store::{self, Caller, Store};

    fn ask(store: &Store, caller: Caller, question: &str) -> RequestId {
        store.request(caller, None, &[store::testing::ask(question)]).unwrap().remove(0)
    }

    fn input(question: RequestId, text: &str) -> Input {
        Input { question, text: text.into(), is_verbatim: false, mode: None, replace: false, shown: None }
    }

    #[test]
    fn an_answer_is_checked_and_recorded_with_who_gave_it() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let question = ask(&store, caller, "When?");
        let mut asker = Asker::default();
        asker.origin.process = 42;
        let app = App { asker, ..testing::app(&store) };
        let empty = answer(&app, &input(question, " ")).unwrap_err();
        assert!(matches!(empty, AppError::Answer(AnswerError::NotAnAnswer { error: NoAnswer::Empty, .. })), "{empty}");
        let large = answer(&app, &input(question, &"x".repeat(LARGEST + 1))).unwrap_err();
        assert!(matches!(large, AppError::Answer(AnswerError::TooLarge(_))), "{large}");
        let moded = Input { mode: Some("auto".into()), ..input(question, "allow") };
        let moded = answer(&app, &moded).unwrap_err();
        assert!(matches!(moded, AppError::Answer(AnswerError::NoPlanAllowed { plan: None, .. })), "{moded}");
        assert_eq!(store.questions(question, true).unwrap().len(), 1, "nothing was recorded");

        let outcome = answer(&app, &input(question, "Jan 1st")).unwrap();
        assert_eq!((outcome.chain, outcome.running_elsewhere), (caller.frame, false));
        let recorded = store.questions(question, false).unwrap().pop().unwrap();
        assert_eq!(recorded.answer.as_deref(), Some("Jan 1st"));
        assert_eq!(recorded.origin.unwrap().process, 42);
        let second = answer(&app, &input(question, "Feb 2nd")).unwrap_err();
        assert!(matches!(second, AppError::Store(StoreError::AlreadyAnswered { .. })), "{second}");
        answer(&app, &Input { replace: true, ..input(question, "Feb 2nd") }).unwrap();
    }

    #[test]
    fn an_agent_names_its_only_open_question() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let app = testing::app(&store);
        let id = caller.frame.to_string();
        let none = question_named(&app, &id, false).unwrap_err();
        assert!(matches!(none, AppError::Answer(AnswerError::NoOpenQuestion(_))), "{none}");
        let question = ask(&store, caller, "When?");
        assert_eq!(question_named(&app, &id, false).unwrap(), question);
        assert_eq!(question_named(&app, &question.to_string(), false).unwrap(), question);
        answer(&app, &input(question, "Jan 1st")).unwrap();
        assert_eq!(question_named(&app, &id, true).unwrap(), question);
        ask(&store, caller, "Where?");
        ask(&store, caller, "Why?");
        let several = question_named(&app, &id, false).unwrap_err();
        assert!(matches!(several, AppError::Answer(AnswerError::SeveralOpenQuestions { .. })), "{several}");
    }

    #[test]
    fn what_an_agent_may_have_started_is_refused() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let session = store.frame(caller.frame).unwrap().unwrap().session;
        let check = |sessions: Vec<SessionId>, runner: Option<Runner>| {
            only_people(&App { asker: Asker { sessions, runner, ..Asker::default() }, ..testing::app(&store) })
        };
        check(vec![SessionId::random()], None).unwrap();
        let within = check(vec![session], None).unwrap_err();
        assert!(
            matches!(within, AppError::Answer(AnswerError::InSessionOf(agent)) if agent == caller.frame),
            "{within}"
        );
        let agent = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..testing::app(&store) };
        let itself = answer(&agent, &input(RequestId::random(), "yes")).unwrap_err();
        assert!(matches!(itself, AppError::OnlyPeople(_)), "{itself}");
        let below = check(Vec::new(), Some(Runner { process: 7, notifications: Vec::new() })).unwrap_err();
        assert!(matches!(below, AppError::Answer(AnswerError::BelowRunner(7))), "{below}");
    }

    fn approval_kind() -> RequestKind {
        RequestKind::Permission { tool: "Bash".into(), input: json!({ "command": "ls" }), reason: None, place: None }
    }

    fn plan_kind() -> RequestKind {
        let modes = vec!["acceptEdits".into(), "default".into()];
        RequestKind::Plan(ProposedPlan { text: None, file: None, modes })
    }

    #[test]
    fn a_letter_answers_only_an_approval() {
        let ask = store::testing::ask("When?");
        for (kind, text, meant) in [
            (&approval_kind(), " Y", "allow"),
            (&plan_kind(), "yes", "allow"),
            (&approval_kind(), "Allow", "allow"),
            (&approval_kind(), "n", "deny"),
            (&plan_kind(), "No ", "deny"),
            (&plan_kind(), " never", " never"),
            (&ask, "y", "y"),
            (&ask, "n", "n"),
        ] {
            assert_eq!(spelled_out(kind, text), meant, "{text}");
        }
    }

    #[test]
    fn what_lets_an_agent_act_is_an_approval() {
        let in_mode = |mode: Option<&str>| Some(Approval { mode: mode.map(str::to_owned) });
        assert_eq!(approval(&approval_kind(), "allow"), in_mode(None));
        assert_eq!(approval(&approval_kind(), "deny it"), None);
        assert_eq!(approval(&plan_kind(), "allow"), in_mode(Some("acceptEdits")));
        assert_eq!(approval(&plan_kind(), "allow default"), in_mode(Some("default")));
        assert_eq!(approval(&plan_kind(), "deny it"), None);
        assert_eq!(approval(&store::testing::ask("When?"), "allow"), None);
    }

    #[test]
    fn an_answer_that_comes_too_late_is_told_apart() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let app = testing::app(&store);
        let question = ask(&store, caller, "When?");
        assert!(matches!(answer_status(&app, question, false).unwrap(), AnswerStatus::Open(_)));
        answer_in_time(&app, &input(question, "Jan 1st")).unwrap().unwrap();
        assert!(matches!(answer_status(&app, question, false).unwrap(), AnswerStatus::Answered(_)));
        assert!(matches!(answer_status(&app, question, true).unwrap(), AnswerStatus::Open(_)));
        let late = |input: &Input| answer_in_time(&app, input).unwrap().unwrap_err();
        let second = late(&input(question, "Feb 2nd"));
        assert!(matches!(&second, TooLate::Answered(Some(asked)) if asked.answer.as_deref() == Some("Jan 1st")));
        store.end(caller, &Ending::Suspended);
        let next = store.start(caller.frame);
        store.end(next, &store::testing::reply("done"));
        let replaced = late(&Input { replace: true, ..input(question, "Feb 2nd") });
        assert!(matches!(replaced, TooLate::Delivered(_)), "{replaced:?}");
        let unknown = RequestId::random();
        assert!(matches!(answer_status(&app, unknown, false).unwrap(), AnswerStatus::Gone));
        let removed = late(&input(unknown, "Jan 1st"));
        assert!(matches!(removed, TooLate::Removed), "{removed:?}");
        let (agent, withdrawn) = store.asking("Where?");
        let stop = |id: FrameId| {
            let (id, kind) = (id.to_string(), StopKind::Stop);
            stop::stop(&app, stop::Input { id, kind, now: false, reason: None, waits: None })
        };
        stop(agent).unwrap();
        let closed = late(&input(withdrawn, "here"));
        assert!(matches!(closed, TooLate::Closed(_)), "{closed:?}");
        answer_in_time(&app, &input(ask(&store, store.start(store.root()), "Who?"), " ")).unwrap_err();
    }
}
