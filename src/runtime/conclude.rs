//! Concludes an attempt: reads what it printed, decides on it, records the decision, and only then acts on it.
//!
//! A runner calls this when its `claude` has ended, and so does the next one that finds an attempt without a runner.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::left::Left;
use super::{RuntimeError, meanwhile, while_trying};
use crate::claude::command::config_dir;
use crate::claude::ending;
use crate::claude::output;
use crate::claude::process::Exit;
use crate::claude::survivors;
use crate::claude::transcript;
use crate::claude::version::Version;
use crate::core::frame::{Frame, Trouble};
use crate::core::id::RequestId;
use crate::core::outcome::{Fork, Outcome, Report, Turn, Verdict, verdict};
use crate::core::request::{Delivery, Wish};
use crate::core::state::{Ended, Failure};
use crate::core::stream::Digest;
use crate::crash::{self, Step};
use crate::store::{Attempt, Lease, Settlement, Store, checkpoint, results};

/// What an attempt came to.
#[derive(Clone, Debug)]
pub(super) struct Conclusion {
    pub(super) verdict: Verdict,
    pub(super) outcome: Outcome,
}

/// Error output beyond this says nothing new.
const MOST_ERROR_OUTPUT: u64 = 16 * 1024;

/// Concludes the attempt of `frame` that is recorded as running. The lease proves that its process has ended.
pub(super) fn conclude(
    store: &Store,
    frame: &Frame,
    exit: Exit,
    _lease: &Lease,
) -> Result<Option<Conclusion>, RuntimeError> {
    let Some(attempt) = store.running_attempt(frame.id)? else { return Ok(None) };
    let digest = read_output(store, &attempt)?;
    let errors = read_errors(store, &attempt)?;
    let outcome = ending::outcome(&digest, exit, &errors);
    // A process that came to its end has written its transcript. One that was killed has perhaps not.
    let killed = digest.result.is_none() || exit.was_killed();
    settle(store, frame, &attempt, &digest, outcome, killed).map(Some)
}

/// Concludes an attempt whose process could not be started.
pub(super) fn conclude_unstarted(
    store: &Store,
    frame: &Frame,
    why: String,
) -> Result<Option<Conclusion>, RuntimeError> {
    let Some(attempt) = store.running_attempt(frame.id)? else { return Ok(None) };
    settle(store, frame, &attempt, &Digest::default(), Outcome::Refused(why), false).map(Some)
}

