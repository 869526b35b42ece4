//! Copies of transcripts with results inserted, for agents that cannot receive them in another way.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::claude::tools::ask_user_question;
use crate::claude::transcript::ancestry::Broken;
use crate::claude::transcript::insert_results::{self, CallResult, OneOpen, WithResults};
use crate::claude::transcript::reopen;
use crate::claude::transcript::rewrite::Entries;
use crate::core::attempt::prompt;
use crate::core::chain::frame::Frame;
use crate::core::id::AttemptId;
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::failpoint::Step;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Requests, Store};

/// Reopens a call in a copy of the checkpoint. Returns whether that was possible.
pub(super) fn with_open_call(
    store: &Store,
    frame: &Frame,
    checkpoint: AttemptId,
    call: &str,
) -> Result<bool, RuntimeError> {
    let copy = || {
        let transcript = entries(&store.dir().checkpoint(frame.id, checkpoint))?;
        let Some(text) = unless_broken(frame, reopen::copy(&transcript, call)).flatten() else { return Ok(false) };
        store.dir().write(Step::Answered, &store.dir().answered(frame.id), &text)?;
        Ok(true)
    };
    copy().map_err(while_trying("open a call of the transcript again"))
}

/// What an agent is given on standard input.
pub(super) struct ForInput {
    /// The result of its open call.
    pub result: CallResult,
    /// The results that have no open call.
    pub others: Vec<Delivery>,
    /// The copy of the transcript in which only that call is open; `None`: the transcript itself is suitable.
    pub copy: Option<PathBuf>,
}

/// Adds results to a copy of a transcript, except for `call`, which stays open. `None`: not possible.
pub(super) fn with_one_open_call(
    store: &Store,
    frame: &Frame,
    transcript: &Path,
    deliveries: &[Delivery],
    call: &str,
) -> Result<Option<ForInput>, RuntimeError> {
    let mut results = as_of_commands(results_of_calls(deliveries));
    let copy = || {
        let left = insert_results::leaving_open(&entries(transcript)?, call, &results);
        let Some(OneOpen { text, others }) = unless_broken(frame, left).flatten() else { return Ok(None) };
        let file = store.dir().answered(frame.id);
        if let Some(text) = &text {
            store.dir().write(Step::Answered, &file, text)?;
        }
        Ok(Some((others, text.map(|_| file))))
    };
    let copied = copy().map_err(while_trying("add results to the transcript"))?;
    let (Some((others, copy)), Some(result)) = (copied, results.remove(call)) else { return Ok(None) };
    let is_other = |delivery: &&Delivery| delivery.call.as_ref().is_none_or(|call| others.contains_key(call));
    let others = deliveries.iter().filter(is_other).cloned().collect();
    Ok(Some(ForInput { result, others, copy }))
}

