//! The end of an attempt: its outcome, its frame's next state, and its requests, in one transaction.

use jiff::Timestamp;

use crate::core::attempt::decision::{Fate, Redelivery};
use crate::core::attempt::ending::Ending;
use crate::core::attempt::meaning::Meaning;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{Ended, FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::SessionId;
use crate::core::requests::request::Request;
use crate::core::requests::request_state::RequestEvent;
use crate::core::steering::fresh_start::Afresh;
use crate::core::steering::stop_order::Stop;
use crate::store::records::{AttemptEnd, Caller, EndedAttempt};
use crate::store::sql::attempts::spent;
use crate::store::sql::chains::limit_checks;
use crate::store::sql::database::codec::{self, At, Id, path_text, signed, time};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::housekeeping::copies;
use crate::store::sql::housekeeping::orphan_files;
use crate::store::sql::requests::withdraw;
use crate::store::sql::steering::{self, messages, stops};
use crate::store::sql::tables::{chains, events, frames, notifications, requests};

pub(crate) fn end_attempt(connection: &Connection, end: &AttemptEnd<'_>) -> TxResult<EndedAttempt> {
    let (frame, attempt) = (end.frame, end.attempt);
    let now = codec::now();
    let before = frames::existing(connection, frame)?;
    chains::check_host(connection, before.root)?;
    steering::check_known(connection, frame, end.stop.as_ref(), end.decision.frame == Ended::Done)?;
    let since = since(connection, end, now)?;
    let event = FrameEvent::End(end.decision.frame.clone());
    let state = frames::advance(connection, &before, event, since)?;
    requests::check(connection, Caller { frame, attempt })?;
    close(connection, now, end)?;
    spent::record(connection, (frame, attempt), end.model.as_deref(), &end.spending, &end.total)?;
    update(connection, &before, end)?;
    if let Some((owner, pushed)) = &end.pushed {
        let recorded = frames::existing(connection, *owner)?.pushed.unwrap_or_default();
        let pushed = recorded.then(pushed.clone());
        let sql = "UPDATE frames SET pushed = ?2 WHERE id = ?1";
        connection.run(sql, (Id(*owner), codec::json(&pushed, &[])?))?;
    }
    let entry = LogEntry::Ended {
        attempt: Some(attempt),
        outcome: end.decision.meaning.name().to_owned(),
        kept: Some(end.decision.session == Fate::Keep),
        cost_usd: Some(end.spending.usd),
        from: before.state.clone(),
        to: state.clone(),
    };
    events::append(connection, now, frame, &entry)?;
    afresh(connection, now, &before, end)?;
    let out_of_time = end.stop.as_ref().is_some_and(Stop::is_timeout);
    notifications::note_state(connection, now, &before, &state, out_of_time)?;
    limit_checks::note_spent_budget(connection, now, &before)?;
    let background = requests::background(connection, frame)?;
    match end.decision.session {
        Fate::Keep => keep(connection, now, end)?,
        Fate::Discard => withdraw::discard(connection, now, attempt)?,
        Fate::Lost => withdraw::give_back(connection, now, attempt)?,
    }
    let unseen = match end.decision.session {
        Fate::Discard => None,
        // Unless its agent has replied to what it was given at the beginning.
        Fate::Lost if state != FrameState::Done => None,
        Fate::Keep | Fate::Lost => Some(end.unseen_messages.as_slice()),
    };
    messages::give_back(connection, attempt, unseen)?;
    if !messages::pending(connection, frame)?.is_empty() {
        // It must continue in order to read them.
        requests::revoke_handoffs(connection, frame)?;
    }
    stops::settled(connection, now, &before, &state, end.report.as_deref())?;
    let is_withdrawn = |request: &Request| end.decision.session == Fate::Discard && request.attempt == attempt;
    let is_left = |request: &Request| matches!(state, FrameState::Failed { .. }) || is_withdrawn(request);
    stops::left_behind(connection, now, background.into_iter().filter(is_left), &end.left_behind)?;
    let copies = orphan_files::copies_of(connection, frame)?;
    if connection.host().is_some() {
        copies::prune(connection, frame, &copies)?;
    }
    Ok(EndedAttempt { state, copies })
}

/// When the frame entered its next state. A frame that returns to a state has been in it since before the attempt.
fn since(connection: &Connection, end: &AttemptEnd<'_>, now: At) -> TxResult<Timestamp> {
    if end.decision.frame != Ended::Back {
        return Ok(now.0);
    }
    let sql = "SELECT waited_since FROM attempts WHERE id = ?1";
    Ok(connection.read_first(sql, [Id(end.attempt)], |row| time(row, "waited_since"))?.unwrap_or(now.0))
}

/// Marks the attempt as ended.
fn close(connection: &Connection, now: At, end: &AttemptEnd<'_>) -> TxResult<()> {
    connection.run("UPDATE attempts SET ended = CASE WHEN ?2 < began THEN began ELSE ?2 END, outcome = ?3, message = ?4, kept = ?5, version = ?6,
             transcript = ?7, denied = ?8, leaves = ?9, ran = ?10, context = ?11, context_window = ?12, given = NULL
             WHERE id = ?1", (
            Id(end.attempt),
            end.ended.map_or(now, |ended| At(ended.min(now.0))),
            end.decision.meaning.name(),
            end.decision.meaning.message(),
            end.decision.session == Fate::Keep,
            &end.version,
            end.transcript.as_deref().map(path_text).transpose()?,
            (!end.denied.is_empty()).then(|| codec::json(&end.denied, &[])).transpose()?,
            &end.leaves,
            end.ran.map(|ran| i64::try_from(ran.as_millis()).unwrap_or(i64::MAX)),
            end.context.map(|context| signed(context.tokens)),
            end.context.map(|context| signed(context.window)),
        ))
}

