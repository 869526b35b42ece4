//! Questions for people. Each gets one answer, which can be replaced until it is delivered.

pub(crate) mod asked;
pub(super) mod expiry;
pub(super) mod flood;

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::requests::request_state::RequestEvent;
use crate::core::steering::origin::Origin;
use crate::store::error::StoreError;
use crate::store::records::Question;
use crate::store::sql::database::codec::{self, At, Id, id};
use crate::store::sql::engine::{Connection, Fault, TxResult};
use crate::store::sql::requests::questions::asked::load;
use crate::store::sql::tables::{events, requests};

pub(crate) fn record_answer(
    connection: &Connection,
    id: RequestId,
    text: &str,
    origin: &Origin,
    replace: bool,
) -> TxResult<Question> {
    let question = load(connection, id)?.ok_or_else(|| why_not(connection, id))?;
    if let Some(expired) = question.expired {
        return Err(StoreError::QuestionExpired { question: id, expired }.into());
    }
    let now = codec::now();
    if replace {
        replace_answer(connection, now, &question, text, origin)?;
    } else {
        first_answer(connection, now, &question, text, origin)?;
    }
    Ok(question.with(now, text, origin))
}

fn first_answer(connection: &Connection, now: At, question: &Question, text: &str, origin: &Origin) -> TxResult<()> {
    if let (Some(answered), Some(answer)) = (question.answered, question.answer.clone()) {
        let request = requests::load(connection, question.id)?.ok_or(StoreError::UnknownRequest(question.id))?;
        let replaceable = request.state.after(RequestEvent::Replace).is_ok();
        return Err(StoreError::AlreadyAnswered { question: question.id, answered, answer, replaceable }.into());
    }
    connection.run(
        "INSERT INTO answers (question, answered, answer, origin) VALUES (?1, ?2, ?3, ?4)",
        (Id(question.id), now, text, codec::json(origin, &[])?),
    )?;
    advance(connection, now, question.id, RequestEvent::Resolve)?;
    let entry = LogEntry::Answered { request: question.id, answer: text.to_owned(), by: origin.clone() };
    events::append(connection, now, question.frame, &entry)
}

fn replace_answer(connection: &Connection, now: At, question: &Question, text: &str, origin: &Origin) -> TxResult<()> {
    let Some(replaced) = question.answer.clone() else {
        return Err(StoreError::NotAnswered(question.id).into());
    };
    match advance(connection, now, question.id, RequestEvent::Replace) {
        Err(Fault::Known(StoreError::IllegalRequest(_))) => return Err(StoreError::Delivered(question.id).into()),
        advanced => advanced?,
    }
    connection.run(
        "UPDATE answers SET answered = ?2, answer = ?3, origin = ?4 WHERE question = ?1",
        (Id(question.id), now, text, codec::json(origin, &[])?),
    )?;
    let (answer, by) = (text.to_owned(), origin.clone());
    let entry = LogEntry::AnswerReplaced { request: question.id, answer, replaced, by };
    events::append(connection, now, question.frame, &entry)
}

impl Question {
    fn with(self, answered: At, answer: &str, origin: &Origin) -> Self {
        let (answer, origin) = (Some(answer.to_owned()), Some(origin.clone()));
        Self { answered: Some(answered.0), answer, origin, ..self }
    }
}

fn advance(connection: &Connection, now: At, id: RequestId, event: RequestEvent) -> TxResult<()> {
    let request = requests::load(connection, id)?.ok_or(StoreError::UnknownRequest(id))?;
    requests::advance(connection, now, &request, event)?;
    Ok(())
}

fn why_not(connection: &Connection, id: RequestId) -> Fault {
    let sql = "SELECT kind FROM requests WHERE id = ?1";
    let kind = connection.read_first(sql, [Id(id)], |row| row.get::<_, String>(0));
    match kind {
        Ok(None) => StoreError::UnknownRequest(id).into(),
        Ok(Some(kind)) if kind == "ask" => StoreError::QuestionWithdrawn(id).into(),
        Ok(Some(_)) => StoreError::NotAQuestion(id).into(),
        Err(fault) => fault,
    }
}

