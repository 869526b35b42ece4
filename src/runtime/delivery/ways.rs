//! The ways in which an agent is given the results of its requests.
//!
//! | way | when | what the agent sees |
//! | --- | --- | --- |
//! | [`Delivering::first_prompt`] | it has no conversation of its own yet | its task, and the results of its requests so far |
//! | [`Delivering::bare_result`] | its calls are commands, its `claude` takes their results from standard input, and no hook of the user must see them first | the calls return, together with any other notices |
//! | [`Delivering::resumed_call`] | the results belong to the one call that it is suspended in, which returns them exactly as they are, and there are no other notices | the call returns, and the agent is told to continue |
//! | [`Delivering::results_in_transcript`] | some of its calls wait for results, and cannot return them themselves | the calls have returned, and a prompt tells it to continue |
//! | [`Delivering::repeated_call`] | a person has decided about a call that needed an approval | it repeats that call, and gets the other results afterwards |
//! | [`Delivering::prompt`] | no call waits, hooks are disabled, or the transcript cannot take results | a prompt that names its requests and their results |
//!
//! [`DeliveryWay::choose`] chooses between them. A result counts as delivered when the attempt that was given it is kept.

use std::path::PathBuf;

use crate::claude::doctor::{checks, surroundings};
use crate::claude::environment::variables::Variables;
use crate::claude::installation::version::ResultInput;
use crate::claude::settings::user_hooks;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::hook_input::BASH;
use crate::claude::tools::{call_results, exit_plan_mode};
use crate::core::attempt::delivery::one_for_each_batch;
use crate::core::attempt::delivery::{DeliveryWay, Possible};
use crate::core::attempt::prompt;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::request::{Delivery, Request, RequestKind};
use crate::core::requests::request_state::Handover;
use crate::core::steering::fresh_start;
use crate::core::steering::message::{self, Message};
use crate::runtime::delivery::restored_situation::Restored;
use crate::runtime::delivery::transcript_copies::ForInput;
use crate::runtime::delivery::{stale_files, transcript_copies};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{Requests, Store};

/// The start of an attempt in which the agent learns the results of its requests.
pub(crate) struct AttemptInput {
    /// Its prompt. Empty: it continues at the call where it stopped.
    pub(crate) prompt: String,
    /// The file that it continues from.
    pub(crate) transcript: Option<PathBuf>,
    /// What it gets on its standard input instead of the prompt: a message with the result of its call and the prompt's text.
    pub(crate) message: Option<String>,
    /// The requests whose result is in the conversation at its call without `claude` printing it.
    pub(crate) placed: Vec<RequestId>,
    /// The requests whose suspended call is resumed, and how it gets their result.
    pub(crate) resumed_calls: Vec<(RequestId, Handover)>,
    /// Notices for the agent in addition to the result of the resumed call.
    pub(crate) notice: Option<String>,
}

/// What the next attempt can use.
pub(crate) struct DeliveryMeans {
    /// Whether a suspended call can return its result.
    pub(crate) hooks: bool,
    /// How `claude` accepts the result of such a call on standard input; `None`: not at all.
    pub(crate) result_input: Option<ResultInput>,
    /// The file with the conversation to continue.
    pub(crate) source: Option<PathBuf>,
}

