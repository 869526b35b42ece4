//! Attempts are recorded before their process starts, so that a later process which finds a dead one knows what to look for.

use std::collections::{HashMap, HashSet};

use crate::core::chain::frame_state::{FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, RequestId, SessionId};
use crate::core::requests::request::RequestResult;
use crate::core::requests::request_state::Handover;
use crate::store::error::StoreError;
use crate::store::records::{Attempt, Attempts, Extent, NewAttempt, Recovery};
use crate::store::sql::chains::limit_checks;
use crate::store::sql::database::codec::{self, At, Id, maybe_json, path_text, signed};
use crate::store::sql::engine::{Connection, Fault, Row, TxResult};
use crate::store::sql::hosts::leases;
use crate::store::sql::requests::results::result;
use crate::store::sql::steering::messages;
use crate::store::sql::tables::attempt_rows::from_row;
use crate::store::sql::tables::below::below;
use crate::store::sql::tables::{chains, events, frames, requests};

const OF: &str = "SELECT * FROM attempts WHERE frame = ?1 ORDER BY seq";
const BELOW: &str = below!(
    "SELECT a.* FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id ORDER BY a.seq"
);
const RUNNING_OF: &str = "SELECT * FROM attempts WHERE frame = ?1 AND ended IS NULL";
const RUNNING: &str = "SELECT * FROM attempts INDEXED BY one_running_attempt WHERE ended IS NULL ORDER BY seq";
const RUNNING_HERE: &str = "SELECT a.id FROM attempts AS a CROSS JOIN frames AS f ON f.id = a.frame
     CROSS JOIN chains AS c ON c.root = f.root WHERE a.ended IS NULL AND c.host = ?1";
const WITH_DENIED: &str = below!(
    "SELECT a.* FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id
     WHERE a.denied IS NOT NULL AND a.kept = 1 ORDER BY a.seq"
);
const THAT_ASKED: &str = "SELECT a.* FROM requests AS r JOIN attempts AS a ON a.id = r.attempt WHERE r.id = ?1";

const NEWEST_NEW: &str = "SELECT * FROM attempts WHERE resumed IS NULL AND requests > 0 ORDER BY seq DESC LIMIT 20";

pub(crate) fn begin(connection: &Connection, frame: FrameId, attempt: &NewAttempt) -> TxResult<()> {
    let now = codec::now();
    let before = frames::existing(connection, frame)?;
    chains::check_host(connection, before.root)?;
    leases::check(connection)?;
    if let Some(why) = limit_checks::not_admitted(connection, &before, now.0, attempt.max_parallel_total)? {
        return Err(StoreError::NotAdmitted(why).into());
    }
    let state = frames::advance(connection, &before, FrameEvent::Begin, now.0)?;
    let waited = match &state {
        FrameState::Running { waited } => waited.as_ref(),
        _ => None,
    };
    connection.run(
        "INSERT INTO attempts (id, session, frame, resumed, waited, waited_since, output_from, errors_from,
             runner, began, mode, notice, given, summarises, host)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        (
            Id(attempt.id),
            Id(attempt.session),
            Id(frame),
            attempt.resumed.map(Id),
            waited.map(|wait| codec::json(wait, &[])).transpose()?,
            At(before.since),
            signed(attempt.output_from),
            signed(attempt.errors_from),
            attempt.runner,
            now,
            &attempt.mode,
            &attempt.notice,
            codec::json(&attempt.given, &[])?,
            attempt.summarises.map(Id),
            connection.host(),
        ),
    )?;
    deliver(connection, now, frame, attempt)?;
    messages::give(connection, frame, attempt.id, &attempt.messages)?;
    let entry = LogEntry::Began {
        attempt: attempt.id,
        session: attempt.session,
        resumed: attempt.resumed,
        runner: attempt.runner,
        delivering: attempt.given.iter().map(|(request, _)| *request).collect(),
        placed: attempt.placed.clone(),
        mode: attempt.mode.clone(),
        from: before.state,
        to: state,
    };
    events::append(connection, now, frame, &entry)
}

pub(crate) fn attempts(connection: &Connection, which: Attempts) -> TxResult<Vec<Attempt>> {
    let (sql, id) = match which {
        Attempts::Of(Extent::One(frame)) => (OF, Some(frame.0)),
        Attempts::Of(Extent::Below(top)) => (BELOW, Some(top.0)),
        Attempts::RunningOf(frame) => (RUNNING_OF, Some(frame.0)),
        Attempts::Running => (RUNNING, None),
        Attempts::WithDenied(top) => (WITH_DENIED, Some(top.0)),
        Attempts::ThatAsked(request) => (THAT_ASKED, Some(request.0)),
        Attempts::NewestNew => (NEWEST_NEW, None),
    };
    let read = |row: &Row<'_>| {
        let host: Option<String> = row.get("host")?;
        let ran_here = host.is_some() && host.as_deref() == connection.host();
        Ok(Attempt { host: host.filter(|_| !ran_here), ran_here, ..from_row(row)? })
    };
    let mut found = connection.read_all(sql, id.map(Id).into_iter().collect::<Vec<_>>(), read)?;
    if which == Attempts::Running
        && let Some(own) = connection.host()
    {
        let here = connection.read_all(RUNNING_HERE, [own], |row| codec::id(row, "id"))?;
        let here: HashSet<AttemptId> = here.into_iter().collect();
        found.retain(|attempt| here.contains(&attempt.id));
    }
    Ok(found)
}