/// Updates an open question to the form that its file has now.
pub(super) fn reword(connection: &Connection, question: &Request, form: &Form) -> TxResult<()> {
    let kind = RequestKind::Ask(form.clone());
    connection.run("UPDATE requests SET detail = ?2 WHERE id = ?1", (Id(question.id), codec::json(&kind, &[])?))?;
    let entry = LogEntry::Reworded { request: question.id, detail: Box::new(kind) };
    events::append(connection, codec::now(), question.frame, &entry)
}

/// Records that the files of a posted question say that it is closed, or never will.
pub(super) fn filed(connection: &Connection, question: &Request) -> TxResult<()> {
    connection.run("UPDATE requests SET filed = 1 WHERE id = ?1", [Id(question.id)])
}

/// The question that this attempt has already posted under the same id, if any.
pub(super) fn recorded(connection: &Connection, attempt: AttemptId, form: &Form) -> TxResult<Option<RequestId>> {
    let Some(posted) = &form.posted else { return Ok(None) };
    let sql = "SELECT id FROM requests WHERE attempt = ?1 AND posted = ?2";
    connection.read_first(sql, (Id(attempt), &posted.id), |row| id(row, "id"))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::{AttemptId, FrameId};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::question_form::answer_file::Posted;
    use crate::core::requests::request::{RequestKind, RequestResult};
    use crate::store::handle::Store;
    use crate::store::records::{Attempts, Questions, Seen};
    use crate::store::testing::{ask, attempt, refused, reply, store};

    #[test]
    fn a_question_gets_one_answer() {
        let (_temp, store) = store();
        let (frame, id) = store.asking("When?");
        let open = store.questions(None, true).unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].id, open[0].frame, open[0].root), (id, frame, frame));
        assert_eq!((open[0].question.as_str(), open[0].title.as_str()), ("When?", "a task"));
        let answered = store.answer(id, "Jan 1st\n").unwrap();
        assert_eq!(store.questions(id, false).unwrap(), [answered]);
        let error = store.answer(id, "Jan 2nd").unwrap_err();
        let given =
            matches!(&error, StoreError::AlreadyAnswered { answer, replaceable: true, .. } if answer == "Jan 1st\n");
        assert!(given, "{error}");
        assert!(store.questions(None, true).unwrap().is_empty());
        assert_eq!(store.questions(None, false).unwrap().len(), 1);
    }

    #[test]
    fn an_answer_is_replaced_until_an_attempt_has_it() {
        let (_temp, store) = store();
        let (frame, id) = store.asking("When?");
        let ann = Origin { user: Some("ann".into()), terminal: Some("/dev/pts/1".into()), ..Origin::default() };
        let unanswered = store.record_answer(id, "x", &ann, true);
        assert!(matches!(unanswered, Err(StoreError::NotAnswered(question)) if question == id), "{unanswered:?}");
        store.record_answer(id, "Jan 1st", &ann, false).unwrap();

        // The answer is replaced after a runner has read it.
        let read = |answer: &str| attempt(vec![(id, RequestResult::Text(answer.to_owned()))]);
        let bob = Origin { user: Some("bob".into()), ..Origin::default() };
        let replaced = store.record_answer(id, "Feb 2nd", &bob, true).unwrap();
        assert_eq!(store.questions(id, false).unwrap().pop().as_ref(), Some(&replaced));
        let by = replaced.origin.as_ref().and_then(|origin| origin.user.as_deref());
        assert_eq!((replaced.answer.as_deref(), by), (Some("Feb 2nd"), Some("bob")));
        let late = store.begin(frame, &read("Jan 1st"));
        assert!(matches!(late, Err(StoreError::ResultChanged(question)) if question == id), "{late:?}");
        assert_eq!(store.attempts(Attempts::RunningOf(frame)).unwrap(), []);

        let new = read("Feb 2nd");
        store.begin(frame, &new).unwrap();
        let late = store.record_answer(id, "Mar 3rd", &bob, true);
        assert!(matches!(late, Err(StoreError::Delivered(question)) if question == id), "{late:?}");
        let again = store.record_answer(id, "Mar 3rd", &bob, false);
        assert!(matches!(again, Err(StoreError::AlreadyAnswered { replaceable: false, .. })), "{again:?}");
        // If no session is kept, the result is not delivered.
        let caller = crate::store::Caller { frame, attempt: new.id };
        store.end(caller, &refused("a bad flag"));
        store.record_answer(id, "Mar 3rd", &ann, true).unwrap();
        store.end(store.start(frame), &reply("done"));
        assert!(matches!(store.record_answer(id, "Apr 4th", &ann, true), Err(StoreError::Delivered(_))));
        let log = store.events(frame, 0).unwrap();
        let origins = log.iter().filter_map(|event| event.entry.origin());
        let users: Vec<_> = origins.map(|origin| origin.user.as_deref().unwrap_or_default()).collect();
        assert_eq!(users, ["ann", "bob", "ann"]);
    }

    #[test]
    fn a_posted_question_is_to_be_filed_once_when_it_is_over() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let posted = Some(Posted { dir: "/q".into(), id: "q1".into(), trouble: None });
        let form = Form { posted, ..Form::text("When?") };
        let posted = store.request(caller, None, &[RequestKind::Ask(form)]).unwrap().remove(0);
        let other = store.request(caller, None, &[ask("Where?")]).unwrap().remove(0);
        store.end(caller, &Ending::Suspended);
        let unfiled = |of: Option<FrameId>| {
            let found = store.questions(Questions::Unfiled(of), false).unwrap();
            found.iter().map(|found| found.id).collect::<Vec<_>>()
        };
        store.looked(posted, &Seen::Filed).unwrap();
        assert_eq!(unfiled(None), [], "it is open");
        store.answer(other, "here").unwrap();
        store.answer(posted, "now").unwrap();
        for of in [None, Some(caller.frame)] {
            assert_eq!(unfiled(of), [posted]);
        }
        assert_eq!(unfiled(Some(store.root())), []);
        let again = store.start(caller.frame);
        assert_eq!(unfiled(None), [], "its agent runs, and may be asking again");
        store.end(again, &reply("done"));
        assert_eq!(unfiled(None), [posted], "it is delivered, and still not filed");
        store.looked(posted, &Seen::Filed).unwrap();
        assert_eq!(unfiled(None), []);
    }

    #[test]
    fn of_many_answers_one_wins() {
        let (_temp, store) = store();
        let (_, id) = store.asking("When?");
        let barrier = Barrier::new(8);
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let (barrier, dir) = (&barrier, store.dir().path());
                    scope.spawn(move || {
                        let store = Store::open(dir).unwrap();
                        barrier.wait();
                        match store.answer(id, &n.to_string()) {
                            Ok(_) => true,
                            Err(StoreError::AlreadyAnswered { .. }) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
        let frame = store.questions(id, false).unwrap().pop().unwrap().frame;
        let last = store.events(frame, 0).unwrap().pop().unwrap();
        assert!(matches!(last.entry, LogEntry::Answered { .. }), "{last:?}");
    }

    #[test]
    fn only_questions_are_answered() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (spawn, child) = store.request_child(caller, None, &crate::store::testing::new("child"), "child").unwrap();
        assert!(matches!(store.answer(spawn, "x"), Err(StoreError::NotAQuestion(id)) if id == spawn));
        let unknown = RequestId::random();
        assert!(matches!(store.answer(unknown, "x"), Err(StoreError::UnknownRequest(id)) if id == unknown));
        store.end(caller, &Ending::Suspended);
        let below = store.start(child);
        let question = store.request(below, None, &[ask("When?")]).unwrap()[0];
        store.end(below, &refused("no"));
        assert!(matches!(store.answer(question, "x"), Err(StoreError::QuestionWithdrawn(id)) if id == question));
        assert!(store.questions(None, false).unwrap().is_empty());
    }

    #[test]
    fn a_forgotten_process_cannot_ask() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let other = store.start(store.root());
        let strangers = [
            caller,
            crate::store::Caller { frame: other.frame, attempt: AttemptId::random() },
            crate::store::Caller { frame: other.frame, attempt: caller.attempt },
        ];
        for caller in strangers {
            let error = store.request(caller, None, &[ask("When?")]).unwrap_err();
            assert!(matches!(error, StoreError::StaleCaller { .. }), "{error}");
        }
    }
}
