//! Attempts: recorded before their process starts, so that whoever finds a dead one knows what to look for.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::core::agent::denied::Denied;
use crate::core::attempt::usage::{Spending, Totals};
use crate::core::chain::state::{FrameEvent, FrameState, Wait};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, MessageId, RequestId, SessionId};
use crate::core::requests::request::RequestResult;
use crate::core::requests::state::Handover;
use crate::failpoint::Step;
use crate::store::attempts::spent::{spending, totals};
use crate::store::chains::limits;
use crate::store::database::codec::{self, At, Id, count, id, maybe_id, maybe_json, maybe_time, signed, time};
use crate::store::database::store::Store;
use crate::store::error::{Fault, Result, StoreError, TxResult};
use crate::store::requests::results::result;
use crate::store::steering::messages;
use crate::store::tables::below::{Extent, below};
use crate::store::tables::{events, frames, requests};

/// An attempt that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAttempt {
    /// Its id.
    pub id: AttemptId,
    /// Its session.
    pub session: SessionId,
    /// The session that it begins with, its own or another.
    pub resumed: Option<SessionId>,
    /// Where its events begin in the frame's output.
    pub output_from: u64,
    /// Where its messages begin in the frame's standard error.
    pub errors_from: u64,
    /// The process that runs it, for people.
    pub runner: u32,
    /// The requests whose results it is given, with the results that were read.
    pub given: Vec<(RequestId, RequestResult)>,
    /// Those of them whose result stands at its call without `claude` printing it.
    pub placed: Vec<RequestId>,
    /// Those of them whose suspended call the attempt resumes, and how it gets their result.
    pub resumed_calls: Vec<(RequestId, Handover)>,
    /// The permission mode with which it begins, where that is another than that of the launch options.
    pub mode: Option<String>,
    /// A text for its agent besides the result of the call that it resumes.
    pub notice: Option<String>,
    /// How many agents of all chains may run, with this one.
    pub max_parallel_total: Option<u32>,
    /// The messages that its prompt has.
    pub messages: Vec<MessageId>,
}

/// One `claude` process on behalf of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Its session.
    pub session: SessionId,
    /// The frame.
    pub frame: FrameId,
    /// The session that it began with, its own or another.
    pub resumed: Option<SessionId>,
    /// What the frame waited for before it; `None`: it was ready.
    pub waited: Option<Wait>,
    /// Where its events begin in the frame's output.
    pub output_from: u64,
    /// Where its messages begin in the frame's standard error.
    pub errors_from: u64,
    /// The process that ran it, for people.
    pub runner: u32,
    /// When it was recorded, which is before its process started.
    pub began: Timestamp,
    /// When its end was recorded; `None`: it runs, or nobody has seen its end.
    pub ended: Option<Timestamp>,
    /// For how long it ran, without the time in which the machine slept; `None`: nobody has measured it.
    pub ran: Option<Duration>,
    /// How it ended, in one word.
    pub outcome: Option<String>,
    /// What it ended with, unless that is a reply.
    pub message: Option<String>,
    /// Whether its session was kept.
    pub kept: Option<bool>,
    /// What it spent; nothing, as long as it runs.
    pub spending: Spending,
    /// What its session had spent when it ended.
    pub total: Totals,
    /// The model that it ran with, as far as `claude` said.
    pub model: Option<String>,
    /// The version of Claude Code.
    pub version: Option<String>,
    /// A digest of the transcript that it has left behind, where it was not kept.
    pub leaves: Option<String>,
    /// Where its transcript is.
    pub transcript: Option<PathBuf>,
    /// The permission mode with which it began, where that was another than that of the launch options.
    pub mode: Option<String>,
    /// A text for its agent besides the result of the call that it resumed.
    pub notice: Option<String>,
    /// The calls that were denied in it.
    pub denied: Vec<Denied>,
}

/// Which attempts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// Those of a frame, or of all frames below it as well.
    Of(Extent),
    /// The one of a frame whose end nobody has recorded.
    RunningOf(FrameId),
    /// All whose end nobody has recorded.
    Running,
    /// Those of a frame and of all frames below it in which calls were denied. Of what a discarded attempt did nothing counts.
    WithDenied(FrameId),
    /// The one that made a request.
    ThatAsked(RequestId),
}

impl From<FrameId> for Attempts {
    fn from(frame: FrameId) -> Self {
        Self::Of(Extent::One(frame))
    }
}

const OF: &str = "SELECT * FROM attempts WHERE frame = ?1 ORDER BY seq";
const BELOW: &str = below!(
    "SELECT a.* FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id ORDER BY a.seq"
);
const RUNNING_OF: &str = "SELECT * FROM attempts WHERE frame = ?1 AND ended IS NULL";
const RUNNING: &str = "SELECT * FROM attempts INDEXED BY one_running_attempt WHERE ended IS NULL ORDER BY seq";
const WITH_DENIED: &str = below!(
    "SELECT a.* FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id
     WHERE a.denied IS NOT NULL AND a.kept ORDER BY a.seq"
);
const THAT_ASKED: &str = "SELECT a.* FROM requests AS r JOIN attempts AS a ON a.id = r.attempt WHERE r.id = ?1";