fn settle(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    digest: &Digest,
    outcome: Outcome,
    killed: bool,
) -> Result<Conclusion, RuntimeError> {
    if digest.result.is_some() {
        let open: Vec<&str> = digest.open_calls.iter().map(|call| call.id.as_str()).collect();
        store.withdraw_calls(attempt.session, &open)?;
    }
    let died = matches!(outcome, Outcome::Died { .. }).then(|| outcome.clone());
    if died.is_some() {
        // A hook or a tool that outlives claude could still make a request in its name.
        crash::around(Step::Sweep, || survivors::end(store.dir().path(), frame.id));
    }
    let told = carried(store, attempt)?;
    let lost = lost(&told, digest);
    let outcome = match outcome {
        // Claude Code calls it an error that the agent was stopped at a call.
        Outcome::Error(_) if store.awaits_permission(attempt.session)? => Outcome::Requested,
        other => other.given_open_requests(!lost.is_empty() || store.has_open_requests(attempt.session)?),
    };
    let outcome = not_a_quoted_signal(store, frame, digest, outcome)?;
    let turn = if frame.checkpoint.is_some() { Turn::Later } else { Turn::First };
    let config = config_dir(&frame.launch);
    let transcript = config.and_then(|config| transcript::find(&config, &frame.cwd, attempt.session));
    let left = Left::of(store, frame, digest, transcript.as_deref(), killed, &told)?;
    let verdict = match (verdict(&outcome, turn), &left) {
        (verdict, Left::Nothing) => verdict.without_conversation(),
        (verdict, Left::All | Left::Part(_)) => verdict,
    };
    if verdict.fork == Fork::Keep && verdict.ended != Ended::Done && !frame.launch.no_stale_check {
        meanwhile::record(store, frame, attempt.session, &digest.files)?;
    }
    let kept = match (verdict.fork, &transcript) {
        (Fork::Keep, Some(transcript)) => keep(store, frame, attempt, transcript)?,
        (Fork::Keep, None) | (Fork::Discard | Fork::Lost, _) => false,
    };

    let result = digest.result.as_ref();
    let total_cost_usd = result.map_or(0.0, |result| result.total_cost_usd);
    store.settle(&Settlement {
        frame: frame.id,
        session: attempt.session,
        verdict: &verdict,
        outcome: &outcome,
        usage: result.map(|result| result.usage).unwrap_or_default(),
        cost_usd: own_cost(store, frame, digest, total_cost_usd)?,
        total_cost_usd,
        model: digest.model.clone().filter(|_| verdict.fork == Fork::Keep),
        version: digest.version.clone(),
        transcript: transcript.clone(),
        suspended: digest.suspended_call().filter(|call| left.is_suspended_at(call)).map(str::to_owned),
        lost,
        trouble: trouble(frame, digest, &left, died.as_ref().unwrap_or(&outcome), &verdict),
    })?;

    match (verdict.fork, transcript) {
        (Fork::Discard, Some(transcript)) => {
            transcript::delete(&transcript).map_err(while_trying("delete a discarded transcript"))?;
        }
        (Fork::Keep, _) if kept => {
            let pruned = checkpoint::prune(store.dir(), frame.id, attempt.session);
            pruned.map_err(while_trying("remove older copies of transcripts"))?;
        }
        (Fork::Keep, _) if verdict.ended != Ended::Done => {
            tracing::warn!("claude left no usable transcript of session {}: it may not be resumable", attempt.session);
        }
        (Fork::Lost, _) => tracing::info!(session = %attempt.session, "claude died before it wrote its transcript"),
        (Fork::Keep, _) | (Fork::Discard, None) => {}
    }
    Ok(Conclusion { verdict, outcome })
}

/// What the attempt was told came of requests.
fn carried(store: &Store, attempt: &Attempt) -> Result<Vec<Delivery>, RuntimeError> {
    let mut deliveries = store.deliveries(attempt.frame)?;
    deliveries.retain(|delivery| attempt.carried.contains(&delivery.request));
    Ok(deliveries)
}

/// The requests whose results the agent did not see, though their call was resumed to return them: a user's hook that
/// denies, rewrites or suspends the call has the last word, and so has a rule against the command that returns it.
fn lost(told: &[Delivery], digest: &Digest) -> Vec<RequestId> {
    let suspended_again = digest.result.as_ref().and_then(|result| result.deferred_call.as_ref());
    let returned = digest.returned.as_ref();
    let of_call = |delivery: &&Delivery| returned.is_some_and(|back| delivery.call.as_ref() == Some(&back.call));
    // What an approved call returns is the tool's own.
    let results = || told.iter().filter(|delivery| !matches!(delivery.wish, Wish::Permission { .. }));
    let seen = results().filter(of_call).all(|delivery| returned.is_some_and(|back| delivery.result.is_in(back)));
    let lost = results().filter(|delivery| {
        let again = suspended_again.is_some() && delivery.call.as_ref() == suspended_again;
        again || (!seen && of_call(delivery))
    });
    lost.map(|delivery| delivery.request).collect()
}