/// Whether a person has named a model that is another one in plan mode: what `claude` reports is only one of them.
fn names_several(frame: &Frame) -> bool {
    frame.launch.model.as_deref().is_some_and(|model| model.starts_with("opusplan"))
}

/// Updates the frame with what it keeps from the attempt, apart from its state.
fn update(connection: &Connection, before: &Frame, end: &AttemptEnd<'_>) -> TxResult<()> {
    let trouble = end.decision.trouble.as_ref().map(|trouble| codec::json(trouble, &[])).transpose()?;
    let situation = (end.decision.session != Fate::Discard).then(|| codec::json(&end.situation, &[]));
    connection.run(
        "UPDATE frames SET trouble = ?2, situation = coalesce(?3, situation) WHERE id = ?1",
        (Id(before.id), trouble, situation.transpose()?),
    )?;
    let is_kept = end.decision.session == Fate::Keep;
    let is_other = |model: &&String| before.launch.model.as_ref() != Some(model) && !names_several(before);
    if let Some(model) = end.model.as_ref().filter(|model| is_kept && is_other(model)) {
        let mut launch = before.launch.clone();
        launch.model = Some(model.clone());
        connection
            .run("UPDATE frames SET launch = ?2 WHERE id = ?1", (Id(before.id), frames::launch_text(&launch)?))?;
    }
    if let Meaning::Ended(Ending::Reply(reply)) = &end.decision.meaning {
        // One that is only retried has no instruction.
        if before.outcome.is_none() || !messages::reply(connection, before.id, reply)? {
            frames::set_reply(connection, before.id, reply)?;
        }
    }
    Ok(())
}

