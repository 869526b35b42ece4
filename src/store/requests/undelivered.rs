//! What an agent has not been given.

use rusqlite::Connection;

use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::core::requests::plan::Decided;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::core::steering::message::Message;
use crate::store::database::codec::{Id, from_json};
use crate::store::database::store::Store;
use crate::store::error::{Result, TxResult};
use crate::store::requests::request::deliveries;
use crate::store::steering::{messages, stops};
use crate::store::tables::requests;

/// What the next attempt of a frame is to give to its agent, and the mode that it begins in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undelivered {
    /// The results of its requests, in the order of these.
    pub results: Vec<Delivery>,
    /// What the call returns at which the agent stood when it was stopped. It is the result of no request.
    pub moot: Option<Delivery>,
    /// The messages to it.
    pub messages: Vec<Message>,
    /// The permission mode that a person chose for the last plan whose approval was delivered.
    pub chosen_mode: Option<String>,
}

impl Store {
    /// What the agent of `frame` has not been given.
    pub fn undelivered(&self, frame: &Frame) -> Result<Undelivered> {
        self.read(|connection| {
            Ok(Undelivered {
                results: deliveries(connection, &requests::pending(connection, frame.id)?)?,
                moot: stops::moot_call(connection, frame)?,
                messages: messages::pending(connection, frame.id)?,
                chosen_mode: chosen_mode(connection, frame.id)?,
            })
        })
    }
}

fn chosen_mode(connection: &Connection, frame: FrameId) -> TxResult<Option<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT r.detail, a.answer FROM requests AS r JOIN answers AS a ON a.question = r.id
         WHERE r.frame = ?1 AND r.status = 'delivered' ORDER BY r.seq DESC",
    )?;
    let answered = statement.query_map([Id(frame)], |row| {
        Ok((from_json::<RequestKind>(row, "detail")?, row.get::<_, String>("answer")?))
    })?;
    for answered in answered {
        if let (RequestKind::Plan(plan), answer) = answered?
            && let Some(Decided::Approved { mode }) = plan.decided(&answer)
        {
            return Ok(Some(mode));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::requests::plan::Plan;
    use crate::store::testing::{reply, store};

    fn chosen_of(store: &Store, frame: FrameId) -> Option<String> {
        let frame = store.frame(frame).unwrap().unwrap();
        store.undelivered(&frame).unwrap().chosen_mode
    }

    #[test]
    fn the_last_plan_that_was_approved_and_delivered_counts() {
        let (_temp, store) = store();
        let mut caller = store.start(store.root());
        let plan =
            || RequestKind::Plan(Plan { text: None, file: None, modes: vec!["default".into(), "acceptEdits".into()] });
        for (answer, before) in [
            ("deny", None),
            ("allow acceptEdits", None),
            ("deny not now", Some("acceptEdits")),
            ("allow", Some("acceptEdits")),
        ] {
            let asked = store.request(caller, Some("toolu_1"), &[plan()]).unwrap()[0];
            store.end(caller, &Ending::Suspended);
            store.answer(asked, answer).unwrap();
            assert_eq!(chosen_of(&store, caller.frame).as_deref(), before);
            caller = store.start(caller.frame);
        }
        store.end(caller, &reply("done"));
        assert_eq!(chosen_of(&store, caller.frame).as_deref(), Some("default"));
    }
}
