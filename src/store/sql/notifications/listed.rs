//! Lists notifications for a person.

use crate::store::outbox::{ListedNotification, Notifications};
use crate::store::sql::database::codec::{count, id, maybe_id, maybe_time, signed, time};
use crate::store::sql::engine::{Connection, Row, TxResult};

macro_rules! listed {
    ($which:literal) => {
        concat!(
            "SELECT n.id, n.event, f.root, n.frame, n.request, n.made, n.status, n.failures, n.why, n.ended, n.due
             FROM notifications AS n CROSS JOIN frames AS f ON f.id = n.frame ",
            $which
        )
    };
}

const NEWEST: &str = listed!("ORDER BY n.seq DESC LIMIT ?1");
const NEXT_DUE: &str = listed!("WHERE n.status = 'pending' ORDER BY n.due LIMIT ?1");

pub(crate) fn list(connection: &Connection, of: Notifications) -> TxResult<Vec<ListedNotification>> {
    let (sql, most) = match of {
        Notifications::Newest(most) => (NEWEST, most),
        Notifications::NextDue => (NEXT_DUE, 1),
    };
    let mut found: Vec<_> = connection.read_all(sql, [signed(most as u64)], listed)?;
    found.reverse();
    Ok(found)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<ListedNotification> {
    Ok(ListedNotification {
        id: id(row, "id")?,
        event: row.get("event")?,
        root: id(row, "root")?,
        frame: id(row, "frame")?,
        request: maybe_id(row, "request")?,
        made: time(row, "made")?,
        status: row.get("status")?,
        failures: count(row, "failures")?,
        why: row.get("why")?,
        ended: maybe_time(row, "ended")?,
        due: time(row, "due")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::in_file;

    #[test]
    fn what_is_next_is_found_without_reading_what_was_sent() {
        let (_temp, store) = in_file();
        let mut statement = store.sqlite().prepare(&format!("EXPLAIN QUERY PLAN {NEXT_DUE}")).unwrap();
        let plan = statement.query_map([1], |row| row.get::<_, String>("detail")).unwrap();
        let plan: Vec<_> = plan.map(|step| step.unwrap()).collect();
        assert!(plan[0].contains("INDEX pending_notifications"), "{plan:#?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
    }
}
