//! What happened in a chain, for those who watch it: read often, so never more than what is new.

use jiff::Timestamp;
use rusqlite::Row;

use crate::core::id::{AttemptId, FrameId};
use crate::store::database::codec::{Id, count, id, maybe_time, signed, time};
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::tables::below::{Extent, below};
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

const SPANS: &str = "SELECT frame, id, output_from, began, ended FROM attempts WHERE frame = ?1 ORDER BY seq";
const SPANS_BELOW: &str = below!(
    "SELECT a.frame, a.id, a.output_from, a.began, a.ended
     FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id ORDER BY a.seq"
);

const EVENTS: &str = "SELECT seq, at, frame, kind, detail FROM events WHERE frame = ?1 AND seq > ?2 ORDER BY seq";
const EVENTS_BELOW: &str = below!(
    "SELECT e.seq, e.at, e.frame, e.kind, e.detail
     FROM below CROSS JOIN events AS e INDEXED BY events_by_frame ON e.frame = below.id AND e.seq > ?2 ORDER BY e.seq"
);

impl Store {
    /// The attempts of frames, in order.
    pub(crate) fn attempt_spans(&self, of: impl Into<Extent>) -> Result<Vec<AttemptSpan>> {
        let of = of.into();
        let sql = if matches!(of, Extent::One(_)) { SPANS } else { SPANS_BELOW };
        self.query(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_map([Id(of.top())], span)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The entries of the log of frames that come after entry `after`, in order. The first has the number 1.
    pub fn events(&self, of: impl Into<Extent>, after: u64) -> Result<Vec<EventRecord>> {
        let of = of.into();
        let sql = if matches!(of, Extent::One(_)) { EVENTS } else { EVENTS_BELOW };
        self.query(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let records = statement.query_map((Id(of.top()), signed(after)), from_row)?;
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
    use super::Extent;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn a_watcher_reads_what_is_below_its_top_and_new() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(store.start(store.root()), &reply("another chain"));
        let kinds = |after| {
            let records = store.events(Extent::Below(caller.frame), after).unwrap();
            records.iter().map(|record| (record.frame, record.kind.clone(), record.seq)).collect::<Vec<_>>()
        };
        let all = kinds(0);
        let named: Vec<_> = all.iter().map(|(frame, kind, _)| (*frame, kind.as_str())).collect();
        let expected = [(caller.frame, "created"), (caller.frame, "began"), (child, "created")];
        assert!(expected.iter().all(|event| named.contains(event)) && named.len() == 4, "{named:?}");
        assert_eq!(kinds(all[2].2), all[3..]);
        let spans = store.attempt_spans(Extent::Below(caller.frame)).unwrap();
        assert_eq!(store.attempt_spans(caller.frame).unwrap(), spans);
        assert_eq!((spans.len(), spans[0].attempt, spans[0].output_from), (1, caller.attempt, 7));
    }
}