/// Chooses how the next attempt of `frame` is given `deliveries`. Writes the transcript that it needs.
pub(crate) fn input(
    store: &Store,
    own: &RunSettings,
    frame: &Frame,
    deliveries: &[Delivery],
    messages: &[Message],
    restored: &Restored,
    means: &DeliveryMeans,
) -> Result<AttemptInput, RuntimeError> {
    if let Some(lacks) = frame.summary_lacks() {
        return to_summarise(store, own, frame, lacks, means);
    }
    let deliveries = &one_for_each_batch(deliveries);
    let mut notices = notices(store, own, frame, deliveries)?;
    notices.extend(message::in_words(messages));
    let copy = frame.checkpoint.map(|checkpoint| store.dir().checkpoint(frame.id, checkpoint));
    let possible = Possible {
        has_copy: copy.is_some_and(|copy| copy.is_file()),
        hooks: means.hooks,
        unchanged: call_results::returns_unchanged(deliveries),
        bare: means.result_input.is_some() && is_seen_by_nobody_else(frame, deliveries),
    };
    let way = DeliveryWay::choose(frame, deliveries, &notices, possible);
    if way != DeliveryWay::ResumedCall {
        notices.extend(restored.notices(begins_with_command(&way, deliveries)));
    }
    let deliveries = as_shown(frame, &way, plans_in_words(deliveries));
    let (source, deliveries, notices) = (&means.source, deliveries.as_slice(), notices.as_slice());
    let delivering = Delivering { store, frame, source, result_input: means.result_input, deliveries, notices };
    let Some(checkpoint) = frame.checkpoint else { return delivering.first_prompt() };
    match way {
        DeliveryWay::BareResult { call } => delivering.bare_result(checkpoint, &call),
        DeliveryWay::ResumedCall => Ok(delivering.resumed_call(restored)),
        DeliveryWay::ResultsInTranscript => delivering.results_in_transcript(checkpoint),
        DeliveryWay::RepeatedCall { call } => delivering.repeated_call(checkpoint, &call),
        DeliveryWay::Prompt => Ok(delivering.prompt()),
    }
}

/// The start of an attempt that writes a summary. Nothing is delivered to it.
fn to_summarise(
    store: &Store,
    own: &RunSettings,
    frame: &Frame,
    lacks: &[String],
    means: &DeliveryMeans,
) -> Result<AttemptInput, RuntimeError> {
    let cut_short = frame.trouble.as_ref().filter(|trouble| trouble.misfits.is_empty());
    let cut_short = cut_short.map(|trouble| prompt::of_trouble(trouble, None));
    let notices: Vec<_> =
        cut_short.into_iter().chain(changes(store, own, frame)).chain([fresh_start::request(lacks)]).collect();
    let transcript = transcript_copies::to_summarise(store, frame, means.source.as_deref())?;
    let (prompt, placed, resumed_calls) = (prompt::resume(&[], &notices), Vec::new(), Vec::new());
    Ok(AttemptInput { prompt, message: None, transcript, placed, resumed_calls, notice: None })
}

/// What is delivered to a frame.
struct Delivering<'a> {
    store: &'a Store,
    frame: &'a Frame,
    source: &'a Option<PathBuf>,
    result_input: Option<ResultInput>,
    deliveries: &'a [Delivery],
    notices: &'a [String],
}

