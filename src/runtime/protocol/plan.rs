//! Plans with which agents want to leave plan mode. In other modes Claude Code refuses the call.

use crate::claude::tools::exit_plan_mode::{self, PLAN_MODE};
use crate::claude::tools::hook_input::{HookAnswer, HookInput, NOT_IN_A_SUBAGENT, PRE_TOOL_USE};
use crate::core::requests::proposed_plan::modes;
use crate::core::requests::request::RequestKind;
use crate::runtime::RuntimeError;
use crate::runtime::protocol::Asking;
use crate::runtime::protocol::suspension::{REPEATED, Suspension};
use crate::runtime::requests::agent_lookup;

/// Keeps the call suspended: a person's decision is delivered as its result.
pub(super) fn answer(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let is_call = input.hook_event_name.as_deref() == Some(PRE_TOOL_USE);
    let is_planning = is_call && input.permission_mode.as_deref() == Some(PLAN_MODE);
    let Some(call) = input.tool_use_id.as_ref().filter(|_| is_planning) else { return Ok(HookAnswer::Pass) };
    if input.agent_id.is_some() {
        return Ok(HookAnswer::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() });
    }
    let (store, caller) = (asking.store()?, asking.caller);
    let suspension = Suspension::find(&store, caller, call)?;
    if suspension == Suspension::Repeated {
        return Ok(HookAnswer::Deny { reason: REPEATED.to_owned() });
    }
    if suspension == Suspension::Record {
        let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
        let asking = agent_lookup::asked_by(&store, &frame)?;
        let modes = modes(&frame.launch, asking.as_ref().map(|asking| &asking.launch));
        store.request(caller, Some(call), &[RequestKind::Plan(exit_plan_mode::plan(&input.tool_input, modes))])?;
    }
    Ok(HookAnswer::Defer)
}
