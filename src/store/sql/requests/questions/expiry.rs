//! Questions that expired without an answer.

use jiff::Timestamp;

use crate::core::events::log_entry::LogEntry;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::requests::request_state::RequestEvent;
use crate::store::sql::database::codec::{self, Id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::{events, requests};

/// Records that an open question has expired without an answer, if it has expired at `now`.
pub(crate) fn expire(connection: &Connection, request: &Request, now: Timestamp) -> TxResult<()> {
    let RequestKind::Ask(form) = &request.kind else { return Ok(()) };
    if !form.is_over(now) {
        return Ok(());
    }
    let now = codec::now();
    // The text for its agent. It has no origin, and its request says that it is not an answer.
    connection.run(
        "INSERT INTO answers (question, answered, answer) VALUES (?1, ?2, ?3)",
        (Id(request.id), now, form.unanswered()),
    )?;
    requests::advance(connection, now, request, RequestEvent::Expire)?;
    let (expires_at, default) = (form.expires_at, form.default.clone());
    events::append(connection, now, request.frame, &LogEntry::Expired { request: request.id, expires_at, default })
}

#[cfg(test)]
mod tests {
    use crate::store::housekeeping::database_facts::FactsOf;
    use std::sync::Barrier;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::{FrameId, RequestId};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::RequestResult;
    use crate::core::steering::origin::Origin;
    use crate::store::error::StoreError;
    use crate::store::handle::Store;
    use crate::store::records::Seen;
    use crate::store::testing::{refused, reply, store};

    /// A question that expired long ago, which no process has noticed.
    fn expiring(store: &Store, default: Option<&str>) -> (FrameId, RequestId) {
        let caller = store.start(store.root());
        let form = Form {
            default: default.map(str::to_owned),
            expires_at: Some(Timestamp::UNIX_EPOCH),
            ..Form::text("When?")
        };
        let question = store.request(caller, None, &[RequestKind::Ask(form)]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        (caller.frame, question)
    }

    #[test]
    fn an_expired_question_is_not_answered() {
        let (_temp, store) = store();
        let nobody = "no answer until 1970-01-01T00:00:00Z";
        let unanswered = RequestResult::Unanswered { said: format!("the question has expired: {nobody}"), seconds: 0 };
        let default = RequestResult::Default(format!("never\n\n(This is the default: {nobody}.)"));
        for (with_default, result) in [(None, unanswered), (Some("never"), default)] {
            let (frame, id) = expiring(&store, with_default);
            for _ in 0..2 {
                store.looked(id, &Seen::Time(Timestamp::now())).unwrap();
            }
            let question = store.questions(id, false).unwrap().pop().unwrap();
            assert_eq!((question.answered, question.answer, question.expired.is_some()), (None, None, true));
            for replace in [false, true] {
                let late = store.record_answer(id, "now", &Origin::default(), replace);
                assert!(matches!(late, Err(StoreError::QuestionExpired { .. })), "{late:?}");
            }
            assert!(store.questions(Some(frame), true).unwrap().is_empty());
            assert_eq!(store.result_of(id).unwrap(), Some(result.clone()));
            // If an attempt is not kept, its results are given again.
            let caller = store.start(frame);
            store.end(caller, &refused("a bad flag"));
            let given = store.deliveries(frame).unwrap();
            assert_eq!(given.iter().map(|it| &it.result).collect::<Vec<_>>(), [&result]);
            store.end(store.start(frame), &reply("done"));
            assert!(store.deliveries(frame).unwrap().is_empty());
            assert!(store.questions(id, false).unwrap().pop().unwrap().expired.is_some());
            let defaults = store.events(frame, 0).unwrap().into_iter().filter_map(|event| match event.entry {
                LogEntry::Expired { default, .. } => Some(default),
                _ => None,
            });
            assert_eq!(defaults.collect::<Vec<_>>(), [with_default.map(str::to_owned)]);
        }
        assert_eq!(store.housekeeping().facts(FactsOf::All).unwrap().findings, []);
    }

    #[test]
    fn an_answer_that_comes_before_the_expiry_is_noticed_counts() {
        let (_temp, store) = store();
        let (_, id) = expiring(&store, Some("never"));
        store.answer(id, "Jan 1st").unwrap();
        store.looked(id, &Seen::Time(Timestamp::now())).unwrap();
        assert_eq!(store.result_of(id).unwrap(), Some(RequestResult::Text("Jan 1st".into())));
        assert_eq!(store.questions(id, false).unwrap().pop().unwrap().expired, None);
    }

    #[test]
    fn of_an_answer_and_the_expiry_one_wins() {
        let (_temp, store) = store();
        for _ in 0..8 {
            let (frame, id) = expiring(&store, None);
            let (barrier, dir) = (&Barrier::new(2), store.dir().path());
            let answered = std::thread::scope(|scope| {
                let expires = scope.spawn(move || {
                    let store = Store::open(dir).unwrap();
                    barrier.wait();
                    store.looked(id, &Seen::Time(Timestamp::now())).unwrap();
                });
                let store = Store::open(dir).unwrap();
                barrier.wait();
                let answered = store.answer(id, "now").is_ok();
                expires.join().unwrap();
                answered
            });
            let question = store.questions(id, false).unwrap().pop().unwrap();
            assert_eq!((question.answered.is_some(), question.expired.is_some()), (answered, !answered));
            let log = store.events(frame, 0).unwrap();
            let is_end = |entry: &LogEntry| matches!(entry, LogEntry::Answered { .. } | LogEntry::Expired { .. });
            assert_eq!(log.iter().filter(|event| is_end(&event.entry)).count(), 1);
        }
    }
}
