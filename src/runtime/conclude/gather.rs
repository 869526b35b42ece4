//! Gathers the facts about an attempt that has ended.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::claude::options::limits_left;
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::output_reader;
use crate::claude::transcript::turn;
use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::denied_call::Denied;
use crate::core::agent::reply_schema::ReplyShape;
use crate::core::agent::situation::Situation;
use crate::core::agent::usage::prices::Prices;
use crate::core::agent::usage::{Spending, Totals};
use crate::core::attempt::continuation::Way;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::facts::Facts;
use crate::core::attempt::meaning::{self, Meaning};
use crate::core::attempt::salvaged::Salvage;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, FrameId, MessageId};
use crate::core::steering::message::Message;
use crate::failpoint::{self, Step};
use crate::runtime::conclude::attempt_cost;
use crate::runtime::conclude::claude_output::{self, Printed, transcript_of};
use crate::runtime::conclude::salvage::{self, Deliveries, Salvaged};
use crate::runtime::conclude::unseen::{self, unseen, unseen_in_time, unseen_looked_up};
use crate::runtime::delivery::restored_situation;
use crate::runtime::recovery::portable_worktree::PortableWorktree;
use crate::runtime::requests::{posted, reply_check};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::StoreError;
use crate::store::{AtEnd, Attempt, Caller, PrintedRequests, Requests, Store};

/// Which run of the program started the attempt to conclude.
#[derive(Clone, Debug)]
pub(crate) enum Begun {
    /// This run of the program. `silent`: the way in which it continues a conversation without a prompt, if it does; `ran`: how
    /// long it ran; `pushed`: how much of its worktree is on the remote.
    Here { silent: Option<Way>, ran: Option<Duration>, pushed: Option<(FrameId, Pushed)> },
    /// An earlier run, which has ended.
    Earlier,
}

impl Begun {
    fn silent(&self) -> Option<Way> {
        match self {
            Self::Here { silent, .. } => *silent,
            Self::Earlier => None,
        }
    }

    fn ran(&self) -> Option<Duration> {
        match self {
            Self::Here { ran, .. } => *ran,
            Self::Earlier => None,
        }
    }

    fn is_abandoned(&self) -> bool {
        matches!(self, Self::Earlier)
    }
}

/// The facts about an attempt that has ended.
pub(super) struct Gathered {
    /// The facts that the decision depends on.
    pub(super) facts: Facts,
    pub(super) attempt: Attempt,
    pub(super) digest: Digest,
    pub(super) transcript: Option<PathBuf>,
    /// The call at which its session is suspended.
    pub(super) suspended: Option<String>,
    pub(super) situation: Situation,
    pub(super) denied: Vec<Denied>,
    /// When it ended, and so the latest time at which its agent can have written anything. `None`: its end was not observed.
    pub(super) ended: Option<Timestamp>,
    /// How long it ran, if that was measured.
    pub(super) ran: Option<Duration>,
    pub(super) spending: Spending,
    /// What its session had spent when it ended.
    pub(super) total: Totals,
    /// The messages that its agent was given but that are not in its conversation.
    pub(super) unseen_messages: Vec<MessageId>,
    /// Whether the processes that outlived its `claude` were ended.
    pub(super) is_swept: bool,
    /// How much of its worktree is on the remote, and the frame to which that worktree belongs.
    pub(super) pushed: Option<(FrameId, Pushed)>,
}

/// How much of its worktree is on the remote. If it ran on another host, nobody knows its last files, and other hosts continue with
/// those that were pushed before.
fn pushed(
    store: &Store,
    frame: &Frame,
    begun: Begun,
    attempt: &Attempt,
) -> Result<Option<(FrameId, Pushed)>, StoreError> {
    match begun {
        Begun::Here { pushed, .. } => Ok(pushed),
        Begun::Earlier if attempt.host.is_some() => Ok(None),
        Begun::Earlier => {
            let portable = PortableWorktree::of(store, frame)?;
            Ok(portable.map(|portable| portable.unpushed("the process that runs the chain was killed")))
        }
    }
}

