//! Answers a question, or allows or denies a tool call or a plan.

use crate::app::App;
use crate::app::error::{AnswerError, AppError};
use crate::core::id::{FrameId, IdPrefix, RequestId};
use crate::core::requests::answer;
use crate::core::requests::permit::{Permit, permit};
use crate::core::requests::request::RequestKind;
use crate::runtime::requests::answerer;
use crate::store::{Driving, Question, Scope, Target};

/// An answer as somebody gives it.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) question: RequestId,
    pub(crate) text: String,
    /// Take the text as it is, even if it looks like the number of an option.
    pub(crate) is_verbatim: bool,
    /// For a plan that is allowed: the permission mode to continue in.
    pub(crate) mode: Option<String>,
    /// Replace an earlier answer.
    pub(crate) replace: bool,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) chain: FrameId,
    /// Whether a process runs the chain, which then continues by itself.
    pub(crate) running_elsewhere: bool,
}

/// Each answer is kept several times, and becomes a part of a conversation.
const LARGEST: usize = 8 << 20;

/// Refuses an asker that an agent may have started.
pub(crate) fn only_people(app: &App<'_>) -> Result<(), AppError> {
    for session in &app.asker.sessions {
        if let Some(agent) = answerer::agent_of(app.store, *session)? {
            return Err(AnswerError::InSessionOf(agent).into());
        }
    }
    match &app.asker.runner {
        Some(runner) if !answerer::is_of_notification(app.store, &runner.notifications)? => {
            Err(AnswerError::BelowRunner(runner.process).into())
        }
        _ => Ok(()),
    }
}

/// The question that an id names: its own, or that of a chain or agent that waits for one answer.
pub(crate) fn question_named(app: &App<'_>, id: &IdPrefix) -> Result<RequestId, AppError> {
    let agent = match app.store.lookup(Scope::QuestionsFirst, id)? {
        // What is not a question is refused when it is answered.
        Target::Request(request) => return Ok(request),
        Target::Frame(agent) => agent,
    };
    let open = app.store.questions(Some(agent), true)?;
    match open.as_slice() {
        [only] => Ok(only.id),
        [] => Err(AnswerError::NoOpenQuestion(agent).into()),
        _ => Err(AnswerError::SeveralOpenQuestions { agent, open }.into()),
    }
}

/// The text that [`answer()`] would record. The store refuses questions that cannot be answered.
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

/// Records an answer. Its agent gets it when the chain continues.
pub(crate) fn answer(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    let text = check(app, input)?;
    let question = app.store.record_answer(input.question, &text, &app.asker.origin, input.replace)?;
    let running_elsewhere = Driving::is_marked(app.store.dir(), question.root)?;
    Ok(Outcome { chain: question.root, running_elsewhere })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Asker;
    use crate::app::testing;
    use crate::claude::processes::marks::Runner;
    use crate::core::id::SessionId;
    use crate::core::requests::answer::NoAnswer;
    use crate::store;
    use crate::store::{Caller, Store, StoreError};

    fn ask(store: &Store, caller: Caller, question: &str) -> RequestId {
        store.request(caller, None, &[store::testing::ask(question)]).unwrap().remove(0)
    }

    fn input(question: RequestId, text: &str) -> Input {
        Input { question, text: text.into(), is_verbatim: false, mode: None, replace: false }
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
        let id: IdPrefix = caller.frame.to_string().parse().unwrap();
        let none = question_named(&app, &id).unwrap_err();
        assert!(matches!(none, AppError::Answer(AnswerError::NoOpenQuestion(_))), "{none}");
        let question = ask(&store, caller, "When?");
        assert_eq!(question_named(&app, &id).unwrap(), question);
        assert_eq!(question_named(&app, &question.to_string().parse().unwrap()).unwrap(), question);
        ask(&store, caller, "Where?");
        let several = question_named(&app, &id).unwrap_err();
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
        let below = check(Vec::new(), Some(Runner { process: 7, notifications: Vec::new() })).unwrap_err();
        assert!(matches!(below, AppError::Answer(AnswerError::BelowRunner(7))), "{below}");
    }
}
