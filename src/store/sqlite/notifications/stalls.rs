//! Agents in which nothing happens: no record says so, so whoever sends notifications looks.

use jiff::Timestamp;
use serde_json::json;

use crate::core::id::{AttemptId, FrameId};
use crate::core::notifications::occasion::Occasion;
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::sqlite::database::codec;
use crate::store::sqlite::database::connection::Sqlite;
use crate::store::sqlite::tables::notifications::{self, Noted};
use crate::store::sqlite::transaction::Statements;

pub(crate) fn note_stall(store: &Sqlite, frame: FrameId, attempt: AttemptId, last_event: Timestamp) -> Result<()> {
    let subject = format!("stalled {attempt} {}", last_event.as_millisecond());
    // Whoever looks again finds the same, and a write wakes everybody who watches the database.
    if store.query(|connection| connection.finds("SELECT 1 FROM notifications WHERE subject = ?1", [&subject]))? {
        return Ok(());
    }
    store.write(Step::NoteStall, |connection| {
        let detail = json!({"last_event": format!("{last_event:.0}")});
        let (occasion, request, subject) = (Occasion::Stalled, None, Some(subject.as_str()));
        notifications::note(connection, codec::now(), &Noted { occasion, frame, request, subject, detail })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::outbox::{Notifications, Subscribing, Subscription};
    use crate::store::records::Attempts;
    use crate::store::testing::{reply, store};

    #[test]
    fn a_silence_is_noted_once_as_long_as_the_agent_runs() {
        let (_temp, store) = store();
        let wanted = Subscription { config: "/c".into(), events: vec![Occasion::Stalled] };
        store.outbox().subscribe(&Subscribing::To(wanted)).unwrap();
        let caller = store.start(store.root());
        assert_eq!(store.attempts(Attempts::Running).unwrap().len(), 1);
        let then = Timestamp::UNIX_EPOCH;
        for _ in 0..2 {
            store.outbox().note_stall(caller.frame, caller.attempt, then).unwrap();
        }
        assert_eq!(store.outbox().list(Notifications::Newest(9)).unwrap().len(), 1);
        store.end(caller, &reply("done"));
        assert_eq!(store.outbox().claim(jiff::SignedDuration::ZERO).unwrap(), None);
        assert!(store.attempts(Attempts::Running).unwrap().is_empty());
    }
}
