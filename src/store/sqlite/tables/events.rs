//! The append-only log of everything that changed, for people and for finding out what went wrong.

use rusqlite::{Connection, Row};

use crate::core::events::log_entry::{LogEntry, RecordedEntry};
use crate::core::id::FrameId;
use crate::store::records::EventRecord;
use crate::store::sqlite::database::codec::{At, Id, count, from_json, id, time};
use crate::store::sqlite::transaction::{Statements, TxResult};

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

/// Appends to the log, within the transaction of the change that it tells of.
pub(crate) fn append(connection: &Connection, at: At, frame: FrameId, entry: &LogEntry) -> TxResult<()> {
    let RecordedEntry { kind, detail } =
        entry.recorded().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    connection.run(
        "INSERT INTO events (at, frame, kind, detail) VALUES (?1, ?2, ?3, ?4)",
        (at, Id(frame), kind, detail.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::chain::frame_state::FrameState;
    use crate::core::events::log_entry::tests::{every_kind, states};
    use crate::store::sqlite::database::codec;
    use crate::store::testing::{reply, store};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_appended_is_read(text in ".*", some: bool, state in 0..4_usize) {
            let (_temp, store) = store();
            let frame = FrameId::random();
            let entries = every_kind(&text, some, &states(&text)[state]);
            for entry in &entries {
                append(&store.sqlite().connection, codec::now(), frame, entry).ok().unwrap();
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
}