/// Gathers the facts about an attempt, and completes the records of its requests.
pub(super) fn gather(
    store: &Store,
    prices: &Prices,
    frame: &Frame,
    begun: Begun,
    attempt: Attempt,
    printed: Printed,
) -> Result<Gathered, RuntimeError> {
    let is_swept = is_to_be_swept(frame, &printed);
    if is_swept {
        sweep(store, frame.id, begun.is_abandoned());
    }
    // Content that files get from now on cannot be mistaken for the agent's: its questions are listed before its end is
    // recorded.
    let ended = if begun.is_abandoned() { printed_last(store, frame.id) } else { Some(Timestamp::now()) };
    complete_requests(store, frame, &attempt, &printed)?;
    let AtEnd { given, looked_up, in_time, shown, has_open, has_background, awaits_permission, messages } =
        store.at_end(frame.id, attempt.id)?;
    let results = given.iter().map(|delivery| delivery.result.text().to_owned()).collect();
    let texts = unseen::texts(frame, &given, &messages);
    // Results that the agent looked up itself were not given to it at the start.
    let (looked_up, given): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|delivery| looked_up.contains(&delivery.request));
    let (in_time, given): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|delivery| in_time.contains(&delivery.request));

    let transcript = transcript_of(frame, &attempt);
    let undelivered = store.requests(Requests::Undelivered(attempt.id))?.into_iter();
    let in_time_calls = in_time.iter().filter_map(|delivery| delivery.call.clone());
    let to_come = undelivered.filter_map(|(request, _)| request.call).chain(in_time_calls).collect();
    let deliveries = Deliveries { given: &given, in_time: &in_time, to_come: &to_come };
    let output = || store.dir().open_printed(frame.id, attempt.output_from).map(BufReader::new);
    let may_lack_its_end = printed.was_killed && printed.digest.result.is_some();
    let last_message = may_lack_its_end.then(|| output().and_then(output_reader::last_message)).transpose();
    let last_message = last_message.map_err(while_trying(READ_PRINTED))?.flatten();
    let Salvaged { salvage, suspended, uncertain_calls, lacks } =
        salvage::look(store, frame, &printed, transcript.as_deref(), last_message.as_deref(), deliveries)?;
    let lost = lost_result(&printed.digest, transcript.as_deref())?;
    let mut unseen = unseen(&given, &printed.digest, &shown, lost.as_deref());
    if salvage != Salvage::Nothing {
        unseen.extend(unseen_in_time(&in_time, &shown, output).map_err(while_trying(READ_PRINTED))?);
    }
    unseen.extend(lacks);
    // Otherwise the agent has used the result, in whatever command.
    let looked_up = match salvage {
        Salvage::Whole if uncertain_calls.is_empty() => Vec::new(),
        _ => unseen_looked_up(&looked_up, transcript.as_deref()).map_err(while_trying("read the transcript"))?,
    };
    let mut unseen_messages = unseen_messages(&messages, transcript.as_deref(), salvage)?;
    if salvage == Salvage::Nothing && matches!(printed.ending, Ending::Reply(_)) {
        // It has read its prompt, or it could not have replied.
        unseen_messages.retain(|message| !message.instructs && message.made >= attempt.began);
    }
    let unseen_messages: Vec<MessageId> = unseen_messages.iter().map(|message| message.id).collect();
    let ended_beside = if printed.was_ended { printed.digest.beside_result.clone() } else { Vec::new() };
    let Printed { digest, ending, was_killed, .. } = printed;
    let ending = match ending {
        Ending::Error(why) if attempt.summarises.is_some() && digest.worked && limits_left::are_turns_used(&why) => {
            Ending::Error("the agent called tools again and again".to_owned())
        }
        ending => ending,
    };
    let attempts = store.attempts(frame.id)?;
    let shape = match &ending {
        Ending::Reply(text) if attempt.summarises.is_none() => reply_check::shape(frame.launch.schema.as_ref(), text),
        _ => Ok(ReplyShape::Free),
    };
    let mut facts = Facts {
        ending,
        has_checkpoint: frame.checkpoint.is_some(),
        begins_afresh: frame.summary().is_some(),
        has_requests: has_open,
        has_background,
        awaits_approval: awaits_permission,
        unseen,
        looked_up,
        results,
        texts,
        salvage,
        uncertain_calls,
        trouble: frame.trouble.clone(),
        earlier_pauses: pauses_before(&attempts, attempt.id),
        silent: begun.silent(),
        was_killed,
        is_abandoned: begun.is_abandoned(),
        stop: None,
        has_messages: false,
        ended_beside,
        shape: shape.map_err(while_trying("check the reply"))?,
        was_corrected: meaning::was_corrected(outcomes_before(&attempts, attempt.id)),
        spoke: digest.spoke,
        summarises: attempt.summarises.map(|_| frame.summary_lacks().unwrap_or_default().to_vec()),
    };
    steered(store, frame.id, &unseen_messages, &mut facts)?;
    let (spending, total) = attempt_cost::spent(store, prices, frame, &attempts, &digest, transcript.as_deref())?;
    let ends_turn = matches!(facts.ending, Ending::Reply(_));
    Ok(Gathered {
        facts,
        ended,
        ran: begun.ran(),
        pushed: pushed(store, frame, begun, &attempt)?,
        situation: restored_situation::at_the_end(
            frame,
            attempt.mode.as_deref(),
            &digest,
            transcript.as_deref(),
            &given,
            ends_turn,
        )?,
        denied: claude_output::denied(store, frame, &digest)?,
        spending,
        total,
        attempt,
        digest,
        transcript,
        suspended,
        unseen_messages,
        is_swept,
    })
}

