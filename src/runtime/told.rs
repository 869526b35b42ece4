//! How an attempt is told what its agent is to know: by prompt, by the call that it waits in, or by a copy of its
//! transcript that holds the results.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{RuntimeError, Settings, meanwhile, while_trying};
use crate::claude::answered::{self, CallResult};
use crate::claude::command::config_dir;
use crate::claude::{question, reopened, transcript};
use crate::core::frame::{Baseline, Frame};
use crate::core::id::{RequestId, SessionId};
use crate::core::prompt::{self, Telling};
use crate::core::request::{Delivery, RequestResult};
use crate::crash::Step;
use crate::store::Store;

/// How an attempt is told what its agent is to know.
pub(super) struct Told {
    /// Its prompt. Empty: it goes on at the call where it stopped.
    pub(super) text: String,
    /// What it is resumed from, when that is not the checkpoint as it is.
    pub(super) transcript: Option<PathBuf>,
    /// The request whose suspended call is resumed to return its result.
    pub(super) to_return: Option<RequestId>,
}

/// How the next attempt of `frame` is told what came of its requests. Writes the transcript that it takes.
pub(super) fn told(
    store: &Store,
    own: &Settings,
    frame: &Frame,
    deliveries: &[Delivery],
    hooks: bool,
) -> Result<Told, RuntimeError> {
    let by_prompt = |text| Told { text, transcript: None, to_return: None };
    let notices = notices(store, own, frame);
    let Some(checkpoint) = frame.checkpoint else {
        let text = prompt::first(frame, deliveries, &notices);
        return Ok(Told { transcript: transcript_of_baseline(store, frame)?, ..by_prompt(text) });
    };
    match prompt::telling(frame, deliveries, &notices, hooks) {
        Telling::Call => {
            // Of Claude Code's own tool for questions there is no program that could be run in its place.
            let as_program = deliveries.first().filter(|delivery| delivery.wish.native_question().is_none());
            let to_return = as_program.map(|delivery| delivery.request);
            Ok(Told { to_return, ..by_prompt(String::new()) })
        }
        Telling::Prompt => Ok(by_prompt(prompt::resume(deliveries, &notices))),
        Telling::Calls => {
            let left = add_results(store, frame, &store.dir().checkpoint(frame.id, checkpoint), deliveries)?;
            if left.len() == deliveries.len() {
                return Ok(by_prompt(prompt::resume(deliveries, &notices)));
            }
            let transcript = Some(store.dir().answered(frame.id));
            Ok(Told { transcript, ..by_prompt(prompt::go_on(&left, &notices)) })
        }
        Telling::Permission { call } => {
            let others: Vec<_> =
                deliveries.iter().filter(|delivery| delivery.call.as_ref() != Some(&call)).cloned().collect();
            if !reopen(store, frame, checkpoint, &call)? {
                return Ok(by_prompt(prompt::resume(deliveries, &notices)));
            }
            let left = add_results(store, frame, &store.dir().answered(frame.id), &others)?;
            // What a prompt tells, the agent hears after the call's result.
            let more = !left.is_empty() || !notices.is_empty();
            let text = if more { prompt::resume(&left, &notices) } else { String::new() };
            Ok(Told { transcript: Some(store.dir().answered(frame.id)), ..by_prompt(text) })
        }
    }
}

/// What the agent has to know besides what came of its requests.
fn notices(store: &Store, own: &Settings, frame: &Frame) -> Vec<String> {
    let wanted = own.stale_check && !frame.launch.no_stale_check;
    let changes = wanted.then(|| meanwhile::notice(store, frame)).flatten();
    frame.trouble.as_ref().map(prompt::of_trouble).into_iter().chain(changes).collect()
}

