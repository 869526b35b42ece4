//! What became of a session that was not as an attempt had left it.

use rusqlite::Connection;

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{FrameId, SessionId};
use crate::store::records::Recovery;
use crate::store::sqlite::database::codec::{self, Id, path_text};
use crate::store::sqlite::tables::events;
use crate::store::sqlite::transaction::{Statements, TxResult};

pub(crate) fn record_recovery(
    connection: &Connection,
    frame: FrameId,
    session: SessionId,
    recovery: Recovery<'_>,
) -> TxResult<()> {
    match recovery {
        Recovery::Moved(transcript) => {
            let sql = "UPDATE attempts SET transcript = ?3 WHERE frame = ?1 AND session = ?2";
            connection.run(sql, (Id(frame), Id(session), path_text(transcript)?))
        }
        Recovery::SetAside(other) => {
            events::append(connection, codec::now(), frame, &LogEntry::SetAside { session, other })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{reply, store};

    #[test]
    fn a_transcript_that_was_moved_is_that_of_every_attempt_in_its_session() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("SGN_PEND_STARTED"));
        let session = store.attempts(caller.frame).unwrap()[0].session;
        let other = store.start(store.root());
        store.record_recovery(caller.frame, session, Recovery::Moved("/new.jsonl".as_ref())).unwrap();
        store.record_recovery(other.frame, session, Recovery::Moved("/elsewhere.jsonl".as_ref())).unwrap();
        let transcript = |frame| store.attempts(frame).unwrap()[0].transcript.clone();
        assert_eq!((transcript(caller.frame), transcript(other.frame)), (Some("/new.jsonl".into()), None));

        let said = SessionId::random();
        store.record_recovery(caller.frame, session, Recovery::SetAside(said)).unwrap();
        let events = store.events(caller.frame, 0).unwrap();
        assert_eq!(events.last().and_then(|record| record.entry.set_aside()), Some(said));
    }
}