/// Ends the session of a frame whose agent has written a summary of it, or records what is missing.
fn afresh(connection: &Connection, now: At, before: &Frame, end: &AttemptEnd<'_>) -> TxResult<()> {
    let (frame, afresh) = (
        before.id,
        match &end.decision.meaning {
            Meaning::Summary(summary) => Some(Afresh::Begun { summary: summary.clone() }),
            Meaning::NoSummary { is_last: true, .. } => None,
            Meaning::NoSummary { lacks, .. } => Some(Afresh::Wanted { lacks: lacks.clone() }),
            _ => return Ok(()),
        },
    );
    let text = afresh.as_ref().map(|afresh| codec::json(afresh, &[])).transpose()?;
    connection.run("UPDATE frames SET afresh = ?2 WHERE id = ?1", (Id(frame), text))?;
    if afresh.as_ref().and_then(Afresh::summary).is_none() {
        return Ok(());
    }
    let (session, new_session) = (before.session, SessionId::random());
    connection.run(
        "UPDATE frames SET session = ?2, checkpoint = NULL, suspended = NULL, baseline = NULL, situation = ?3 WHERE id = ?1",
        (Id(frame), Id(new_session), codec::json(&end.situation, &[])?),
    )?;
    events::append(connection, now, frame, &LogEntry::Afresh { attempt: end.attempt, session, new_session })
}