impl Store {
    /// Records that an attempt begins. Its process must not be started before this has returned.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotAdmitted`] when a limit keeps it from starting, [`StoreError::Illegal`] when the frame cannot run,
    /// [`StoreError::UnknownFrame`], [`StoreError::ResultChanged`] when one of the requests is not the frame's or not to be delivered,
    /// or has another result than the one that was read, or a database that cannot be written.
    pub fn begin(&self, frame: FrameId, attempt: &NewAttempt) -> Result<()> {
        self.write(Step::Begin, |connection| {
            let now = codec::now();
            let before = frames::existing(connection, frame)?;
            if let Some(why) = limits::not_admitted(connection, &before, now.0, attempt.max_parallel_total)? {
                return Err(StoreError::NotAdmitted(why).into());
            }
            let state = frames::advance(connection, &before, FrameEvent::Begin, now.0)?;
            let waited = match &state {
                FrameState::Running { waited } => waited.as_ref(),
                _ => None,
            };
            connection
                .prepare_cached(
                    "INSERT INTO attempts (id, session, frame, resumed, waited, waited_since, output_from, errors_from,
                     runner, began, mode, notice, given)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                )?
                .execute((
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
                ))?;
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
        })
    }

    /// Attempts, in order.
    pub fn attempts(&self, which: impl Into<Attempts>) -> Result<Vec<Attempt>> {
        let (sql, id) = match which.into() {
            Attempts::Of(Extent::One(frame)) => (OF, Some(frame.0)),
            Attempts::Of(Extent::Below(top)) => (BELOW, Some(top.0)),
            Attempts::RunningOf(frame) => (RUNNING_OF, Some(frame.0)),
            Attempts::Running => (RUNNING, None),
            Attempts::WithDenied(top) => (WITH_DENIED, Some(top.0)),
            Attempts::ThatAsked(request) => (THAT_ASKED, Some(request.0)),
        };
        self.query(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let attempts = statement.query_map(params_from_iter(id.map(Id)), from_row)?;
            Ok(attempts.collect::<rusqlite::Result<_>>()?)
        })
    }
}

/// Records that the attempt delivers its results: each as it was read, since its prompt may have it.
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

/// The results that a running attempt was given, as they were recorded.
pub(crate) fn given(connection: &Connection, attempt: AttemptId) -> TxResult<HashMap<RequestId, RequestResult>> {
    let mut statement = connection.prepare_cached("SELECT given FROM attempts WHERE id = ?1")?;
    let given = statement.query_row([Id(attempt)], |row| maybe_json(row, "given")).optional()?.flatten();
    Ok(given.map(|given: Vec<_>| given.into_iter().collect()).unwrap_or_default())
}

/// Records that a running attempt was given one more.
pub(crate) fn give(
    connection: &Connection,
    attempt: AttemptId,
    request: RequestId,
    result: &RequestResult,
) -> TxResult<()> {
    let mut given: Vec<_> = given(connection, attempt)?.into_iter().collect();
    given.push((request, result.clone()));
    connection
        .prepare_cached("UPDATE attempts SET given = ?2 WHERE id = ?1")?
        .execute((Id(attempt), codec::json(&given, &[])?))?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        id: id(row, "id")?,
        session: id(row, "session")?,
        frame: id(row, "frame")?,
        resumed: maybe_id(row, "resumed")?,
        waited: maybe_json(row, "waited")?,
        output_from: count(row, "output_from")?,
        errors_from: count(row, "errors_from")?,
        runner: row.get("runner")?,
        began: time(row, "began")?,
        ended: maybe_time(row, "ended")?,
        ran: row.get::<_, Option<i64>>("ran")?.map(|ran| Duration::from_millis(ran.unsigned_abs())),
        outcome: row.get("outcome")?,
        message: row.get("message")?,
        kept: row.get("kept")?,
        spending: spending(row)?,
        total: totals(row)?,
        model: row.get("model")?,
        version: row.get("version")?,
        leaves: row.get("leaves")?,
        transcript: row.get::<_, Option<String>>("transcript")?.map(PathBuf::from),
        mode: row.get("mode")?,
        notice: row.get("notice")?,
        denied: maybe_json(row, "denied")?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::facts::Facts;
    use crate::store::attempts::end::AttemptEnd;
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
            let decision = decide(&Facts::of(ending));
            let end = AttemptEnd { denied: vec![call.clone()], ..attempt_end(caller, &decision) };
            store.end_attempt(&end).unwrap();
            (caller.frame, store.attempts(Attempts::WithDenied(caller.frame)).unwrap())
        };
        let (done, denied) = ended(reply("done"));
        let calls: Vec<_> = denied.into_iter().map(|attempt| (attempt.frame, attempt.denied)).collect();
        assert_eq!(calls, [(done, vec![call.clone()])]);
        assert_eq!(ended(refused("not logged in")).1, []);
    }
}
