//! Concludes an attempt: reads what it printed, decides on it, records the decision, and only then acts on it.
//!
//! A runner calls this when its `claude` has ended, and so does the next one that finds an attempt without a runner.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::claude::ending;
use crate::claude::invocation::command::config_dir;
use crate::claude::processes::orphans;
use crate::claude::processes::process::Exit;
use crate::claude::stream::digest::Digest;
use crate::claude::stream::reader;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::denied;
use crate::claude::transcript::locate;
use crate::claude::transcript::reopen::NOT_RUN;
use crate::claude::transcript::turn;
use crate::claude::version::Version;
use crate::core::agent::denied::Denied;
use crate::core::attempt::decision::{Fork, Outcome, Report, Turn, Verdict, verdict};
use crate::core::attempt::prompt;
use crate::core::attempt::record::{Note, Record};
use crate::core::attempt::signal::Signal;
use crate::core::chain::frame::{Frame, Task, Trouble};
use crate::core::chain::state::{Ended, Failure};
use crate::core::id::RequestId;
use crate::core::requests::request::{Delivery, Wish};
use crate::failpoint::{self, Step};
use crate::runtime::delivery::{situation, stale_files};
use crate::runtime::recovery::restore;
use crate::runtime::recovery::salvage::Left;
use crate::runtime::run::jobs;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::{checkpoint, tool_results};
use crate::store::{Attempt, Lease, Settlement, Store};

/// What an attempt came to.
#[derive(Clone, Debug)]
pub(crate) struct Conclusion {
    pub(crate) verdict: Verdict,
    pub(crate) outcome: Outcome,
    /// The signal that stood inside a sentence and was taken for one.
    pub(crate) in_a_sentence: Option<Signal>,
    /// How often in a row its agent has said that it waits, without a request.
    pub(crate) pauses_in_a_row: usize,
    /// Whether an attempt without a prompt was refused for having none.
    pub(crate) wants_prompt: bool,
}

/// More of the instructions no agent reads in one go.
const MOST_INSTRUCTIONS: u64 = 1024 * 1024;

/// Error output beyond this says nothing new.
const MOST_ERROR_OUTPUT: u64 = 16 * 1024;

/// Concludes the attempt of `frame` that is recorded as running. The lease proves that its process has ended.
pub(crate) fn conclude(
    store: &Store,
    frame: &Frame,
    exit: Exit,
    lease: &Lease,
) -> Result<Option<Conclusion>, RuntimeError> {
    let Some(attempt) = store.running_attempt(frame.id)? else { return Ok(None) };
    let mut digest = read_output(lease, &attempt)?;
    let errors = read_errors(store, &attempt)?;
    if digest.result.is_none() || !digest.tasks.is_empty() {
        let written = transcript_of(frame, &attempt).map(|transcript| turn::read(&transcript)).transpose();
        let written = written.map_err(while_trying("read the transcript"))?.unwrap_or_default();
        digest.complete(&written, exit == Exit::Ended || exit.is_stopped(), exit.was_killed() && !exit.is_stopped());
    }
    let outcome = ending::outcome(&digest, exit, &errors);
    // A process that came to its end has written its transcript. One that was killed has perhaps not.
    let killed = digest.result.is_none() || exit.was_killed();
    if exit == Exit::Ended {
        failpoint::around(Step::Sweep, || orphans::end(store.dir().path(), frame.id));
    }
    settle(store, frame, &attempt, &digest, outcome, killed).map(Some)
}

