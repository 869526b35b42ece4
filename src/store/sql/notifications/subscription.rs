//! Selects the events that cause notifications, and records stalls, which appear in no other record.

use jiff::Timestamp;
use serde_json::json;

use crate::core::id::{AttemptId, FrameId};
use crate::core::notifications::occasion::Occasion;
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::outbox::{Subscribing, Subscription};
use crate::store::sql::database::codec::{self, path, path_text};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::hosts::rights;
use crate::store::sql::tables::notifications::{self, Noted};

pub(crate) fn subscribe(store: &Database, to: &Subscribing) -> Result<()> {
    // Most commands change nothing, and a write wakes every process that watches the database.
    if store.query(|connection| {
        let before = subscription(connection)?;
        // Only users of a server who start chains change what others are told.
        Ok(to.apply(before.clone()) == before || !rights::may_start(connection)?)
    })? {
        return Ok(());
    }
    store.write(Step::Subscribe, |connection| {
        let wanted = to.apply(subscription(connection)?).filter(|it| !it.events.is_empty());
        connection.run("DELETE FROM subscription", [])?;
        if let Some(Subscription { config, events }) = wanted {
            let sql = "INSERT INTO subscription (event, config) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            for event in events {
                connection.run(sql, (event.name(), path_text(&config)?))?;
            }
        }
        drop_unwanted(connection)
    })
}

pub(crate) fn subscription(connection: &Connection) -> TxResult<Option<Subscription>> {
    let event = |row: &Row<'_>| Ok((path(row, "config")?, row.get::<_, String>("event")?));
    let rows = connection.read_all("SELECT config, event FROM subscription ORDER BY seq", [], event)?;
    let Some((config, _)) = rows.first().cloned() else { return Ok(None) };
    let events = rows.iter().filter_map(|(_, event)| Occasion::named(event)).collect();
    Ok(Some(Subscription { config, events }))
}

fn drop_unwanted(connection: &Connection) -> TxResult<()> {
    let sql = "UPDATE notifications SET status = 'outdated', ended = ?1 WHERE status = 'pending'
               AND event NOT IN (SELECT event FROM subscription)";
    connection.run(sql, [codec::now()])
}

pub(crate) fn note_stall(store: &Database, frame: FrameId, attempt: AttemptId, last_event: Timestamp) -> Result<()> {
    let subject = format!("stalled {attempt} {}", last_event.as_millisecond());
    // Repeated checks find the same, and a write wakes every process that watches the database.
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
