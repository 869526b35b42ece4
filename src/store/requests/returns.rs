//! Results that an agent is given while it works: the one that its resumed call has still to return, and those that it
//! looks for itself.
//!
//! The hook returns it, as a rule. Where hooks were switched off meanwhile, or a user's hook has rewritten the call, the
//! call runs as the program that it names, which then must not ask a second time.

use rusqlite::OptionalExtension;

use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::request::Wish;
use crate::failpoint::Step;
use crate::store::chains::lookup::Target;
use crate::store::database::codec::{Id, from_json, id};
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::requests::request::{self, Caller};

impl Store {
    /// The request whose result the resumed call of a running attempt has still to return.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn to_return(&self, caller: Caller) -> Result<Option<(RequestId, Wish)>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT r.id, r.wish FROM attempts AS a JOIN requests AS r ON r.id = a.to_return
                 WHERE a.id = ?1 AND a.frame = ?2 AND a.ended IS NULL",
            )?;
            let found = |row: &rusqlite::Row<'_>| Ok((id(row, "id")?, from_json(row, "wish")?));
            Ok(statement.query_row((Id(caller.attempt), Id(caller.frame)), found).optional()?)
        })
    }

    /// Records that the agent of a running attempt has read what came of a request that it made in that attempt.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn read_by_agent(&self, caller: Caller, made: Target) -> Result<()> {
        let (request, child) = match made {
            Target::Request(request) => (Some(Id(request)), None),
            Target::Frame(child) => (None, Some(Id(child))),
        };
        self.write(Step::Returned, |connection| {
            connection
                .prepare_cached(
                    "UPDATE requests SET carried_by = ?1 WHERE attempt = ?1 AND (id = ?2 OR child = ?3)
                     AND delivered IS NULL AND withdrawn IS NULL
                     AND EXISTS (SELECT 1 FROM attempts WHERE id = ?1 AND ended IS NULL)",
                )?
                .execute((Id(caller.attempt), request, child))?;
            Ok(())
        })
    }

    /// The requests of an attempt whose results its agent has read in the same attempt.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn read_in(&self, attempt: AttemptId) -> Result<Vec<RequestId>> {
        self.query(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT id FROM requests WHERE attempt = ?1 AND carried_by = ?1")?;
            let read = statement.query_map([Id(attempt)], |row| id(row, "id"))?;
            Ok(read.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Records that the resumed call of an attempt returns its result: the same request, made again, is a new one.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn returned(&self, caller: Caller) -> Result<()> {
        self.write(Step::Returned, |connection| {
            connection
                .prepare_cached("UPDATE attempts SET to_return = NULL WHERE id = ?1")?
                .execute([Id(caller.attempt)])?;
            Ok(())
        })
    }
}

impl Store {
    /// Records that the resumed call of an attempt has returned these results. What the agent sees of them is for the
    /// hooks of the user to say.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`](crate::store::StoreError::StaleCaller), or a database that cannot be written.
    pub fn shown(&self, caller: Caller, shown: &[RequestId]) -> Result<()> {
        self.write(Step::Returned, |connection| {
            request::check(connection, caller)?;
            let mut statement =
                connection.prepare_cached("UPDATE requests SET shown_in = ?3 WHERE id = ?1 AND frame = ?2")?;
            for request in shown {
                statement.execute((Id(*request), Id(caller.frame), Id(caller.attempt)))?;
            }
            Ok(())
        })
    }

    /// The requests whose results a resumed call of this attempt has returned.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn shown_in(&self, attempt: AttemptId) -> Result<Vec<RequestId>> {
        self.query(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT id FROM requests WHERE shown_in = ?1 ORDER BY seq")?;
            let shown = statement.query_map([Id(attempt)], |row| id(row, "id"))?;
            Ok(shown.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::attempts::attempt::NewAttempt;
    use crate::store::testing::{ask, attempt, new, reply, store};

    #[test]
    fn a_result_is_returned_once_and_by_the_running_attempt_only() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        let new = NewAttempt { to_return: Some(question), ..attempt(vec![question]) };
        store.begin(frame, &new).unwrap();
        let caller = Caller { frame, attempt: new.id };
        assert_eq!(store.to_return(caller).unwrap(), Some((question, ask("When?"))));
        assert_eq!(store.to_return(Caller { frame: store.root(), ..caller }).unwrap(), None);
        store.returned(caller).unwrap();
        assert_eq!(store.to_return(caller).unwrap(), None);

        store.end(caller, &reply("SGN_PEND_ONGOING"));
        let again = NewAttempt { to_return: Some(question), ..attempt(vec![question]) };
        store.begin(frame, &again).unwrap();
        let caller = Caller { frame, attempt: again.id };
        assert!(store.to_return(caller).unwrap().is_some());
        store.end(caller, &reply("over"));
        assert_eq!(store.to_return(caller).unwrap(), None);
    }

    #[test]
    fn what_the_agent_has_read_itself_is_given_again_only_if_its_session_is_not_kept() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let question = store.request(caller, None, &ask("When?")).unwrap();
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.answer(question, "Jan 1st").unwrap();
        for made in [Target::Request(question), Target::Frame(child)] {
            assert!(store.has_undelivered_requests(caller.attempt).unwrap());
            store.read_by_agent(caller, made).unwrap();
        }
        assert!(!store.has_undelivered_requests(caller.attempt).unwrap());
        assert_eq!(store.read_in(caller.attempt).unwrap().len(), 2);
        assert_eq!(store.deliveries(caller.frame).unwrap().len(), 1);
        store.end(caller, &reply("over"));
        assert_eq!(store.deliveries(caller.frame).unwrap(), []);

        let first = store.start(store.root());
        let question = store.request(first, None, &ask("When?")).unwrap();
        store.end(first, &Ending::Suspended);
        store.answer(question, "Jan 1st").unwrap();
        let later = Caller { frame: first.frame, attempt: first.attempt };
        store.read_by_agent(later, Target::Request(question)).unwrap();
        assert_eq!(store.deliveries(first.frame).unwrap().len(), 1, "that attempt is over");
    }

    #[test]
    fn a_result_is_shown_in_one_attempt_of_its_own_frame() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        let new = attempt(vec![question]);
        store.begin(frame, &new).unwrap();
        let caller = Caller { frame, attempt: new.id };
        assert!(store.shown_in(new.id).unwrap().is_empty());
        store.shown(caller, &[question, RequestId::random()]).unwrap();
        assert_eq!(store.shown_in(new.id).unwrap(), [question]);
        store.end(caller, &reply("SGN_PEND_ONGOING"));
        assert!(store.shown(caller, &[question]).is_err());
        let again = attempt(vec![question]);
        store.begin(frame, &again).unwrap();
        assert!(store.shown_in(again.id).unwrap().is_empty());
    }
}
