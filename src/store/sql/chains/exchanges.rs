//! Questions that agents asked people, with everything that was recorded about them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::core::events::log_entry::LogEntry;
use crate::store::records::{Asked, EventRecord, Exchange, Exchanges, Given};
use crate::store::sql::database::codec::{At, Id, count, from_json, id, maybe_id, maybe_time, path, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::below::below;
use crate::store::sql::tables::events::{self};

macro_rules! exchanges {
    ($($condition:tt)+) => {
        concat!(
            "SELECT r.id, r.frame, r.call, r.detail, r.status, r.made, f.root, f.title, top.cwd, a.id AS attempt, a.began,
               a.output_from
             FROM requests AS r JOIN frames AS f ON f.id = r.frame JOIN frames AS top ON top.id = f.root
               LEFT JOIN attempts AS a ON a.id = r.delivered_in
             WHERE r.kind = 'ask' AND r.made >= ?2 AND ",
            $($condition)+,
            " ORDER BY r.seq DESC"
        )
    };
}

const ANYWHERE: &str = exchanges!("CAST(?1 AS TEXT) IS NULL");
const ONE: &str = exchanges!("r.id = ?1");
const BELOW: &str = exchanges!("r.frame IN (", below!("SELECT id FROM below"), ")");

pub(crate) fn exchanges(
    connection: &Connection,
    asked: Asked,
    since: Timestamp,
    most: usize,
    within: Option<&[PathBuf]>,
) -> TxResult<Exchanges> {
    let (sql, top) = match asked {
        Asked::Anywhere => (ANYWHERE, None),
        Asked::Below(top) => (BELOW, Some(top.0)),
        Asked::One(request) => (ONE, Some(request.0)),
    };
    let (mut found, mut passed_over) = (Vec::new(), 0);
    connection.each(sql, (top.map(Id), At(since)), |row| {
        if found.len() == most {
            return Ok(ControlFlow::Break(()));
        }
        let cwd = path(row, "cwd")?;
        if within.is_none_or(|within| within.contains(&cwd)) {
            found.push(from_row(row)?);
        } else {
            passed_over += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut records = HashMap::new();
    for exchange in &mut found {
        let of_frame = match records.entry(exchange.frame) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(events::of_frame(connection, exchange.frame)?),
        };
        let is_about =
            |record: &&EventRecord| record.entry.request() == Some(exchange.id) && became_of_it(&record.entry);
        exchange.records = of_frame.iter().filter(is_about).cloned().collect();
    }
    // Imported questions were asked earlier than they were recorded.
    found.reverse();
    found.sort_by_key(|exchange| exchange.asked);
    Ok(Exchanges { exchanges: found, passed_over })
}

fn became_of_it(entry: &LogEntry) -> bool {
    matches!(
        entry,
        LogEntry::Answered { .. }
            | LogEntry::AnswerReplaced { .. }
            | LogEntry::Expired { .. }
            | LogEntry::Withdrawn { .. }
    )
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Exchange> {
    let given = match (maybe_id(row, "attempt")?, maybe_time(row, "began")?) {
        (Some(attempt), Some(began)) => Some(Given { attempt, began, output_from: count(row, "output_from")? }),
        _ => None,
    };
    Ok(Exchange {
        id: id(row, "id")?,
        frame: id(row, "frame")?,
        root: id(row, "root")?,
        title: row.get("title")?,
        cwd: path(row, "cwd")?,
        asked: time(row, "made")?,
        kind: from_json(row, "detail")?,
        call: row.get("call")?,
        status: row.get("status")?,
        records: Vec::new(),
        given,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::steering::origin::Origin;
    use crate::store::testing::{ask, new, refused, reply, store};

    fn kinds(exchange: &Exchange) -> Vec<String> {
        exchange.records.iter().map(EventRecord::kind).collect()
    }

    #[test]
    fn every_answer_stays_on_record_with_who_gave_it() {
        let (_temp, store) = store();
        let (frame, id) = store.asking("When?");
        let by = |user: &str| Origin { user: Some(user.into()), ..Origin::default() };
        store.record_answer(id, "Jan 1st", &by("ann"), false).unwrap();
        store.record_answer(id, "Feb 2nd", &by("bob"), true).unwrap();
        let caller = store.start(frame);
        store.end(caller, &reply("done"));
        let found = store.exchanges(Asked::One(id), Timestamp::MIN, 1, None).unwrap().exchanges;
        assert_eq!(
            (kinds(&found[0]), found[0].status.as_str()),
            (["answered", "answer_replaced"].map(String::from).to_vec(), "delivered")
        );
        assert_eq!(found[0].given.map(|given| given.attempt), Some(caller.attempt));
        let origins = found[0].records.iter().filter_map(|record| record.entry.origin());
        let users: Vec<_> = origins.map(|origin| origin.user.as_deref()).collect();
        assert_eq!(users, [Some("ann"), Some("bob")]);
    }

    #[test]
    fn what_was_withdrawn_is_there_and_what_was_asked_elsewhere_is_not() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        let of_root = store.request(caller, None, &[ask("Why?")]).unwrap()[0];
        store.end(caller, &crate::core::attempt::ending::Ending::Suspended);
        let below = store.start(child);
        store.request(below, None, &[ask("When?")]).unwrap();
        store.end(below, &refused("no"));
        store.asking("Who?");
        let of = |asked| store.exchanges(asked, Timestamp::MIN, usize::MAX, None).unwrap().exchanges;
        assert_eq!((of(Asked::Anywhere).len(), of(Asked::Below(caller.frame)).len()), (3, 2));
        let found = of(Asked::Below(child));
        assert_eq!((found.len(), kinds(&found[0]), found[0].root), (1, vec!["withdrawn".to_owned()], caller.frame));
        assert_eq!(of(Asked::One(of_root))[0].id, of_root);
        assert_eq!(store.exchanges(Asked::Anywhere, Timestamp::MAX, usize::MAX, None).unwrap(), Exchanges::default());
        let within = |most, dir: &str| {
            let found = store.exchanges(Asked::Anywhere, Timestamp::MIN, most, Some(&[dir.into()])).unwrap();
            (found.exchanges.len(), found.passed_over)
        };
        assert_eq!((within(9, "/srv"), within(9, "/"), within(2, "/srv")), ((3, 0), (0, 3), (2, 0)));
    }
}
