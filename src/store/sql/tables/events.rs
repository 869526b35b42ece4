//! The append-only log of all changes, for people and for finding out what went wrong.

use crate::core::events::log_entry::{LogEntry, RecordedEntry};
use crate::core::id::FrameId;
use crate::store::records::{EventRecord, Extent};
use crate::store::sql::database::codec::{At, Id, count, from_json, id, signed, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::below::below;

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    Ok(EventRecord {
        seq: count(row, "seq")?,
        at: time(row, "at")?,
        frame: id(row, "frame")?,
        entry: RecordedEntry { kind: row.get("kind")?, detail: from_json(row, "detail")? }.into(),
    })
}

/// What happened to a frame, in order.
pub(crate) fn of_frame(connection: &Connection, frame: FrameId) -> TxResult<Vec<EventRecord>> {
    let sql = "SELECT seq, at, frame, kind, detail FROM events WHERE frame = ?1 ORDER BY seq";
    connection.read_all(sql, [Id(frame)], from_row)
}

/// Appends to the log, within the transaction of the change that it describes.
pub(crate) fn append(connection: &Connection, at: At, frame: FrameId, entry: &LogEntry) -> TxResult<()> {
    let RecordedEntry { kind, detail } =
        entry.recorded().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    connection.run(
        "INSERT INTO events (at, frame, kind, detail) VALUES (?1, ?2, ?3, ?4)",
        (at, Id(frame), kind, detail.to_string()),
    )
}

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
    use proptest::prelude::*;

    use super::{Extent, *};
    use crate::core::chain::frame_state::FrameState;
    use crate::core::events::log_entry::tests::{every_kind, states};
    use crate::store::records::Attempts;
    use crate::store::sql::database::codec;
    use crate::store::testing::{new, reply, store};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_appended_is_read(text in ".*", some: bool, state in 0..4_usize) {
            let (_temp, store) = store();
            let frame = FrameId::random();
            let entries = every_kind(&text, some, &states(&text)[state]);
            for entry in &entries {
                append(&store.database().connection, codec::now(), frame, entry).ok().unwrap();
            }
            let read = store.events(frame, 0).unwrap();
            prop_assert_eq!(read.into_iter().map(|record| record.entry).collect::<Vec<_>>(), entries);
        }
    }

    #[test]
    fn every_change_of_state_is_in_the_log() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let events = store.events(caller.frame, 0).unwrap();
        let [created, began, ended] = &events[..] else { panic!("{events:?}") };
        assert!(matches!(created.entry, LogEntry::Created { to: FrameState::Ready, .. }));
        assert!(matches!(began.entry, LogEntry::Began { to: FrameState::Running { .. }, .. }));
        assert!(matches!(ended.entry, LogEntry::Ended { to: FrameState::Done, .. }));
        assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].at <= pair[1].at));
    }

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
