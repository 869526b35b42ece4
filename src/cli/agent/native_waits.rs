//! Claude Code's own tools with which an agent waits for a time: what the hook decides about their calls.
//!
//! ScheduleWakeup is suspended until its time has come. CronCreate has returned when a job is recorded: the agent goes on, and is
//! given the prompt once it has ended its turn and the job is due.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::claude::tools::hook::{Decision, HookInput, NOT_IN_A_SUBAGENT, POST_TOOL_USE};
use crate::claude::tools::schedule::{self, CRON_CREATE, CRON_DELETE, Job, SCHEDULE_WAKEUP};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::core::requests::request::{External, Wish};
use crate::core::requests::scheduled::{self, MOST_JOBS};
use crate::store::Caller;

/// What an agent is told that wants to be told something again and again, or in other sessions.
const NOT_FOR_EVER: &str = "only one-shot jobs work here (recurring: false, durable: false): an agent whose job recurs never \
    replies. To wait until a time call `agent-cli wait --until TIME` or `agent-cli wait --for DURATION`, as often as you need; \
    for another one-shot job call CronCreate again when this one was due";

/// What the hook decides about a call of these tools. `None`: it is a call of another one.
pub(crate) fn decide(context: &Context, caller: Caller, input: &HookInput) -> Result<Option<Decision>, CliError> {
    let is_over = input.hook_event_name.as_deref() == Some(POST_TOOL_USE);
    Ok(Some(match (input.tool_name.as_deref(), is_over) {
        (Some(SCHEDULE_WAKEUP), false) => decide_on_wakeup(context, caller, input)?,
        (Some(CRON_CREATE), false) => decide_on_job(context, caller, input)?,
        (Some(CRON_CREATE), true) => record_job(context, caller, input)?,
        (Some(CRON_DELETE), true) => {
            if let Some(job) = schedule::deleted(&input.tool_response) {
                context.store()?.withdraw_job(caller, job)?;
            }
            Decision::Pass
        }
        (Some(SCHEDULE_WAKEUP | CRON_DELETE), _) => Decision::Pass,
        _ => return Ok(None),
    }))
}

fn deny(reason: impl Into<String>) -> Decision {
    Decision::Deny { reason: reason.into() }
}

fn decide_on_wakeup(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    let wanted = schedule::wakeup(&input.tool_input, Timestamp::now(), &TimeZone::system());
    let (Some(call), Some(wanted)) = (&input.tool_use_id, wanted) else { return Ok(Decision::Pass) };
    if input.agent_id.is_some() {
        return Ok(deny(NOT_IN_A_SUBAGENT));
    }
    if let Err(bad) = scheduled::check(&wanted.prompt) {
        return Ok(deny(bad.to_string()));
    }
    let store = context.store()?;
    if store.requests_of_call(caller.frame, call)?.is_empty() {
        store.request(caller, Some(call), &Wish::Wait(External::Scheduled(wanted)))?;
    }
    Ok(Decision::Defer)
}

/// Before the job is made.
fn decide_on_job(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    if input.agent_id.is_some() {
        return Ok(deny(NOT_IN_A_SUBAGENT));
    }
    if schedule::kind(&input.tool_input) == Job::Lasting {
        return Ok(deny(NOT_FOR_EVER));
    }
    if let Err(bad) = scheduled::check(input.tool_input["prompt"].as_str().unwrap_or_default()) {
        return Ok(deny(bad.to_string()));
    }
    if context.store()?.jobs(caller.frame)?.len() >= MOST_JOBS {
        return Ok(deny(format!(
            "you have {MOST_JOBS} jobs that are to come: wait for them, or remove some with CronDelete"
        )));
    }
    Ok(Decision::Pass)
}

/// After a job was made: from now on its agent has not replied before the job was due.
fn record_job(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    let made = schedule::job(&input.tool_input, &input.tool_response, Timestamp::now(), &TimeZone::system());
    if let Some(made) = made {
        context.store()?.request_job(caller, &Wish::Wait(External::Scheduled(made)))?;
    }
    Ok(Decision::Pass)
}