/// Nothing may run while an agent waits, and no process that outlives `claude` may make a request in the agent's name. After a
/// reply, a program that was deliberately left running may continue, unless the agent asks in a file, which that program could
/// answer.
fn is_to_be_swept(frame: &Frame, printed: &Printed) -> bool {
    match &printed.ending {
        Ending::Reply(text) => printed.was_ended || posted::is_any(frame, text),
        _ => true,
    }
}

/// Adds the orders of people and agents above. `unseen`: the messages that were given in the attempt, and that its conversation lacks.
pub(super) fn steered(
    store: &Store,
    frame: FrameId,
    unseen: &[MessageId],
    facts: &mut Facts,
) -> Result<(), RuntimeError> {
    let wanted = store.steering(frame)?;
    // A whole conversation is lost, not a message.
    let is_unseen = !unseen.is_empty() && facts.salvage != Salvage::Nothing;
    (facts.has_messages, facts.stop) = (wanted.has_news() || is_unseen, wanted.stop);
    Ok(())
}

/// The call whose result was provided from outside, if its agent continued without it.
fn lost_result(digest: &Digest, transcript: Option<&Path>) -> Result<Option<String>, RuntimeError> {
    let (Some(call), Some(transcript), true, None) =
        (&digest.suspended_again, transcript, digest.worked, &digest.returned)
    else {
        return Ok(None);
    };
    let lacks = turn::lacks_result(transcript, call).map_err(while_trying("read the transcript"))?;
    Ok(lacks.then(|| call.clone()))
}

/// The `messages` that a conversation does not contain. The conversation is only read if the agent was given messages.
fn unseen_messages<'a>(
    messages: &'a [Message],
    transcript: Option<&Path>,
    salvage: Salvage,
) -> Result<Vec<&'a Message>, RuntimeError> {
    let read = || transcript.map(fs::read).transpose().map_err(while_trying("read the transcript"));
    let written = if messages.is_empty() { None } else { read()? };
    let unseen = |message: &&'a Message| match &written {
        Some(text) => !message.is_in(&String::from_utf8_lossy(text)),
        None => salvage != Salvage::Whole,
    };
    Ok(messages.iter().filter(unseen).collect())
}

/// Ends the processes that carry the mark of a frame.
pub(super) fn sweep(store: &Store, frame: FrameId, is_abandoned: bool) {
    let left_by = if is_abandoned { LeftBy::Another { ended: None } } else { LeftBy::This };
    failpoint::around(Step::Sweep, || orphan_processes::end(store.dir().path(), frame, left_by));
}

/// When an agent last printed something. If its runner has died, this is the last known time of the attempt.
fn printed_last(store: &Store, frame: FrameId) -> Option<Timestamp> {
    fs::metadata(store.dir().printed(frame)).ok()?.modified().ok()?.try_into().ok()
}