impl Delivering<'_> {
    fn first_prompt(&self) -> Result<AttemptInput, RuntimeError> {
        let request = transcript_copies::own_request(self.store, self.frame)?;
        let call = request.as_ref().and_then(|request| request.call.as_deref());
        let transcript = transcript_copies::of_baseline(self.store, self.frame, self.source.as_deref(), call)?;
        // A suspended call shows this itself.
        let fork = (request.is_some() && call.is_none()).then(|| prompt::FORK.to_owned());
        let notices: Vec<_> = fork.into_iter().chain(self.notices.iter().cloned()).collect();
        let text = prompt::first(self.frame, self.deliveries, &notices);
        Ok(AttemptInput { transcript, ..self.with_prompt(text) })
    }

    fn bare_result(&self, checkpoint: AttemptId, call: &str) -> Result<AttemptInput, RuntimeError> {
        let file = self.store.dir().checkpoint(self.frame.id, checkpoint);
        let left = transcript_copies::with_one_open_call(self.store, self.frame, &file, self.deliveries, call)?;
        // With a copy, there are several calls.
        let left = left.filter(|left| left.copy.is_none() || self.result_input == Some(ResultInput::File));
        let Some(ForInput { result, others, copy }) = left else { return self.results_in_transcript(checkpoint) };
        let has_more = !others.is_empty() || !self.notices.is_empty();
        let text = if has_more { prompt::resume(&others, self.notices) } else { String::new() };
        let placed = self.all_but(&others);
        let of_call = self.deliveries.iter().filter(|delivery| delivery.call.as_deref() == Some(call));
        Ok(AttemptInput {
            message: Some(call_results::user_message(call, &result, &text)),
            resumed_calls: of_call.map(|delivery| (delivery.request, Handover::ByInput)).collect(),
            transcript: copy.or_else(|| self.source.clone()),
            placed,
            ..self.with_prompt(text)
        })
    }

    fn resumed_call(&self, restored: &Restored) -> AttemptInput {
        // No program can replace Claude Code's own tool for questions.
        let as_program = self.deliveries.first().filter(|delivery| delivery.kind.native_question().is_none());
        let resumed_calls: Vec<_> =
            as_program.map(|delivery| (delivery.request, Handover::ToReturn)).into_iter().collect();
        let notice: Vec<String> = restored.notices(!resumed_calls.is_empty()).collect();
        let notice = Some(notice.join("\n")).filter(|notice| !notice.is_empty());
        AttemptInput { resumed_calls, notice, ..self.with_prompt(String::new()) }
    }

    fn results_in_transcript(&self, checkpoint: AttemptId) -> Result<AttemptInput, RuntimeError> {
        let checkpoint = self.store.dir().checkpoint(self.frame.id, checkpoint);
        let others = transcript_copies::with_results(self.store, self.frame, &checkpoint, self.deliveries)?;
        if others.len() == self.deliveries.len() {
            return Ok(self.prompt());
        }
        // The agent's ScheduleWakeup call has returned when the agent receives the prompt.
        let is_in_prompt = |delivery: &&Delivery| delivery.kind.scheduled().is_some() || others.contains(delivery);
        let in_prompt: Vec<_> = self.deliveries.iter().filter(is_in_prompt).cloned().collect();
        let text = prompt::go_on(&in_prompt, self.notices);
        let transcript = Some(self.store.dir().answered(self.frame.id));
        Ok(AttemptInput { transcript, placed: self.all_but(&others), ..self.with_prompt(text) })
    }

    fn repeated_call(&self, checkpoint: AttemptId, call: &str) -> Result<AttemptInput, RuntimeError> {
        if !transcript_copies::with_open_call(self.store, self.frame, checkpoint, call)? {
            return Ok(self.prompt());
        }
        let of_others = |delivery: &&Delivery| delivery.call.as_deref() != Some(call);
        let others: Vec<_> = self.deliveries.iter().filter(of_others).cloned().collect();
        let copy = self.store.dir().answered(self.frame.id);
        let given = others;
        let others = transcript_copies::with_results(self.store, self.frame, &copy, &given)?;
        let placed =
            given.iter().filter(|delivery| !others.contains(delivery)).map(|delivery| delivery.request).collect();
        // The agent reads the prompt after the call's result.
        let has_more = !others.is_empty() || !self.notices.is_empty();
        let text = if has_more { prompt::resume(&others, self.notices) } else { String::new() };
        Ok(AttemptInput { transcript: Some(copy), placed, ..self.with_prompt(text) })
    }

    /// The requests of all deliveries except `others`.
    fn all_but(&self, others: &[Delivery]) -> Vec<RequestId> {
        let placed = self.deliveries.iter().filter(|delivery| !others.contains(delivery));
        placed.map(|delivery| delivery.request).collect()
    }

    fn prompt(&self) -> AttemptInput {
        self.with_prompt(prompt::resume(self.deliveries, self.notices))
    }

    fn with_prompt(&self, prompt: String) -> AttemptInput {
        let transcript = self.source.clone();
        let (placed, resumed_calls) = (Vec::new(), Vec::new());
        AttemptInput { prompt, message: None, transcript, placed, resumed_calls, notice: None }
    }
}

