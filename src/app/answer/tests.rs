use serde_json::json;

use super::*;
use crate::app::chains::stop;
use crate::app::{Asker, testing};
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
    assert!(matches!(none, AppError::Answer(AnswerError::NoOpenQuestion { .. })), "{none}");
    let question = ask(&store, caller, "When?");
    assert_eq!(question_named(&app, &id, false).unwrap(), question);
    assert_eq!(question_named(&app, &question.to_string(), false).unwrap(), question);
    answer(&app, &input(question, "Jan 1st")).unwrap();
    assert_eq!(question_named(&app, &id, true).unwrap(), question);
    let AppError::Answer(AnswerError::NoOpenQuestion { replaceable, .. }) =
        question_named(&app, &id, false).unwrap_err()
    else {
        panic!("it is answered")
    };
    assert_eq!(replaceable.iter().map(|asked| asked.id).collect::<Vec<_>>(), [question]);
    let other = ask(&store, caller, "Where?");
    assert_eq!(question_named(&app, &id, true).unwrap(), question, "beside an open question");
    ask(&store, caller, "Why?");
    let several = question_named(&app, &id, false).unwrap_err();
    assert!(matches!(several, AppError::Answer(AnswerError::SeveralOpenQuestions { .. })), "{several}");
    answer(&app, &input(other, "here")).unwrap();
    let several = question_named(&app, &id, true).unwrap_err();
    assert!(matches!(several, AppError::Answer(AnswerError::SeveralAnswers { .. })), "{several}");
}

#[test]
fn what_an_agent_may_have_started_is_refused() {
    let (_temp, store) = store::testing::store();
    let caller = store.start(store.root());
    let session = store.frame(caller.frame).unwrap().unwrap().session;
    let check = |sessions: Vec<SessionId>| {
        only_people(&App { asker: Asker { sessions, ..Asker::default() }, ..testing::app(&store) })
    };
    check(vec![SessionId::random()]).unwrap();
    let within = check(vec![session]).unwrap_err();
    assert!(matches!(within, AppError::Answer(AnswerError::InSessionOf(agent)) if agent == caller.frame), "{within}");
    let agent = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..testing::app(&store) };
    let itself = answer(&agent, &input(RequestId::random(), "yes")).unwrap_err();
    assert!(matches!(itself, AppError::OnlyPeople(_)), "{itself}");
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
