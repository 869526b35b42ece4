//! What happened in a chain, for those who watch it: read often, so never more than what is new.

use jiff::Timestamp;
use rusqlite::Row;

use crate::core::id::{AttemptId, FrameId};
use crate::store::database::codec::{Id, count, id, maybe_time, signed, time};
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::tables::below::below;
use crate::store::tables::events::{EventRecord, from_row};

/// Where the output of an attempt begins, and when it ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AttemptSpan {
    pub frame: FrameId,
    pub attempt: AttemptId,
    pub output_from: u64,
    pub began: Timestamp,
    /// `None`: it runs, or nobody has seen its end.
    pub ended: Option<Timestamp>,
}

const SPANS: &str = below!(
    "SELECT a.frame, a.id, a.output_from, a.began, a.ended
     FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id ORDER BY a.seq"
);

const EVENTS: &str = below!(
    "SELECT e.seq, e.at, e.frame, e.kind, e.detail
     FROM below CROSS JOIN events AS e INDEXED BY events_by_frame ON e.frame = below.id AND e.seq > ?2 ORDER BY e.seq"
);

impl Store {
    /// The attempts of a frame and of all frames below it, in order.
    pub(crate) fn attempt_spans(&self, top: FrameId) -> Result<Vec<AttemptSpan>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(SPANS)?;
            Ok(statement.query_map([Id(top)], span)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The attempts of a frame, in order.
    pub(crate) fn attempt_spans_of(&self, frame: FrameId) -> Result<Vec<AttemptSpan>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT frame, id, output_from, began, ended FROM attempts WHERE frame = ?1 ORDER BY seq",
            )?;
            Ok(statement.query_map([Id(frame)], span)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The entries of the log of a frame and of all frames below it that come after entry `after`, in order.
    pub(crate) fn events_below(&self, top: FrameId, after: u64) -> Result<Vec<EventRecord>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(EVENTS)?;
            let records = statement.query_map((Id(top), signed(after)), from_row)?;
            Ok(records.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn span(row: &Row<'_>) -> rusqlite::Result<AttemptSpan> {
    Ok(AttemptSpan {
        frame: id(row, "frame")?,
        attempt: id(row, "id")?,
        output_from: count(row, "output_from")?,
        began: time(row, "began")?,
        ended: maybe_time(row, "ended")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::store::testing::{new, reply, store};

    #[test]
    fn a_watcher_reads_what_is_below_its_top_and_new() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(store.start(store.root()), &reply("another chain"));
        let kinds = |after| {
            let records = store.events_below(caller.frame, after).unwrap();
            records.iter().map(|record| (record.frame, record.kind.clone(), record.seq)).collect::<Vec<_>>()
        };
        let all = kinds(0);
        let named: Vec<_> = all.iter().map(|(frame, kind, _)| (*frame, kind.as_str())).collect();
        let expected = [(caller.frame, "created"), (caller.frame, "began"), (child, "created")];
        assert!(expected.iter().all(|event| named.contains(event)) && named.len() == 4, "{named:?}");
        assert_eq!(kinds(all[2].2), all[3..]);
        let spans = store.attempt_spans(caller.frame).unwrap();
        assert_eq!(store.attempt_spans_of(caller.frame).unwrap(), spans);
        assert_eq!((spans.len(), spans[0].attempt, spans[0].output_from), (1, caller.attempt, 7));
    }
}