/// Concludes an attempt whose process could not be started.
pub(crate) fn conclude_unstarted(
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
    // Nothing runs while an agent waits, and nothing that outlives claude is to make a request in its name. A program that
    // one that has replied was left to run by itself may live on.
    let replied = matches!(outcome, Outcome::Reply(_));
    if !replied {
        failpoint::around(Step::Sweep, || orphans::end(store.dir().path(), frame.id));
    }
    if digest.result.is_some() {
        let open: Vec<&str> = digest.open_calls.iter().map(|call| call.id.as_str()).collect();
        store.withdraw_calls(attempt.id, &open)?;
    }
    let died = matches!(outcome, Outcome::Died { .. }).then(|| outcome.clone());
    let read = store.read_in(attempt.id)?;
    let told = carried(store, attempt, &read)?;
    let mut lost = lost(&told, digest, &store.shown_in(attempt.id)?);
    let turn = if frame.checkpoint.is_some() { Turn::Later } else { Turn::First };
    jobs::record(store, attempt, &digest.jobs)?;
    let has_jobs = store.jobs(frame.id)?.iter().any(|job| !attempt.carried.contains(&job.id));
    let undelivered = !lost.is_empty() || has_jobs || store.has_undelivered_requests(attempt.id)?;
    let (outcome, in_a_sentence) = on_record(store, frame, attempt, outcome, undelivered, turn)?;
    if replied && !matches!(outcome, Outcome::Reply(_)) {
        failpoint::around(Step::Sweep, || orphans::end(store.dir().path(), frame.id));
    }
    let transcript = transcript_of(frame, attempt);
    let left = Left::of(store, frame, digest, transcript.as_deref(), killed, &told)?;
    if !matches!(left, Left::All) {
        // Whether the conversation has what its agent had read is not known.
        lost.extend(read);
    }
    let verdict = match (verdict(&outcome, turn), &left) {
        (verdict, Left::Nothing) => verdict.without_conversation(),
        (verdict, Left::All | Left::Part(_)) => verdict,
    };
    if verdict.fork == Fork::Keep && verdict.ended != Ended::Done && !frame.launch.no_stale_check {
        stale_files::record(store, frame, attempt.id, &digest.files)?;
    }
    let kept = match (verdict.fork, &transcript) {
        (Fork::Keep, Some(transcript)) => keep(store, frame, attempt, transcript)?,
        (Fork::Keep, None) | (Fork::Discard | Fork::Lost, _) => false,
    };

    let result = digest.result.as_ref().or(digest.interim.as_ref());
    let total_cost_usd = result.map_or(0.0, |result| result.total_cost_usd);
    store.settle(&Settlement {
        frame: frame.id,
        attempt: attempt.id,
        verdict: &verdict,
        outcome: &outcome,
        usage: result.map(|result| result.usage).unwrap_or_default(),
        cost_usd: own_cost(store, frame, digest, total_cost_usd)?,
        total_cost_usd,
        model: digest.model.clone().filter(|_| verdict.fork == Fork::Keep),
        version: digest.version.clone(),
        transcript: transcript.clone(),
        leaves: leaves(&verdict, transcript.as_deref())?,
        situation: situation::at_the_end(frame, attempt.mode.as_deref(), digest, transcript.as_deref(), &told)?,
        suspended: digest.suspended_call().filter(|call| left.is_suspended_at(call)).map(str::to_owned),
        lost,
        denied: denied(store, frame, digest)?,
        trouble: trouble(frame, digest, &left, died.as_ref().unwrap_or(&outcome), &verdict),
    })?;

    store.dir().clear_attempt(frame.id).map_err(while_trying("remove what the attempt needed"))?;
    match (verdict.fork, transcript) {
        (Fork::Discard | Fork::Lost, transcript) => restore::undo(store, frame, transcript.as_deref())?,
        (Fork::Keep, _) if kept => {
            let pruned = checkpoint::prune(store.dir(), frame.id, &store.copies_of(frame.id)?);
            pruned.map_err(while_trying("remove older copies of transcripts"))?;
        }
        (Fork::Keep, _) if verdict.ended != Ended::Done => {
            tracing::warn!(
                "claude left no usable transcript of session {}: it may not be resumable",
                attempt.session.short()
            );
        }
        (Fork::Keep, _) => {}
    }
    let elsewhere = matches!(&outcome, Outcome::Refused(said) if ending::is_about_the_start(said));
    let wants_prompt = ending::wants_prompt(&outcome, digest, elsewhere);
    let pauses_in_a_row = if outcome == Outcome::Started { pauses_in_a_row(store, frame)? } else { 0 };
    Ok(Conclusion { verdict, outcome, in_a_sentence, pauses_in_a_row, wants_prompt })
}

/// Where the conversation of an attempt is.
fn transcript_of(frame: &Frame, attempt: &Attempt) -> Option<PathBuf> {
    locate::find(&config_dir(&frame.launch)?, &frame.cwd, attempt.session)
}

/// A digest of the transcript that an attempt which is not kept leaves behind: if this process dies before it is gone, the next one
/// knows it.
fn leaves(verdict: &Verdict, transcript: Option<&Path>) -> Result<Option<String>, RuntimeError> {
    let transcript = transcript.filter(|_| verdict.fork != Fork::Keep);
    transcript.map_or(Ok(None), restore::digest)
}

/// What the attempt was told came of requests when it began. What came of those in `read` its agent has found out later.
fn carried(store: &Store, attempt: &Attempt, read: &[RequestId]) -> Result<Vec<Delivery>, RuntimeError> {
    let mut deliveries = store.deliveries(attempt.frame)?;
    let carried = |request: &RequestId| attempt.carried.contains(request) && !read.contains(request);
    deliveries.retain(|delivery| carried(&delivery.request));
    Ok(deliveries)
}

/// The requests whose results the agent did not see, though their call was resumed to return them: a user's hook that
/// denies, rewrites or suspends the call has the last word, and so has a rule against the command that returns it.
///
/// `shown`: those whose call has returned them, whatever a user's hook has let the agent see of that.
fn lost(told: &[Delivery], digest: &Digest, shown: &[RequestId]) -> Vec<RequestId> {
    let suspended_again = digest.result.as_ref().and_then(|result| result.deferred_call.as_ref());
    let returned = digest.returned.as_ref();
    let of_call = |delivery: &&Delivery| returned.is_some_and(|back| delivery.call.as_ref() == Some(&back.call));
    // What an approved call returns is the tool's own.
    let results = || told.iter().filter(|delivery| !matches!(delivery.wish, Wish::Permission { .. }));
    let seen = results().filter(of_call).all(|delivery| returned.is_some_and(|back| delivery.result.is_in(back)));
    let lost = results().filter(|delivery| !shown.contains(&delivery.request)).filter(|delivery| {
        let again = suspended_again.is_some() && delivery.call.as_ref() == suspended_again;
        again || (!seen && of_call(delivery))
    });
    lost.map(|delivery| delivery.request).collect()
}

