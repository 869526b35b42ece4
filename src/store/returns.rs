//! The result that a resumed call has still to return.
//!
//! The hook returns it, as a rule. Where hooks were switched off meanwhile, or a user's hook has rewritten the call, the
//! call runs as the program that it names, which then must not ask a second time.

use rusqlite::OptionalExtension;

use super::codec::{Id, from_json, id};
use super::requests::Caller;
use super::{Result, Store};
use crate::core::id::RequestId;
use crate::core::request::Wish;
use crate::crash::Step;

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
                 WHERE a.session = ?1 AND a.frame = ?2 AND a.ended IS NULL",
            )?;
            let found = |row: &rusqlite::Row<'_>| Ok((id(row, "id")?, from_json(row, "wish")?));
            Ok(statement.query_row((Id(caller.attempt), Id(caller.frame)), found).optional()?)
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
                .prepare_cached("UPDATE attempts SET to_return = NULL WHERE session = ?1")?
                .execute([Id(caller.attempt)])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::NewAttempt;
    use super::super::testing::{ask, attempt, reply, store};
    use super::*;
    use crate::core::outcome::Outcome;

    #[test]
    fn a_result_is_returned_once_and_by_the_running_attempt_only() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        let new = NewAttempt { to_return: Some(question), ..attempt(vec![question]) };
        store.begin(frame, &new).unwrap();
        let caller = Caller { frame, attempt: new.session };
        assert_eq!(store.to_return(caller).unwrap(), Some((question, ask("When?"))));
        assert_eq!(store.to_return(Caller { frame: store.root(), ..caller }).unwrap(), None);
        store.returned(caller).unwrap();
        assert_eq!(store.to_return(caller).unwrap(), None);

        store.end(caller, &Outcome::Ongoing);
        let again = NewAttempt { to_return: Some(question), ..attempt(vec![question]) };
        store.begin(frame, &again).unwrap();
        let caller = Caller { frame, attempt: again.session };
        assert!(store.to_return(caller).unwrap().is_some());
        store.end(caller, &reply("over"));
        assert_eq!(store.to_return(caller).unwrap(), None);
    }
}
