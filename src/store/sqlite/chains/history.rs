//! What happened in a chain, for those who watch it: read often, so never more than what is new.

use rusqlite::Connection;

use crate::store::records::{EventRecord, Extent};
use crate::store::sqlite::database::codec::{Id, signed};
use crate::store::sqlite::tables::below::below;
use crate::store::sqlite::tables::events::from_row;
use crate::store::sqlite::transaction::{Statements, TxResult};

const EVENTS: &str = "SELECT seq, at, frame, kind, detail FROM events WHERE frame = ?1 AND seq > ?2 ORDER BY seq";
const EVENTS_BELOW: &str = below!(
    "SELECT e.seq, e.at, e.frame, e.kind, e.detail
     FROM below CROSS JOIN events AS e INDEXED BY events_by_frame ON e.frame = below.id AND e.seq > ?2 ORDER BY e.seq"
);

pub(crate) fn events(connection: &Connection, of: Extent, after: u64) -> TxResult<Vec<EventRecord>> {
    let sql = if matches!(of, Extent::One(_)) { EVENTS } else { EVENTS_BELOW };
    connection.read_all(sql, (Id(of.top()), signed(after)), from_row)
}

#[cfg(test)]
mod tests {
    use super::Extent;
    use crate::store::records::Attempts;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn a_watcher_reads_what_is_below_its_top_and_new() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(store.start(store.root()), &reply("another chain"));
        let kinds = |after| {
            let records = store.events(Extent::Below(caller.frame), after).unwrap();
            records.iter().map(|record| (record.frame, record.kind(), record.seq)).collect::<Vec<_>>()
        };
        let all = kinds(0);
        let named: Vec<_> = all.iter().map(|(frame, kind, _)| (*frame, kind.as_str())).collect();
        let expected = [(caller.frame, "created"), (caller.frame, "began"), (child, "created")];
        assert!(expected.iter().all(|event| named.contains(event)) && named.len() == 4, "{named:?}");
        assert_eq!(kinds(all[2].2), all[3..]);
        let attempts = store.attempts(Attempts::Of(Extent::Below(caller.frame))).unwrap();
        assert_eq!(store.attempts(caller.frame).unwrap(), attempts);
        assert_eq!((attempts.len(), attempts[0].id, attempts[0].output_from), (1, caller.attempt, 7));
    }
}