/// Records the results that the attempt delivers. Each must still be the result that was read, because the prompt may
/// contain it.
fn deliver(connection: &Connection, now: At, frame: FrameId, attempt: &NewAttempt) -> TxResult<()> {
    for (id, read) in &attempt.given {
        let changed = || StoreError::ResultChanged(*id);
        let request = requests::load(connection, *id)?.filter(|it| it.frame == frame).ok_or_else(changed)?;
        if result(connection, &request)?.as_ref() != Some(read) {
            return Err(changed().into());
        }
        let resumed = attempt.resumed_calls.iter().find(|(resumed, _)| *resumed == request.id);
        let handover = resumed.map_or(Handover::Given, |(_, handover)| *handover);
        let event = requests::deliver(&request, attempt.id, handover);
        match requests::advance(connection, now, &request, event) {
            Err(Fault::Known(StoreError::IllegalRequest(_))) => return Err(changed().into()),
            advanced => advanced?,
        };
    }
    Ok(())
}

/// The results that a running attempt was given, as recorded.
pub(crate) fn given(connection: &Connection, attempt: AttemptId) -> TxResult<HashMap<RequestId, RequestResult>> {
    let given = connection
        .read_first("SELECT given FROM attempts WHERE id = ?1", [Id(attempt)], |row| maybe_json(row, "given"))?
        .flatten();
    Ok(given.map(|given: Vec<_>| given.into_iter().collect()).unwrap_or_default())
}

/// Records that a running attempt was given another result.
pub(crate) fn give(
    connection: &Connection,
    attempt: AttemptId,
    request: RequestId,
    result: &RequestResult,
) -> TxResult<()> {
    let mut given: Vec<_> = given(connection, attempt)?.into_iter().collect();
    given.push((request, result.clone()));
    connection.run("UPDATE attempts SET given = ?2 WHERE id = ?1", (Id(attempt), codec::json(&given, &[])?))
}

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
    use std::sync::Barrier;

    use super::*;
    use crate::core::agent::denied_call::Denied;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::facts::Facts;
    use crate::core::id::SessionId;
    use crate::store::handle::Store;
    use crate::store::records::AttemptEnd;
    use crate::store::testing::{attempt, attempt_end, refused, reply, store};

    #[test]
    fn an_attempt_is_read_back_as_it_was_recorded() {
        let (_temp, store) = store();
        let frame = store.root();
        assert_eq!(store.attempts(Attempts::RunningOf(frame)).unwrap(), []);
        let new = NewAttempt {
            resumed: Some(SessionId::random()),
            mode: Some("plan".into()),
            notice: Some("Your shell is elsewhere.".into()),
            ..attempt(Vec::new())
        };
        store.begin(frame, &new).unwrap();
        let running = store.attempts(Attempts::RunningOf(frame)).unwrap().remove(0);
        assert_eq!(store.attempts(Attempts::Running).unwrap(), std::slice::from_ref(&running));
        assert_eq!((running.session, running.frame, running.resumed), (new.session, frame, new.resumed));
        assert_eq!((running.mode, running.notice), (new.mode, new.notice));
        assert_eq!((running.output_from, running.errors_from, running.runner), (7, 3, 42));
        assert_eq!((running.waited, running.ended, running.kept), (None, None, None));
        store.end(crate::store::Caller { frame, attempt: new.id }, &reply("done"));
        assert_eq!(store.attempts(Attempts::RunningOf(frame)).unwrap(), []);
        let attempts = store.attempts(frame).unwrap();
        assert_eq!(attempts.len(), 1);
        assert_eq!((attempts[0].outcome.as_deref(), attempts[0].kept), (Some("reply"), Some(true)));
        assert_eq!((attempts[0].spending.usage.output_tokens, attempts[0].spending.usd), (2, 0.25));
    }

    #[test]
    fn of_many_runners_one_begins() {
        let (_temp, store) = store();
        let frame = store.root();
        let barrier = Barrier::new(8);
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let (barrier, dir) = (&barrier, store.dir().path());
                    scope.spawn(move || {
                        let store = Store::open(dir).unwrap();
                        barrier.wait();
                        match store.begin(frame, &attempt(Vec::new())) {
                            Ok(()) => true,
                            Err(StoreError::Illegal(_)) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
        assert_eq!(store.attempts(frame).unwrap().len(), 1);
    }

    #[test]
    fn the_denied_calls_of_attempts_that_count_are_listed() {
        let (_temp, store) = store();
        let call = Denied {
            tool: "Bash".into(),
            input: r#"{"command":"ls"}"#.into(),
            said: "no".into(),
            unapproved: true,
            asked_by_hook: false,
            by_subagent: false,
        };
        let ended = |ending| {
            let caller = store.start(store.root());
            let decision = decide(&Facts::from_ending(ending));
            let end = AttemptEnd { denied: vec![call.clone()], ..attempt_end(caller, &decision) };
            store.end_attempt(&end).unwrap();
            (caller.frame, store.attempts(Attempts::WithDenied(caller.frame)).unwrap())
        };
        let (done, denied) = ended(reply("done"));
        let calls: Vec<_> = denied.into_iter().map(|attempt| (attempt.frame, attempt.denied)).collect();
        assert_eq!(calls, [(done, vec![call.clone()])]);
        assert_eq!(ended(refused("not logged in")).1, []);
    }

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
