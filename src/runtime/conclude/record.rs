//! Writes the files that a decision depends on to disk, and then records the decision.

use std::io;
use std::path::Path;

use crate::core::attempt::decision::{Decision, Fate};
use crate::core::attempt::ending::Ending;
use crate::core::attempt::meaning::Meaning;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{Ended, FailureKind};
use crate::core::id::{AttemptId, FrameId};
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::Stop;
use crate::runtime::conclude::gather::{Gathered, sweep};
use crate::runtime::conclude::report;
use crate::runtime::delivery::{restored_situation, stale_files};
use crate::runtime::recovery::{diverged_session, restore};
use crate::runtime::requests::answer_files;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::{checkpoint, tool_results};
use crate::store::{Attempt, AttemptEnd, Requests, Store};

/// Records the decision. Returns the attempts whose copies are needed, if a copy of this one's conversation exists.
pub(super) fn record(
    store: &Store,
    frame: &Frame,
    gathered: &Gathered,
    decision: &Decision,
) -> Result<Option<Vec<AttemptId>>, RuntimeError> {
    let Gathered { attempt, digest, .. } = gathered;
    let transcript = gathered.transcript.as_deref();
    if !gathered.is_swept && !matches!(decision.meaning, Meaning::Ended(Ending::Reply(_))) {
        sweep(store, frame.id, gathered.facts.is_abandoned);
    }
    let is_kept = decision.session == Fate::Keep;
    if is_kept && decision.frame != Ended::Done && !frame.launch.no_stale_check {
        stale_files::record(store, frame, attempt.id, &digest.calls.files)?;
    }
    let has_copy = match transcript.filter(|_| is_kept) {
        Some(transcript) => keep(store, frame, attempt, transcript)?,
        None => false,
    };
    answer_files::note_earlier(store, attempt.id, gathered.ended)?;
    let ended = store.end_attempt(&AttemptEnd {
        frame: frame.id,
        attempt: attempt.id,
        decision,
        ended: gathered.ended,
        ran: gathered.ran,
        spending: gathered.spending,
        total: gathered.total,
        model: digest.model.clone(),
        version: digest.version.clone(),
        transcript: gathered.transcript.clone(),
        // If this process dies before the remains are deleted, the next one recognises them.
        leaves: transcript.filter(|_| !is_kept).map_or(Ok(None), restore::digest)?,
        situation: match decision.session {
            _ if matches!(decision.meaning, Meaning::Summary(_)) => restored_situation::in_new_session(frame),
            Fate::Lost => restored_situation::after_loss(frame, gathered.situation.clone()),
            Fate::Keep | Fate::Discard => gathered.situation.clone(),
        },
        suspended: gathered.suspended.clone(),
        denied: gathered.denied.clone(),
        stop: gathered.facts.stop.clone(),
        report: steering_report(store, frame, gathered, decision)?,
        left_behind: left_behind(store, frame, decision)?,
        unseen_messages: gathered.unseen_messages.clone(),
        context: digest.size.known(),
        pushed: gathered.pushed.clone(),
    })?;
    Ok(has_copy.then_some(ended.copies))
}

/// What an agent that was stopped has done so far.
fn steering_report(
    store: &Store,
    frame: &Frame,
    gathered: &Gathered,
    decision: &Decision,
) -> Result<Option<String>, RuntimeError> {
    let is_over = matches!(&decision.frame, Ended::Fail(failure) if failure.kind == FailureKind::Stopped);
    let stop = gathered.facts.stop.as_ref().filter(|_| is_over);
    stop.map(|stop| report::read(store, frame.id, stop)).transpose()
}

/// Reports on the resting agents in the background of an agent that fails. They are stopped with it.
fn left_behind(store: &Store, frame: &Frame, decision: &Decision) -> Result<Vec<(FrameId, String)>, RuntimeError> {
    if !matches!(decision.frame, Ended::Fail(_)) {
        return Ok(Vec::new());
    }
    let requests = store.requests(Requests::Background(frame.id))?;
    let reports = requests.into_iter().filter_map(|(request, _)| {
        let RequestKind::Spawn { child, .. } = request.kind else { return None };
        Some(report::read_resting(store, child, &Stop::of_left_behind(frame.id, child)))
    });
    Ok(reports.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Keeps a copy of the transcript. Returns whether there was anything to keep.
fn keep(store: &Store, frame: &Frame, attempt: &Attempt, transcript: &Path) -> Result<bool, RuntimeError> {
    let copied = match diverged_session::without_others(store, frame, attempt, transcript)? {
        Some(own) => checkpoint::keep_conversation(store.dir(), frame.id, attempt.id, &own),
        None => checkpoint::keep(store.dir(), frame.id, attempt.id, transcript),
    };
    match copied {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::{Attempts, testing};

    #[test]
    fn a_transcript_without_a_whole_line_is_none_and_one_that_cannot_be_read_an_error() {
        let (temp, store) = testing::store();
        let caller = store.start(store.root());
        store.dir().frame_dir(caller.frame).unwrap();
        let frame = store.frame(caller.frame).unwrap().unwrap();
        let attempt = store.attempts(Attempts::RunningOf(caller.frame)).unwrap().remove(0);
        let transcript = temp.path().join("session.jsonl");
        let keep = || keep(&store, &frame, &attempt, &transcript);
        assert!(keep().is_err(), "it does not exist");
        fs::write(&transcript, "{\"type\":\"us").unwrap();
        assert!(!keep().unwrap());
        fs::write(&transcript, "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":null}\n").unwrap();
        assert!(keep().unwrap());
        assert!(store.dir().checkpoint(frame.id, attempt.id).is_file());
    }
}