/// Adds results to a copy of a transcript. Returns those that have no open call in it.
pub(super) fn with_results(
    store: &Store,
    frame: &Frame,
    transcript: &Path,
    deliveries: &[Delivery],
) -> Result<Vec<Delivery>, RuntimeError> {
    let results = results_of_calls(deliveries);
    let copy = || {
        let copied = insert_results::copy(&entries(transcript)?, results);
        let Some(WithResults { text, others }) = unless_broken(frame, copied) else { return Ok(None) };
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

/// A copy that would lack part of the conversation is not written: a prompt delivers the results instead.
fn unless_broken<T>(frame: &Frame, copied: Result<T, Broken>) -> Option<T> {
    let warn = |broken: &Broken| {
        tracing::warn!(
            "{}: delivering the results by prompt, because they cannot be added to the transcript: {broken}",
            frame.id.short()
        );
    };
    copied.inspect_err(warn).ok()
}

/// The transcript of the conversation that a frame begins with. If it has suspended calls, this is a copy in which they are
/// closed: their results go to the agent that made them, and Claude Code would repeat the calls in the fork. `own`: the call
/// that asked for the frame.
pub(super) fn of_baseline(
    store: &Store,
    frame: &Frame,
    source: Option<&Path>,
    own: Option<&str>,
) -> Result<Option<PathBuf>, RuntimeError> {
    let said = |call: &str| if Some(call) == own { prompt::FORKED_HERE } else { prompt::ELSEWHERE };
    with_closed_calls(store, frame, source, said)
}

/// The transcript that a frame's agent continues only to write a summary. If it has suspended calls, this is a copy in which they
/// are closed, because Claude Code would repeat them.
pub(super) fn to_summarise(
    store: &Store,
    frame: &Frame,
    source: Option<&Path>,
) -> Result<Option<PathBuf>, RuntimeError> {
    const OPEN: &str = "This call has no result yet. You get it after you have written the summary that follows.";
    with_closed_calls(store, frame, source, |_| OPEN)
}

/// The transcript at `source`, or a copy in which suspended calls have returned what is `said`.
fn with_closed_calls<'a>(
    store: &Store,
    frame: &Frame,
    source: Option<&Path>,
    said: impl Fn(&str) -> &'a str,
) -> Result<Option<PathBuf>, RuntimeError> {
    let Some(source) = source else { return Ok(None) };
    let close = || {
        let closed = insert_results::closed(&entries(source)?, said);
        let closed = closed.map_err(|broken| io::Error::new(io::ErrorKind::InvalidData, broken))?;
        let Some(text) = closed else { return Ok(source.to_owned()) };
        let file = store.dir().answered(frame.id);
        store.dir().write(Step::Answered, &file, &text)?;
        Ok(file)
    };
    close().map(Some).map_err(while_trying("copy the conversation to begin with"))
}

/// The request that a frame was created for, if the frame begins with the conversation in which it was made.
pub(super) fn own_request(store: &Store, frame: &Frame) -> Result<Option<Request>, RuntimeError> {
    let Some(attempt) = frame.baseline.and_then(|baseline| baseline.checkpoint) else { return Ok(None) };
    let above = frame.parent.map_or(Ok(None), |parent| store.frame(parent))?;
    let asked_for = above.filter(|above| above.task.is_group()).map_or(frame.id, |group| group.id);
    let mut requests = store.requests(Requests::Undelivered(attempt))?.into_iter().map(|(request, _)| request);
    Ok(requests.find(|request| matches!(request.kind, RequestKind::Spawn { child, .. } if child == asked_for)))
}

/// The results in the form in which commands return them.
fn as_of_commands(mut results: HashMap<String, CallResult>) -> HashMap<String, CallResult> {
    for failed in results.values_mut().filter(|result| result.is_error) {
        failed.text.insert_str(0, "Exit code 1\n");
    }
    results
}

/// The result of each call. The answers to several questions of one call form one result.
fn results_of_calls(deliveries: &[Delivery]) -> HashMap<String, CallResult> {
    let mut results = HashMap::new();
    let mut answers: HashMap<&String, Vec<(&str, &RequestResult)>> = HashMap::new();
    for delivery in deliveries {
        let Some(call) = &delivery.call else { continue };
        match (delivery.kind.native_question(), &delivery.result) {
            (Some(question), RequestResult::Text(_) | RequestResult::Default(_) | RequestResult::Unanswered { .. }) => {
                answers.entry(call).or_default().push((question, &delivery.result));
            }
            (_, RequestResult::Text(text) | RequestResult::Default(text)) => {
                results.insert(call.clone(), CallResult { text: text.clone(), is_error: false });
            }
            (
                _,
                RequestResult::Failed(said)
                | RequestResult::PartlyFailed(said)
                | RequestResult::Unanswered { said, .. },
            ) => {
                results.insert(call.clone(), CallResult { text: said.clone(), is_error: true });
            }
        }
    }
    let answered = |answers: Vec<_>| CallResult { text: ask_user_question::result(&answers), is_error: false };
    results.extend(answers.into_iter().map(|(call, answers)| (call.clone(), answered(answers))));
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::question_form::Form;

    fn delivery(call: Option<&str>, native: bool, result: RequestResult) -> Delivery {
        let kind = RequestKind::Ask(Form { native, ..Form::text("When?") });
        Delivery { request: RequestId::random(), call: call.map(str::to_owned), kind, result }
    }

    fn text(text: &str) -> RequestResult {
        RequestResult::Text(text.to_owned())
    }

    #[test]
    fn each_call_returns_its_result_and_a_failure_as_an_error() {
        let results = results_of_calls(&[
            delivery(Some("replied"), false, text("Jan 1st")),
            delivery(Some("failed"), false, RequestResult::Failed("max turns".into())),
            delivery(Some("part"), false, RequestResult::PartlyFailed("one of two".into())),
            delivery(Some("late"), false, RequestResult::Unanswered { said: "nobody answered".into(), seconds: 60 }),
            delivery(None, false, text("by prompt")),
        ]);
        let of = |call: &str| (results[call].text.as_str(), results[call].is_error);
        assert_eq!(results.len(), 4);
        assert_eq!(
            ["replied", "failed", "part", "late"].map(of),
            [("Jan 1st", false), ("max turns", true), ("one of two", true), ("nobody answered", true)]
        );
    }

    #[test]
    fn the_answers_to_all_questions_of_one_call_are_one_result() {
        let both = [delivery(Some("t1"), true, text("Jan 1st")), delivery(Some("t1"), true, text("in Rome"))];
        let results = results_of_calls(&both);
        let [result] = &results.into_values().collect::<Vec<_>>()[..] else { panic!("there is one call") };
        assert!(result.text.contains("Jan 1st") && result.text.contains("in Rome") && !result.is_error, "{result:?}");
    }
}