/// Opens a call again in a copy of the checkpoint. Returns whether that could be done.
fn reopen(store: &Store, frame: &Frame, checkpoint: SessionId, call: &str) -> Result<bool, RuntimeError> {
    let copy = || {
        let from = BufReader::new(File::open(store.dir().checkpoint(frame.id, checkpoint))?);
        let mut to = Vec::new();
        let reopened = reopened::copy(from, call, &mut to)?;
        store.dir().write(Step::Answered, &store.dir().answered(frame.id), &to)?;
        Ok(reopened)
    };
    copy().map_err(while_trying("open a call of the transcript again"))
}

/// Adds results to a copy of a transcript. Returns those that have no open call in it.
fn add_results(
    store: &Store,
    frame: &Frame,
    transcript: &Path,
    deliveries: &[Delivery],
) -> Result<Vec<Delivery>, RuntimeError> {
    let results = results_of_calls(deliveries);
    let copy = || {
        let from = BufReader::new(File::open(transcript)?);
        let mut to = Vec::new();
        let left = answered::copy(from, results, &mut to)?;
        store.dir().write(Step::Answered, &store.dir().answered(frame.id), &to)?;
        Ok(left)
    };
    let left = copy().map_err(while_trying("add results to the transcript"))?;
    let given = |delivery: &&Delivery| delivery.call.as_ref().is_none_or(|call| left.contains_key(call));
    Ok(deliveries.iter().filter(given).cloned().collect())
}

/// The transcript of the conversation that a frame begins with, where the session alone does not do: Claude Code looks for
/// sessions of the working directory, and a worktree is another one than that in which the conversation was held.
///
/// If calls stand suspended in it, that is a copy. Their results go to the agent that made them; Claude Code would have the
/// calls made anew in the fork.
fn transcript_of_baseline(store: &Store, frame: &Frame) -> Result<Option<PathBuf>, RuntimeError> {
    const ELSEWHERE: &str = "This call belongs to the conversation that yours began with. Its result goes there.";
    let (Some(Baseline { session, .. }), Some(config)) = (frame.baseline, config_dir(&frame.launch)) else {
        return Ok(None);
    };
    let Some(found) = transcript::find(&config, &frame.cwd, session) else { return Ok(None) };
    let close = || {
        let open = answered::suspended_calls(BufReader::new(File::open(&found)?))?;
        if open.is_empty() {
            let is_elsewhere = found != transcript::expected(&config, &frame.cwd, session);
            return Ok(Some(found.clone()).filter(|_| is_elsewhere && frame.launch.worktree.is_some()));
        }
        let result = CallResult { text: ELSEWHERE.to_owned(), is_error: false };
        let results = open.into_iter().map(|call| (call, result.clone())).collect();
        let mut to = Vec::new();
        answered::copy(BufReader::new(File::open(&found)?), results, &mut to)?;
        let file = store.dir().answered(frame.id);
        store.dir().write(Step::Answered, &file, &to)?;
        Ok(Some(file))
    };
    close().map_err(while_trying("copy the conversation to begin with"))
}

/// The result of each call. Several questions of one call have their answers in one result.
fn results_of_calls(deliveries: &[Delivery]) -> HashMap<String, CallResult> {
    let mut results = HashMap::new();
    let mut answers: HashMap<&String, Vec<(&str, &str)>> = HashMap::new();
    for delivery in deliveries {
        let Some(call) = &delivery.call else { continue };
        match (delivery.wish.native_question(), &delivery.result) {
            (Some(question), RequestResult::Text(answer)) => answers.entry(call).or_default().push((question, answer)),
            (_, RequestResult::Text(text)) => {
                results.insert(call.clone(), CallResult { text: text.clone(), is_error: false });
            }
            (_, RequestResult::Failed(why)) => {
                results.insert(call.clone(), CallResult { text: why.clone(), is_error: true });
            }
        }
    }
    let answered = |answers: Vec<_>| CallResult { text: question::result(&answers), is_error: false };
    results.extend(answers.into_iter().map(|(call, answers)| (call.clone(), answered(answers))));
    results
}