/// Withdraws the requests whose calls were not suspended after all, and records the jobs that no hook recorded and the questions
/// that a reply names.
fn complete_requests(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    Printed { digest, ending, .. }: &Printed,
) -> Result<(), RuntimeError> {
    let caller = Caller { frame: frame.id, attempt: attempt.id };
    let open: Vec<&str> = digest.calls.open.iter().map(|call| call.id.as_str()).collect();
    let returned: Vec<&str> = digest.calls.returned.iter().map(String::as_str).collect();
    let (open, made) = (digest.result.is_some().then_some(open.as_slice()), claude_output::made(&digest.jobs));
    let removed = &digest.jobs.removed;
    if open.is_some() || !made.is_empty() || !removed.is_empty() {
        store.complete_requests(caller, PrintedRequests { open, returned: &returned, made: &made, removed })?;
    }
    match ending {
        Ending::Reply(text) if attempt.summarises.is_none() => posted::record(store, frame, caller, text),
        _ => Ok(()),
    }
}

/// How many consecutive attempts before this one ended with an agent that waits without a request.
fn pauses_before(attempts: &[Attempt], this: AttemptId) -> usize {
    outcomes_before(attempts, this).take_while(|outcome| *outcome == Meaning::Started.name()).count()
}

/// The outcomes of earlier attempts, the latest first.
fn outcomes_before(attempts: &[Attempt], this: AttemptId) -> impl Iterator<Item = &str> {
    let before = attempts.iter().rev().filter(move |attempt| attempt.id != this);
    before.map(|attempt| attempt.outcome.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::meaning::Meaning;
    use crate::store::testing;

    fn message(text: &str) -> Message {
        let (made, delivered_in, sender, reply) = (Timestamp::UNIX_EPOCH, None, None, None);
        Message { id: MessageId::random(), made, delivered_in, instructs: false, sender, text: text.to_owned(), reply }
    }

    #[test]
    fn a_message_is_unseen_if_the_conversation_lacks_it_or_was_lost() {
        let (seen, other) = (message("to everybody"), message("to everybody"));
        let temp = tempfile::tempdir().unwrap();
        let transcript = temp.path().join("session.jsonl");
        fs::write(&transcript, format!("A person tells you (message {}).\n", seen.id.short())).unwrap();
        let both = [seen, other];
        let unseen = |transcript, salvage| {
            let unseen = unseen_messages(&both, transcript, salvage).unwrap();
            unseen.iter().map(|message| message.id).collect::<Vec<_>>()
        };
        for salvage in [Salvage::Whole, Salvage::Part, Salvage::Nothing] {
            assert_eq!(unseen(Some(transcript.as_path()), salvage), [both[1].id], "{salvage:?}");
        }
        // Claude Code keeps no transcript, and the agent has ended normally.
        assert_eq!(unseen(None, Salvage::Whole), []);
        assert_eq!(unseen(None, Salvage::Nothing), [both[0].id, both[1].id]);
        // Without messages, a transcript that cannot be read is harmless.
        assert!(unseen_messages(&[], Some(Path::new("/nowhere")), Salvage::Part).unwrap().is_empty());
        assert!(unseen_messages(&both, Some(Path::new("/nowhere")), Salvage::Part).is_err());
    }

    #[test]
    fn pauses_count_until_the_last_attempt_that_did_something_else() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let any = store.attempts(caller.frame).unwrap().remove(0);
        let attempt = |outcome: Option<&str>| Attempt {
            id: AttemptId::random(),
            outcome: outcome.map(str::to_owned),
            ..any.clone()
        };
        let pause = || attempt(Some(Meaning::Started.name()));
        let this = attempt(None);
        let before = |earlier: Vec<Attempt>| {
            pauses_before(&earlier.into_iter().chain([this.clone()]).collect::<Vec<_>>(), this.id)
        };
        assert_eq!(before(vec![]), 0);
        assert_eq!(before(vec![pause(), pause()]), 2);
        assert_eq!(before(vec![pause(), pause(), attempt(Some("reply"))]), 0);
        assert_eq!(before(vec![pause(), attempt(Some("reply")), pause()]), 1);
    }

    #[test]
    fn an_attempt_whose_runner_died_ended_when_it_printed_something_last() {
        let (_temp, store) = testing::store();
        let frame = store.root();
        assert_eq!(printed_last(&store, frame), None);
        let output = store.dir().open_output(frame).unwrap();
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        output.set_modified(at.into()).unwrap();
        assert_eq!(printed_last(&store, frame), Some(at));
        let here = Begun::Here { silent: Some(Way::Fork), ran: None, pushed: None };
        assert_eq!(
            [here, Begun::Earlier].map(|begun| (begun.silent(), begun.is_abandoned())),
            [(Some(Way::Fork), false), (None, true)]
        );
    }
}
