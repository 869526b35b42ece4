//! Collects what an agent has not been given yet.

use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::core::requests::proposed_plan::PlanDecision;
use crate::core::requests::request::{RequestKind, are_in_background};
use crate::store::records::Undelivered;
use crate::store::sql::database::codec::{Id, from_json};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::requests::request_records::deliveries;
use crate::store::sql::steering::{messages, stops};
use crate::store::sql::tables::requests;

pub(crate) fn undelivered(connection: &Connection, frame: &Frame) -> TxResult<Undelivered> {
    let mut due = requests::pending(connection, frame.id)?;
    // Other results return by their calls, and leave the turn as it is.
    let joins = are_in_background(&due);
    due.retain(|request| joins || !request.kind.is_background());
    Ok(Undelivered {
        results: deliveries(connection, &due)?,
        moot: stops::moot_call(connection, frame)?,
        messages: messages::pending(connection, frame.id)?,
        chosen_mode: chosen_mode(connection, frame.id)?,
    })
}

fn chosen_mode(connection: &Connection, frame: FrameId) -> TxResult<Option<String>> {
    let sql = "SELECT r.detail, a.answer FROM requests AS r JOIN answers AS a ON a.question = r.id
         WHERE r.frame = ?1 AND r.status = 'delivered' ORDER BY r.seq DESC";
    let read = |row: &Row<'_>| Ok((from_json(row, "detail")?, row.get::<_, String>("answer")?));
    let answered = connection.read_all(sql, [Id(frame)], read)?;
    Ok(answered.into_iter().find_map(|(kind, answer)| match kind {
        RequestKind::Plan(plan) => match plan.decided(&answer)? {
            PlanDecision::Approved { mode } => Some(mode),
            _ => None,
        },
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::store::handle::Store;
    use crate::store::testing::{reply, store};

    fn chosen_of(store: &Store, frame: FrameId) -> Option<String> {
        let frame = store.frame(frame).unwrap().unwrap();
        store.undelivered(&frame).unwrap().chosen_mode
    }

    #[test]
    fn the_last_plan_that_was_approved_and_delivered_counts() {
        let (_temp, store) = store();
        let mut caller = store.start(store.root());
        let plan = || {
            RequestKind::Plan(ProposedPlan {
                text: None,
                file: None,
                modes: vec!["default".into(), "acceptEdits".into()],
            })
        };
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