/// The calls that were denied. Those that a person is asked about are on record, with the answer.
fn denied(store: &Store, frame: &Frame, digest: &Digest) -> Result<Vec<Denied>, RuntimeError> {
    let mut listed = Vec::new();
    for denial in digest.denials.listed() {
        let may_be_made_again = denial.denied.said.starts_with(NOT_RUN) || denial.denied.tool == ASK_USER_QUESTION;
        if !may_be_made_again && store.requests_of_call(frame.id, &denial.call)?.is_empty() {
            listed.push(denial);
        }
    }
    Ok(denied::recorded(listed, &digest.asking_hooks))
}

/// Keeps a copy of the transcript. Returns whether there was anything to keep in it.
fn keep(store: &Store, frame: &Frame, attempt: &Attempt, transcript: &Path) -> Result<bool, RuntimeError> {
    match checkpoint::keep(store.dir(), frame.id, attempt.id, transcript) {
        Ok(()) => {
            let kept = tool_results::keep(store.dir(), frame.id, attempt.session, transcript);
            kept.map_err(while_trying("keep copies of the results of tools"))?;
            restore::keep_beside(store, frame, attempt.id, transcript)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        Err(error) => Err(while_trying("keep a copy of the transcript")(error)),
    }
}

/// What the outcome means with what is on record, and the signal in it that stood inside a sentence.
fn on_record(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    outcome: Outcome,
    undelivered: bool,
    turn: Turn,
) -> Result<(Outcome, Option<Signal>), RuntimeError> {
    let mut results = store.deliveries(frame.id)?;
    results.retain(|delivery| attempt.carried.contains(&delivery.request));
    let prompts = results.iter().filter_map(|delivery| Some(delivery.wish.scheduled()?.prompt.as_str()));
    let prompts: Vec<&str> = prompts.collect();
    let results: Vec<&str> = results.iter().map(|delivery| delivery.result.text()).collect();
    let told = frame.trouble.as_ref().map(prompt::of_trouble);
    let task = if turn == Turn::First { task(frame) } else { String::new() };
    let given: Vec<&str> =
        results.iter().copied().chain(prompts).chain(told.as_deref()).chain([task.as_str()]).collect();
    let permission = store.awaits_permission(attempt.id)?;
    let said = match &outcome {
        Outcome::Reply(text) if Signal::on_a_line(text).is_none() => Signal::in_sentences(text),
        _ => Vec::new(),
    };
    let outcome = outcome.on_record(&Record { undelivered, permission, results: &results, given: &given, turn });
    let meant = outcome.signal().filter(|signal| said.contains(signal));
    Ok((outcome, meant))
}

/// What the first prompt of a frame tells its agent to do, or the file that it tells it to read.
fn task(frame: &Frame) -> String {
    match &frame.task {
        Task::Prompt(text) => text.clone(),
        Task::File(path) => {
            let mut text = Vec::new();
            // A file that cannot be read any more holds nothing that the agent could have passed on.
            let _ = File::open(path).and_then(|file| file.take(MOST_INSTRUCTIONS).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        }
        Task::Group(_) => String::new(),
    }
}

/// How often in a row the agent of a frame has said that it waits without a request.
fn pauses_in_a_row(store: &Store, frame: &Frame) -> Result<usize, RuntimeError> {
    let attempts = store.attempts(frame.id)?;
    Ok(attempts.iter().rev().take_while(|attempt| attempt.outcome.as_deref() == Some("started")).count())
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
            attempts.iter().find(|attempt| attempt.id == checkpoint).map_or(0.0, |a| a.total_cost_usd)
        }
        (None, Some(baseline)) if accumulates => baseline.cost_usd,
        _ => return Ok(total),
    };
    Ok(if total >= before { total - before } else { total })
}

fn read_output(lease: &Lease, attempt: &Attempt) -> Result<Digest, RuntimeError> {
    let read = || reader::read(BufReader::new(lease.printed(attempt.output_from)?));
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
    /// What a person should know of it, though nothing went wrong.
    pub(crate) fn notes(&self) -> Vec<Note> {
        /// A new wait may follow another one at once, and another one that.
        const MANY: usize = 3;
        let meant = self.in_a_sentence.map(Note::InASentence);
        let again = (self.pauses_in_a_row >= MANY).then_some(Note::PausesInARow(self.pauses_in_a_row));
        meant.into_iter().chain(again).collect()
    }

    /// What went wrong, for people; `None` when nothing did.
    pub(crate) fn error(&self) -> Option<String> {
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
