//! Requests that suspend a tool call. One call may make several: each question in it is one.

use super::codec::{self, Id};
use super::requests::{self, Caller};
use super::{Result, Store};
use crate::core::id::FrameId;
use crate::core::request::{Request, Wish};

impl Store {
    /// Records all that one tool call asks for, or nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`](super::StoreError::StaleCaller), a path that is not valid UTF-8, or a database that
    /// cannot be written.
    pub fn request_all(&self, caller: Caller, call: &str, wishes: &[Wish]) -> Result<()> {
        self.write(|connection| {
            requests::check(connection, caller)?;
            let now = codec::now();
            for wish in wishes {
                requests::insert(connection, now, caller, Some(call), wish)?;
            }
            Ok(())
        })
    }

    /// The requests that a tool call of a frame has made and that were not withdrawn, in their order.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn requests_of_call(&self, frame: FrameId, call: &str) -> Result<Vec<Request>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, frame, attempt, call, wish, settled IS NOT NULL AS is_settled, made FROM requests
                 WHERE frame = ?1 AND call = ?2 AND withdrawn IS NULL ORDER BY seq",
            )?;
            let found = statement.query_map((Id(frame), call), requests::from_row)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::core::outcome::Outcome;
    use crate::store::StoreError;
    use crate::store::testing::{ask, reply, store};

    #[test]
    fn the_questions_of_a_call_are_answered_in_any_order_and_belong_together() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.request_all(caller, "toolu_1", &[ask("When?"), ask("Where?")]).unwrap();
        store.request_all(caller, "toolu_2", &[ask("Why?")]).unwrap();
        let asked = store.requests_of_call(caller.frame, "toolu_1").unwrap();
        assert_eq!(asked.iter().map(|request| &request.wish).collect::<Vec<_>>(), [&ask("When?"), &ask("Where?")]);
        store.end(caller, &Outcome::Requested);

        store.answer(asked[1].id, "here").unwrap();
        assert!(store.result_of(asked[0].id).unwrap().is_none());
        assert!(store.result_of(asked[1].id).unwrap().is_some());
        assert_eq!(store.questions(true).unwrap().len(), 2);
        store.withdraw_calls(caller.attempt, &["toolu_2"]).unwrap();
        assert_eq!(store.requests_of_call(caller.frame, "toolu_1").unwrap(), []);
    }

    #[test]
    fn a_turn_that_has_ended_asks_nothing() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let late = store.request_all(caller, "toolu_1", &[ask("When?")]);
        assert!(matches!(late, Err(StoreError::StaleCaller { .. })));
        assert_eq!(store.requests_of_call(caller.frame, "toolu_1").unwrap(), []);
    }
}