/// Makes the attempt the checkpoint. The results that it was given count as delivered, unless they must be delivered again.
fn keep(connection: &Connection, now: At, end: &AttemptEnd<'_>) -> TxResult<()> {
    let (frame, suspended) = (end.frame, &end.suspended);
    connection.run(
        "UPDATE frames SET checkpoint = ?2, suspended = ?3 WHERE id = ?1",
        (Id(frame), Id(end.attempt), suspended),
    )?;
    for request in requests::delivering(connection, end.attempt)? {
        let again = match &end.decision.redelivery {
            Redelivery::All => true,
            Redelivery::Only(again) => again.contains(&request.id),
        };
        let event = if again { RequestEvent::GiveBack } else { RequestEvent::Keep };
        requests::advance(connection, now, &request, event)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::agent::situation::Situation;
    use crate::core::agent::usage::{Spending, Totals};
    use crate::core::attempt::decision::{Decision, decide};
    use crate::core::attempt::facts::Facts;
    use crate::core::chain::frame::Trouble;
    use crate::core::chain::frame_state::{Failure, FailureKind, FrameState, Wait};
    use crate::core::id::{AttemptId, FrameId, RequestId};
    use crate::core::requests::request::{RequestResult, SpawnForm};
    use crate::failpoint::Step;
    use crate::store::error::StoreError;
    use crate::store::handle::Store;
    use crate::store::records::EventRecord;
    use crate::store::sql::database::codec::id;
    use crate::store::testing::{ask, attempt, attempt_end, new, refused, reply, store};
    use std::path::PathBuf;

    /// The requests whose results an attempt is or was given: none if it was discarded.
    fn given(store: &Store, to: Caller) -> Vec<RequestId> {
        let sql = "SELECT id FROM requests WHERE delivered_in = ?1";
        store.database().query(|connection| connection.read_all(sql, [Id(to.attempt)], |row| id(row, "id"))).unwrap()
    }

    fn texts(store: &Store, frame: FrameId) -> Vec<RequestResult> {
        store.deliveries(frame).unwrap().into_iter().map(|delivery| delivery.result).collect()
    }

    #[test]
    fn a_reply_ends_a_frame_for_good() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        assert_eq!(store.end(caller, &reply("Jan 1st\n")), FrameState::Done);
        let frame = store.frame(caller.frame).unwrap().unwrap();
        assert_eq!((frame.state, frame.checkpoint), (FrameState::Done, Some(caller.attempt)));
        assert_eq!(store.replies(caller.frame).unwrap().reply.as_deref(), Some("Jan 1st\n"));
        assert!(matches!(store.begin(caller.frame, &attempt(vec![])), Err(StoreError::Illegal(_))));
        assert!(matches!(store.try_again(caller.frame), Err(StoreError::Illegal(_))));
    }

    #[test]
    fn an_attempt_ends_once_and_only_the_running_one() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let trouble = Some(Trouble { what: "it".into(), ..Trouble::default() });
        let decision = Decision { trouble, ..decide(&Facts::from_ending(reply("done"))) };
        let end = |attempt| {
            store.end_attempt(&AttemptEnd {
                spending: Spending { usd: f64::NAN, ..Spending::default() },
                total: Totals { usd: f64::INFINITY, usage: None },
                model: Some("claude-opus-4-8".into()),
                version: Some("2.1.330".into()),
                transcript: Some(PathBuf::from("/t.jsonl")),
                situation: Situation { shell: Some("/srv/a".into()), ..Situation::default() },
                ..attempt_end(Caller { attempt, ..caller }, &decision)
            })
        };
        assert!(matches!(end(AttemptId::random()), Err(StoreError::StaleCaller { .. })));
        assert!(matches!(store.frame(caller.frame).unwrap().unwrap().state, FrameState::Running { .. }));
        end(caller.attempt).unwrap();
        assert!(matches!(end(caller.attempt), Err(StoreError::Illegal(_))));
        let frame = store.frame(caller.frame).unwrap().unwrap();
        assert_eq!(frame.launch, Launch { model: Some("claude-opus-4-8".into()), ..Launch::default() });
        assert_eq!(frame.trouble.map(|trouble| trouble.what).as_deref(), Some("it"));
        assert_eq!(frame.situation.shell, Some("/srv/a".into()));
        let attempt = &store.attempts(caller.frame).unwrap()[0];
        assert_eq!((attempt.spending.usd, attempt.version.as_deref()), (0.0, Some("2.1.330")));
        assert_eq!(attempt.transcript, Some(PathBuf::from("/t.jsonl")));
    }

    #[test]
    fn trouble_is_shown_until_an_attempt_that_is_kept_ends_well() {
        let (_temp, store) = store();
        let trouble = |frame| store.frame(frame).unwrap().unwrap().trouble;
        let caller = store.start(store.root());
        store.end(caller, &Ending::Died { worked: true, how: "killed".into() });
        assert!(trouble(caller.frame).is_some());
        store.end(store.start(caller.frame), &reply("SGN_PEND_STARTED"));
        assert_eq!(trouble(caller.frame), None);
    }

    #[test]
    fn the_model_of_a_discarded_attempt_is_not_that_of_the_frame() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let decision = decide(&Facts::from_ending(refused("no")));
        let end = attempt_end(caller, &decision);
        store.end_attempt(&AttemptEnd { model: Some("claude-opus-4-8".into()), ..end }).unwrap();
        assert_eq!(store.frame(caller.frame).unwrap().unwrap().launch.model, None);
    }

    #[test]
    fn a_result_is_carried_until_an_attempt_that_carried_it_is_kept() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        assert!(texts(&store, frame).is_empty());
        store.answer(question, "Jan 1st").unwrap();
        let answer = [RequestResult::Text("Jan 1st".into())];
        assert_eq!(texts(&store, frame), answer);

        let caller = store.start(frame);
        assert_eq!(given(&store, caller), [question]);
        assert_eq!(texts(&store, frame), answer);
        let waiting = FrameState::Waiting { wait: Wait::Requests };
        assert_eq!(store.end(caller, &reply("SGN_PEND_ONGOING")), waiting);
        assert_eq!(given(&store, caller), []);
        assert_eq!(texts(&store, frame), answer);

        let caller = store.start(frame);
        assert_eq!(store.end(caller, &Ending::Error("max turns".into())).name(), "failed");
        assert!(texts(&store, frame).is_empty());
        assert!(store.tree(frame).unwrap().get(frame).unwrap().requests.is_empty());
        assert_eq!(given(&store, caller), [question]);
        let carried = || vec![(question, answer[0].clone())];
        assert!(matches!(store.begin(frame, &attempt(carried())), Err(StoreError::Illegal(_))));
        assert_eq!(store.try_again(frame).unwrap(), FrameState::Ready);
        let spent_already = store.begin(frame, &attempt(carried())).unwrap_err();
        assert!(matches!(spent_already, StoreError::ResultChanged(id) if id == question), "{spent_already}");
        assert_eq!(store.frame(frame).unwrap().unwrap().state, FrameState::Ready);
    }

    #[test]
    fn an_answer_that_comes_while_an_attempt_runs_waits_for_the_next() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        store.answer(question, "Jan 1st").unwrap();
        assert!(store.has_undelivered_requests(caller.attempt).unwrap());
        store.end(caller, &Ending::Suspended);
        assert_eq!(texts(&store, caller.frame), [RequestResult::Text("Jan 1st".into())]);
    }

    #[test]
    fn what_a_discarded_attempt_asked_for_is_withdrawn() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (spawn, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        assert!(store.has_undelivered_requests(caller.attempt).unwrap());
        let failed = store.end(caller, &refused("not logged in"));
        assert_eq!(failed.name(), "failed");
        assert!(!store.has_undelivered_requests(caller.attempt).unwrap());
        assert!(store.frame(child).unwrap().is_none());
        assert!(store.questions(None, false).unwrap().is_empty());
        let tree = store.tree(caller.frame).unwrap();
        assert_eq!(tree.leaves_up().len(), 1);
        assert!(tree.get(caller.frame).unwrap().requests.is_empty());
        let kinds = |frame| store.events(frame, 0).unwrap().iter().map(EventRecord::kind).collect::<Vec<_>>();
        assert_eq!(kinds(child), ["created", "deleted"]);
        let parent = ["created", "began", "requested", "requested", "ended", "withdrawn", "withdrawn"];
        assert_eq!(kinds(caller.frame), parent);
        assert!(matches!(store.answer(question, "x"), Err(StoreError::QuestionWithdrawn(_))));
        assert!(matches!(store.answer(spawn, "x"), Err(StoreError::NotAQuestion(_))));
    }

    #[test]
    fn a_child_that_ran_outlives_a_request_that_is_withdrawn() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(caller, &Ending::Suspended);
        store.end(store.start(child), &reply("42"));
        let again = store.start(caller.frame);
        let kind = crate::core::requests::request::RequestKind::Spawn {
            child,
            task: "child".into(),
            form: SpawnForm::Call,
            json: false,
        };
        store
            .database()
            .write(Step::Request, |connection| requests::insert(connection, codec::now(), again, None, &kind))
            .unwrap();
        store.end(again, &reply("SGN_UNHANDLED"));
        assert!(store.frame(child).unwrap().is_some());
        assert_eq!(texts(&store, caller.frame), [RequestResult::Text("42".into())]);
    }

    #[test]
    fn a_frame_that_goes_back_has_waited_all_the_time() {
        let (_temp, store) = store();
        let (frame, _) = store.asking("When?");
        let since = store.frame(frame).unwrap().unwrap().since;
        // Times have a resolution of one millisecond.
        while Timestamp::now().as_millisecond() <= since.as_millisecond() {
            std::hint::spin_loop();
        }
        let caller = store.start(frame);
        assert!(store.frame(frame).unwrap().unwrap().since > since);
        store.end(caller, &reply("SGN_PEND_ONGOING"));
        assert_eq!(store.frame(frame).unwrap().unwrap().since, since);
    }

    #[test]
    fn what_failed_waits_for_what_it_asked_for() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        let failure = Failure { kind: FailureKind::Error, message: "max turns".into() };
        assert_eq!(store.end(caller, &Ending::Error("max turns".into())), FrameState::Failed { failure });
        assert_eq!(store.try_again(caller.frame).unwrap(), FrameState::Waiting { wait: Wait::Requests });
        store.answer(question, "x").unwrap();
        assert!(matches!(store.try_again(caller.frame), Err(StoreError::Illegal(_))));
    }
}