/// Whether the agent first runs a command that a person approved.
fn begins_with_command(way: &DeliveryWay, deliveries: &[Delivery]) -> bool {
    let DeliveryWay::RepeatedCall { call } = way else { return false };
    let of_call = deliveries.iter().filter(|delivery| delivery.call.as_ref() == Some(call));
    of_call.into_iter().any(|delivery| matches!(&delivery.kind, RequestKind::Permission { tool, .. } if tool == BASH))
}

/// The deliveries, with a person's answer to a plan replaced by the text for the agent.
fn plans_in_words(deliveries: &[Delivery]) -> Vec<Delivery> {
    let in_words = |delivery: &Delivery| match &delivery.kind {
        RequestKind::Plan(plan) => exit_plan_mode::result(plan, delivery.result.text()),
        _ => None,
    };
    let with_words = |delivery: &Delivery| Delivery {
        result: in_words(delivery).unwrap_or_else(|| delivery.result.clone()),
        ..delivery.clone()
    };
    deliveries.iter().map(with_words).collect()
}

/// Whether the result of a call can be delivered without running a command: no hook of the user must see it first, and the hook
/// of agent-cli runs, which keeps the call open.
fn is_seen_by_nobody_else(frame: &Frame, deliveries: &[Delivery]) -> bool {
    deliveries.iter().any(|delivery| delivery.call.is_some())
        && !user_hooks::run_after(BASH, &frame.cwd, &frame.launch)
        && !are_hooks_disabled(frame)
}

/// Whether the user's settings disable all hooks of an agent.
pub(crate) fn are_hooks_disabled(frame: &Frame) -> bool {
    let around = surroundings::look(&frame.cwd, &Variables::of_process(), &frame.launch);
    checks::hooks_switched_off(&around).is_some()
}

/// The deliveries as they reach the agent. The user's hooks run on what a resumed call returns.
fn as_shown(frame: &Frame, way: &DeliveryWay, deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let is_returned = *way == DeliveryWay::ResumedCall && frame.checkpoint.is_some();
    if is_returned { deliveries } else { to_fetch(frame, &deliveries) }
}

/// The deliveries as they appear in a prompt or a transcript. If the user's hooks must see a result first, the agent fetches it
/// with a command, because hooks run after commands.
fn to_fetch(frame: &Frame, deliveries: &[Delivery]) -> Vec<Delivery> {
    let run_after = |tool| user_hooks::run_after(tool, &frame.cwd, &frame.launch);
    let [of_commands, of_questions] = match deliveries {
        [] => [false; 2],
        _ => [BASH, ASK_USER_QUESTION].map(run_after),
    };
    let fetched = |delivery: &Delivery| of_commands && (of_questions || delivery.kind.native_question().is_none());
    let deliveries = deliveries.iter().cloned();
    deliveries.map(|delivery| if fetched(&delivery) { delivery.for_fetching() } else { delivery }).collect()
}

/// The notices for the agent in addition to the results of its requests.
fn notices(
    store: &Store,
    own: &RunSettings,
    frame: &Frame,
    deliveries: &[Delivery],
) -> Result<Vec<String>, RuntimeError> {
    let mut notices: Vec<_> = prompt::of_last_attempt(frame).into_iter().chain(changes(store, own, frame)).collect();
    let may_not_know = frame.trouble.is_some() || frame.checkpoint.is_none();
    if may_not_know {
        let background = store.requests(Requests::Background(frame.id))?.into_iter().map(|(request, _)| request);
        let is_delivered = |request: &Request| deliveries.iter().any(|delivery| delivery.request == request.id);
        notices.extend(prompt::of_agents_beside(background.filter(|request| !is_delivered(request))));
    }
    Ok(notices)
}

/// Which of the agent's files have changed while it waited.
fn changes(store: &Store, own: &RunSettings, frame: &Frame) -> Option<String> {
    let wanted = own.stale_check && !frame.launch.no_stale_check;
    wanted.then(|| stale_files::notice(store, frame)).flatten()
}

#[cfg(test)]
mod tests;
