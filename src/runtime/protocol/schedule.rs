//! Claude Code's own tools with which an agent waits for a time.
//!
//! A call of ScheduleWakeup is suspended until its scheduled time arrives. A call of CronCreate has returned when its job
//! is recorded: the agent continues, and receives the prompt once it has ended its turn and the job is due.

use jiff::Timestamp;

use crate::claude::tools::hook_input::{HookAnswer, HookInput, NOT_IN_A_SUBAGENT};
use crate::claude::tools::scheduling::{self, CRON_CREATE, CRON_DELETE, Job, SCHEDULE_WAKEUP};
use crate::core::requests::request::{External, RequestKind};
use crate::core::waits::scheduled::{self, MOST_JOBS};
use crate::local_zone::local_zone;
use crate::runtime::RuntimeError;
use crate::runtime::protocol::Asking;
use crate::runtime::protocol::suspension::{REPEATED, Suspension};
use crate::store::{PrintedRequests, Requests};

/// The message to an agent that wants a recurring prompt, or one in other sessions.
const NOT_FOR_EVER: &str = "only one-shot jobs work here (recurring: false, durable: false): an agent whose job recurs never \
    replies. To wait until a time call `agent-cli wait --until TIME` or `agent-cli wait --for DURATION`, as often as you need; \
    for another one-shot job call CronCreate again when this one was due";

pub(super) fn is_about(tool: &str) -> bool {
    [SCHEDULE_WAKEUP, CRON_CREATE, CRON_DELETE].contains(&tool)
}

/// `is_over`: the call has returned.
pub(super) fn answer(
    asking: &Asking,
    tool: &str,
    is_over: bool,
    input: &HookInput,
) -> Result<HookAnswer, RuntimeError> {
    match (tool, is_over) {
        (SCHEDULE_WAKEUP, false) => wakeup(asking, input),
        (CRON_CREATE, false) => new_job(asking, input),
        (CRON_CREATE, true) => record_job(asking, input),
        (CRON_DELETE, true) => withdraw_job(asking, input),
        _ => Ok(HookAnswer::Pass),
    }
}

fn deny(reason: impl Into<String>) -> HookAnswer {
    HookAnswer::Deny { reason: reason.into() }
}

fn wakeup(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let wanted = scheduling::wakeup(&input.tool_input, Timestamp::now(), &local_zone());
    let (Some(call), Some(wanted)) = (&input.tool_use_id, wanted) else { return Ok(HookAnswer::Pass) };
    if let Some(reason) = refusal_of_wakeup(input.agent_id.is_some(), &wanted.prompt) {
        return Ok(deny(reason));
    }
    let store = asking.store()?;
    let suspension = Suspension::find(&store, asking.caller, call)?;
    if suspension == Suspension::Repeated {
        return Ok(deny(REPEATED));
    }
    if suspension == Suspension::Record {
        store.request(asking.caller, Some(call), &[RequestKind::Wait(External::Scheduled(wanted))])?;
    }
    Ok(HookAnswer::Defer)
}

fn refusal_of_wakeup(by_subagent: bool, prompt: &str) -> Option<String> {
    match scheduled::check(prompt) {
        _ if by_subagent => Some(NOT_IN_A_SUBAGENT.to_owned()),
        Err(bad) => Some(bad.to_string()),
        Ok(()) => None,
    }
}

/// Handles a call before it creates its job.
fn new_job(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let prompt = input.tool_input["prompt"].as_str().unwrap_or_default();
    if let Some(reason) = refusal_of_job(input.agent_id.is_some(), scheduling::kind(&input.tool_input), prompt) {
        return Ok(deny(reason));
    }
    if asking.store()?.requests(Requests::Jobs(asking.caller.frame))?.len() >= MOST_JOBS {
        return Ok(deny(format!(
            "you have {MOST_JOBS} jobs that are to come: wait for them, or remove some with CronDelete"
        )));
    }
    Ok(HookAnswer::Pass)
}

fn refusal_of_job(by_subagent: bool, kind: Job, prompt: &str) -> Option<String> {
    match (kind, scheduled::check(prompt)) {
        _ if by_subagent => Some(NOT_IN_A_SUBAGENT.to_owned()),
        (Job::Lasting, _) => Some(NOT_FOR_EVER.to_owned()),
        (Job::OneShot, Err(bad)) => Some(bad.to_string()),
        (Job::OneShot, Ok(())) => None,
    }
}

/// Records a created job. From now on, the agent's reply does not count before the job is due.
fn record_job(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let made = scheduling::job(&input.tool_input, &input.tool_response, Timestamp::now(), &local_zone());
    if let Some(made) = made {
        let printed = PrintedRequests { made: &[made], ..PrintedRequests::default() };
        asking.store()?.complete_requests(asking.caller, printed)?;
    }
    Ok(HookAnswer::Pass)
}

fn withdraw_job(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    if let Some(job) = scheduling::deleted(&input.tool_response) {
        let printed = PrintedRequests { removed: &[job.to_owned()], ..PrintedRequests::default() };
        asking.store()?.complete_requests(asking.caller, printed)?;
    }
    Ok(HookAnswer::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_is_refused_first_and_then_what_would_never_end() {
        let job = |by_subagent, kind, prompt| refusal_of_job(by_subagent, kind, prompt);
        assert_eq!(job(true, Job::Lasting, "go on").as_deref(), Some(NOT_IN_A_SUBAGENT));
        assert_eq!(job(false, Job::Lasting, "go on").as_deref(), Some(NOT_FOR_EVER));
        assert_eq!(job(false, Job::OneShot, "go on"), None);
        assert_eq!(refusal_of_wakeup(true, "go on").as_deref(), Some(NOT_IN_A_SUBAGENT));
        assert_eq!(refusal_of_wakeup(false, "go on"), None);
    }

    #[test]
    fn a_prompt_that_cannot_be_given_is_refused() {
        let bad = scheduled::check("").expect_err("an empty prompt says nothing").to_string();
        assert_eq!(refusal_of_job(false, Job::OneShot, ""), Some(bad.clone()));
        assert_eq!(refusal_of_wakeup(false, ""), Some(bad));
    }
}
