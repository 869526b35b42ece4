//! How an attempt is told what its agent is to know: by prompt, by the call that it waits in, or by a copy of its
//! transcript that holds the results.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::claude::invocation::user_hooks;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::hook::BASH;
use crate::claude::tools::{ask_user_question, exit_plan_mode};
use crate::claude::transcript::ancestry::Broken;
use crate::claude::transcript::insert_results::{self, Answered, CallResult};
use crate::claude::transcript::reopen;
use crate::claude::transcript::rewrite::Entries;
use crate::core::attempt::delivery::{self, Telling};
use crate::core::attempt::prompt;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::request::{Delivery, RequestResult, Wish};
use crate::failpoint::Step;
use crate::runtime::delivery::situation::Restored;
use crate::runtime::delivery::stale_files;
use crate::runtime::{RuntimeError, Settings, while_trying};
use crate::store::Store;

/// How an attempt is told what its agent is to know.
pub(crate) struct Told {
    /// Its prompt. Empty: it goes on at the call where it stopped.
    pub(crate) text: String,
    /// The file that it continues from.
    pub(crate) transcript: Option<PathBuf>,
    /// The request whose suspended call is resumed to return its result.
    pub(crate) to_return: Option<RequestId>,
    /// What it is told beside the result of the call that it is resumed at.
    pub(crate) notice: Option<String>,
}

/// What may be done to tell it.
pub(crate) struct How {
    /// Whether a suspended call can return its result.
    pub(crate) hooks: bool,
    /// The file with the conversation that is continued.
    pub(crate) source: Option<PathBuf>,
}