/// Keeps a copy of the transcript. Returns whether there was anything to keep in it.
fn keep(store: &Store, frame: &Frame, attempt: &Attempt, transcript: &Path) -> Result<bool, RuntimeError> {
    match checkpoint::keep(store.dir(), frame.id, attempt.session, transcript) {
        Ok(()) => {
            let kept = results::keep(store.dir(), frame.id, attempt.session, transcript);
            kept.map_err(while_trying("keep copies of the results of tools"))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
    }
}

/// An agent that passes on, word for word, what it was just given does not pause, even when that is a signal: a person
/// may answer `SGN_PEND_STARTED`.
fn not_a_quoted_signal(
    store: &Store,
    frame: &Frame,
    digest: &Digest,
    outcome: Outcome,
) -> Result<Outcome, RuntimeError> {
    use crate::core::request::RequestResult;
    if !matches!(outcome, Outcome::Started | Outcome::Ongoing | Outcome::Unhandled) {
        return Ok(outcome);
    }
    let Some(reply) = digest.result.as_ref().map(|result| &result.text) else { return Ok(outcome) };
    let given = store.deliveries(frame.id)?;
    let passed_on = given.iter().any(|delivery| match &delivery.result {
        RequestResult::Text(text) => text.trim() == reply.trim(),
        RequestResult::Failed(_) => false,
    });
    Ok(if passed_on { Outcome::Reply(reply.clone()) } else { outcome })
}

/// What the next attempt is told of this one. A discarded attempt changes nothing about it.
fn trouble(frame: &Frame, digest: &Digest, left: &Left, outcome: &Outcome, verdict: &Verdict) -> Option<Trouble> {
    if verdict.fork == Fork::Discard {
        return frame.trouble.clone();
    }
    let lost = verdict.fork == Fork::Lost;
    let what = match (&verdict.ended, outcome) {
        (Ended::Fail(Failure { message, .. }), _) => message.clone(),
        (Ended::Cancel, _) => "a person stopped it".to_owned(),
        (_, Outcome::UsageLimit { .. }) => "the usage limit was reached".to_owned(),
        (_, Outcome::Unavailable { why, .. }) => why.clone(),
        (_, Outcome::Died { how, .. }) => how.clone(),
        _ if !matches!(left, Left::All) => "claude could not write down all of it".to_owned(),
        _ => return None,
    };
    let made = left.uncertain_calls(digest);
    // Of what an attempt was told that is lost, the conversation does not know either.
    let before = frame.trouble.iter().filter(|_| lost).flat_map(|trouble| trouble.calls.clone());
    Some(Trouble { what, calls: before.chain(made).collect(), lost })
}

/// Newer versions count what the resumed session had cost before: that was paid by an earlier attempt.
fn own_cost(store: &Store, frame: &Frame, digest: &Digest, total: f64) -> Result<f64, RuntimeError> {
    let version = digest.version.as_deref().and_then(|version| version.parse::<Version>().ok());
    let accumulates = version.is_some_and(|version| version >= Version::TOTAL_COST_ACCUMULATES);
    let before = match (frame.checkpoint, frame.baseline) {
        (Some(checkpoint), _) if accumulates => {
            let attempts = store.attempts(frame.id)?;
            attempts.iter().find(|attempt| attempt.session == checkpoint).map_or(0.0, |a| a.total_cost_usd)
        }
        (None, Some(baseline)) if accumulates => baseline.cost_usd,
        _ => return Ok(total),
    };
    Ok(if total >= before { total - before } else { total })
}

fn read_output(store: &Store, attempt: &Attempt) -> Result<Digest, RuntimeError> {
    let read = || output::read(BufReader::new(open_at(&store.dir().output(attempt.frame), attempt.output_from)?));
    read().map_err(while_trying("read what claude printed"))
}

fn read_errors(store: &Store, attempt: &Attempt) -> Result<String, RuntimeError> {
    let read = || -> io::Result<String> {
        let mut text = Vec::new();
        let file = open_at(&store.dir().errors(attempt.frame), attempt.errors_from)?;
        file.take(MOST_ERROR_OUTPUT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(while_trying("read the error log")),
    }
}

fn open_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

impl Conclusion {
    /// What went wrong, for people; `None` when nothing did.
    pub(super) fn error(&self) -> Option<String> {
        if self.verdict.report != Report::Error {
            return None;
        }
        Some(match &self.outcome {
            Outcome::Refused(why) | Outcome::Error(why) => why.clone(),
            Outcome::Unhandled => "the agent ended with SGN_UNHANDLED".to_owned(),
            Outcome::Died { how, .. } => format!("{how} before the agent had finished"),
            Outcome::Stopped { .. } => "stopped".to_owned(),
            Outcome::Reply(_)
            | Outcome::Requested
            | Outcome::Started
            | Outcome::Ongoing
            | Outcome::UsageLimit { .. }
            | Outcome::Unavailable { .. } => return None,
        })
    }
}
