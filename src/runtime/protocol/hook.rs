//! The hook: Claude Code asks before and after each tool call of an agent that may be a request.
//!
//! A request is recorded, and its call suspended: `claude` saves the open call and exits. When the result is available, the
//! resumed `claude` asks about the same call again and gets a command that returns the result. After that command, it asks once
//! more: the hook's answer then replaces whatever the user's shell has printed.

use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::exit_plan_mode::EXIT_PLAN_MODE;
use crate::claude::tools::hook_input::{HookAnswer, HookInput, POST_TOOL_USE};
use crate::claude::tools::native_agents;
use crate::runtime::protocol::bash_call::{self, Typed};
use crate::runtime::protocol::printed_call::agents_started_before;
use crate::runtime::protocol::response::HookResponse;
use crate::runtime::protocol::{Asking, ProtocolError, plan, questions, schedule};
use crate::runtime::{RuntimeError, while_trying};

/// Answers what Claude Code wrote to the hook's standard input. `parse` parses the arguments of an agent-cli command.
///
/// # Errors
///
/// [`ProtocolError`] if the hook cannot decide about the call.
pub(crate) fn answer(
    asking: &Asking,
    input: &[u8],
    parse: impl FnOnce(&[String]) -> Typed,
) -> Result<HookResponse, ProtocolError> {
    let input = read(input)?;
    let is_over = input.hook_event_name.as_deref() == Some(POST_TOOL_USE);
    let answer = match (input.tool_name.as_deref(), is_over) {
        (Some(tool), _) if schedule::is_about(tool) => schedule::answer(asking, tool, is_over, &input)?,
        (Some(tool), false) if native_agents::ALL.contains(&tool) => of_native_agent(asking, tool, &input)?,
        (Some(EXIT_PLAN_MODE), _) => plan::answer(asking, &input)?,
        (Some(ASK_USER_QUESTION), true) => questions::after(asking, &input)?,
        (Some(ASK_USER_QUESTION), false) => questions::before(asking, &input)?,
        (_, true) => bash_call::after(asking, &input)?,
        (_, false) => return bash_call::before(asking, &input, parse),
    };
    Ok(answer.into())
}

/// Denies a call that would start more agents of Claude Code's own than the agent may.
fn of_native_agent(asking: &Asking, tool: &str, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let (store, caller) = (asking.store()?, asking.caller);
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    let (Some(most), Some(call)) = (frame.launch.native_agents, &input.tool_use_id) else {
        return Ok(HookAnswer::Pass);
    };
    let before = agents_started_before(&store, caller, call)?;
    let denial = native_agents::denial(tool, most, before);
    Ok(denial.map_or(HookAnswer::Pass, |reason| HookAnswer::Deny { reason }))
}

/// Refuses a Bash call that contains a request among other commands, and decides about no other.
///
/// # Errors
///
/// As for [`answer`].
pub(crate) fn refuse_embedded(asking: &Asking, input: &[u8]) -> Result<HookResponse, ProtocolError> {
    bash_call::refuse_embedded(asking, &read(input)?)
}

fn read(input: &[u8]) -> Result<HookInput, RuntimeError> {
    HookInput::parse(input).map_err(|error| while_trying("read the hook's input")(error.into()))
}