/// How the next attempt of `frame` is told what came of its requests. Writes the transcript that it takes.
pub(crate) fn told(
    store: &Store,
    own: &Settings,
    frame: &Frame,
    deliveries: &[Delivery],
    restored: &Restored,
    how: &How,
) -> Result<Told, RuntimeError> {
    let by_prompt = |text| Told { text, transcript: how.source.clone(), to_return: None, notice: None };
    let mut notices = notices(store, own, frame);
    let telling = delivery::telling(frame, deliveries, &notices, how.hooks);
    if telling != Telling::Call {
        notices.extend(restored.notices(is_command(&telling, deliveries)));
    }
    let deliveries = &plans_in_words(deliveries);
    // What a call returns, the hooks of the user are run on.
    let is_returned = telling == Telling::Call && frame.checkpoint.is_some();
    let deliveries = &if is_returned { deliveries.to_vec() } else { to_fetch(frame, deliveries) };
    let Some(checkpoint) = frame.checkpoint else {
        let text = prompt::first(frame, deliveries, &notices);
        return Ok(Told {
            transcript: transcript_of_baseline(store, frame, how.source.as_deref())?,
            ..by_prompt(text)
        });
    };
    match telling {
        Telling::Call => {
            // Of Claude Code's own tool for questions there is no program that could be run in its place.
            let as_program = deliveries.first().filter(|delivery| delivery.wish.native_question().is_none());
            let to_return = as_program.map(|delivery| delivery.request);
            let notice: Vec<String> = restored.notices(to_return.is_some()).collect();
            let notice = Some(notice.join("\n")).filter(|notice| !notice.is_empty());
            Ok(Told { to_return, notice, ..by_prompt(String::new()) })
        }
        Telling::Prompt => Ok(by_prompt(prompt::resume(deliveries, &notices))),
        Telling::Calls => {
            let left = add_results(store, frame, &store.dir().checkpoint(frame.id, checkpoint), deliveries)?;
            if left.len() == deliveries.len() {
                return Ok(by_prompt(prompt::resume(deliveries, &notices)));
            }
            let transcript = Some(store.dir().answered(frame.id));
            // A call that its agent wanted to be woken by has returned when it is given the prompt.
            let is_told = |delivery: &&Delivery| delivery.wish.scheduled().is_some() || left.contains(delivery);
            let others: Vec<_> = deliveries.iter().filter(is_told).cloned().collect();
            Ok(Told { transcript, ..by_prompt(prompt::go_on(&others, &notices)) })
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

/// Whether the first thing that the agent does is a command that somebody has allowed.
fn is_command(telling: &Telling, deliveries: &[Delivery]) -> bool {
    let Telling::Permission { call } = telling else { return false };
    let of_call = deliveries.iter().filter(|delivery| delivery.call.as_ref() == Some(call));
    of_call.into_iter().any(|delivery| matches!(&delivery.wish, Wish::Permission { tool, .. } if tool == BASH))
}

/// The deliveries with what an agent is told of its plan in the place of a person's answer.
fn plans_in_words(deliveries: &[Delivery]) -> Vec<Delivery> {
    let in_words = |delivery: &Delivery| match &delivery.wish {
        Wish::Plan(plan) => exit_plan_mode::result(plan, delivery.result.text()),
        _ => None,
    };
    let told = |delivery: &Delivery| Delivery {
        result: in_words(delivery).unwrap_or_else(|| delivery.result.clone()),
        ..delivery.clone()
    };
    deliveries.iter().map(told).collect()
}

/// The deliveries as they may stand in a prompt or a transcript. A result that hooks of the user are to see first, the agent
/// fetches with a command: they are run after it.
fn to_fetch(frame: &Frame, deliveries: &[Delivery]) -> Vec<Delivery> {
    let run_after = |tool| user_hooks::run_after(tool, &frame.cwd, &frame.launch);
    let [of_commands, of_questions] = match deliveries {
        [] => [false; 2],
        _ => [BASH, ASK_USER_QUESTION].map(run_after),
    };
    let fetched = |delivery: &Delivery| of_commands && (of_questions || delivery.wish.native_question().is_none());
    let deliveries = deliveries.iter().cloned();
    deliveries.map(|delivery| if fetched(&delivery) { delivery.to_fetch() } else { delivery }).collect()
}

/// What the agent has to know besides what came of its requests.
fn notices(store: &Store, own: &Settings, frame: &Frame) -> Vec<String> {
    let wanted = own.stale_check && !frame.launch.no_stale_check;
    let changes = wanted.then(|| stale_files::notice(store, frame)).flatten();
    frame.trouble.as_ref().map(prompt::of_trouble).into_iter().chain(changes).collect()
}

/// Opens a call again in a copy of the checkpoint. Returns whether that could be done.
fn reopen(store: &Store, frame: &Frame, checkpoint: AttemptId, call: &str) -> Result<bool, RuntimeError> {
    let copy = || {
        let transcript = entries(&store.dir().checkpoint(frame.id, checkpoint))?;
        let Some(text) = unless_broken(frame, reopen::copy(&transcript, call)).flatten() else { return Ok(false) };
        store.dir().write(Step::Answered, &store.dir().answered(frame.id), &text)?;
        Ok(true)
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
        let copied = insert_results::copy(&entries(transcript)?, results);
        let Some(Answered { text, others }) = unless_broken(frame, copied) else { return Ok(None) };
        store.dir().write(Step::Answered, &store.dir().answered(frame.id), &text)?;
        Ok(Some(others))
    };
    let others = copy().map_err(while_trying("add results to the transcript"))?;
    let given = |call: &String| others.as_ref().is_some_and(|others| !others.contains_key(call));
    let is_other = |delivery: &&Delivery| !delivery.call.as_ref().is_some_and(given);
    Ok(deliveries.iter().filter(is_other).cloned().collect())
}

fn entries(transcript: &Path) -> io::Result<Entries> {
    Entries::read(BufReader::new(File::open(transcript)?))
}

/// A copy that would lack some of the conversation is not made: what it would tell, a prompt tells.
fn unless_broken<T>(frame: &Frame, copied: Result<T, Broken>) -> Option<T> {
    let warn = |broken: &Broken| {
        tracing::warn!(
            "{}: the results come by prompt, for the transcript cannot take them: {broken}",
            frame.id.short()
        );
    };
    copied.inspect_err(warn).ok()
}

/// The transcript of the conversation that a frame begins with. If calls stand suspended in it, that is a copy. Their results go
/// to the agent that made them; Claude Code would have the calls made anew in the fork.
fn transcript_of_baseline(
    store: &Store,
    frame: &Frame,
    source: Option<&Path>,
) -> Result<Option<PathBuf>, RuntimeError> {
    const ELSEWHERE: &str = "This call belongs to the conversation that yours began with. Its result goes there.";
    let Some(source) = source else { return Ok(None) };
    let close = || {
        let conversation = entries(source)?;
        let open = insert_results::suspended_calls(&conversation);
        if open.is_empty() {
            return Ok(source.to_owned());
        }
        let result = CallResult { text: ELSEWHERE.to_owned(), is_error: false };
        let results = open.into_iter().map(|call| (call, result.clone())).collect();
        let copied = insert_results::copy(&conversation, results);
        let Answered { text, .. } = copied.map_err(|broken| io::Error::new(io::ErrorKind::InvalidData, broken))?;
        let file = store.dir().answered(frame.id);
        store.dir().write(Step::Answered, &file, &text)?;
        Ok(file)
    };
    close().map(Some).map_err(while_trying("copy the conversation to begin with"))
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
    let answered = |answers: Vec<_>| CallResult { text: ask_user_question::result(&answers), is_error: false };
    results.extend(answers.into_iter().map(|(call, answers)| (call.clone(), answered(answers))));
    results
}
