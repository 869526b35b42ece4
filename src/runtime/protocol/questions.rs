//! Questions asked with Claude Code's own tool, AskUserQuestion. Claude Code itself refuses malformed ones.

use crate::claude::tools::ask_user_question;
use crate::claude::tools::hook::{HookAnswer, HookInput, NOT_IN_A_SUBAGENT};
use crate::core::requests::request::{Request, RequestResult};
use crate::runtime::RuntimeError;
use crate::runtime::protocol::suspension::Suspension;
use crate::runtime::protocol::{Asking, response};

pub(super) fn before(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    if input.agent_id.is_some() {
        return Ok(HookAnswer::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() });
    }
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let Some(questions) = ask_user_question::questions(&input.tool_input) else { return Ok(HookAnswer::Pass) };
    let store = asking.store()?;
    match Suspension::of(&store, asking.caller, call)? {
        Suspension::Record => {
            store.request_all(asking.caller, call, &questions)?;
            Ok(HookAnswer::Defer)
        }
        Suspension::Keep => Ok(HookAnswer::Defer),
        Suspension::Return(answered) => {
            let updated_input = ask_user_question::with_answers(&input.tool_input, &answers(&answered));
            Ok(HookAnswer::Allow { updated_input, notice: response::notice(&store, asking.caller)? })
        }
    }
}

/// Records that the agent sees the answers, unless another hook has changed them.
pub(super) fn after(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let store = asking.store()?;
    if let Suspension::Return(answered) = Suspension::of(&store, asking.caller, call)? {
        let given = |(asked, said): &(&str, &str)| input.tool_input["answers"][*asked] == *said;
        if answers(&answered).iter().all(given) {
            store.shown(asking.caller, &answered.iter().map(|(request, _)| request.id).collect::<Vec<_>>())?;
        }
    }
    Ok(HookAnswer::Pass)
}

/// Each question and its answer.
fn answers(answered: &[(Request, RequestResult)]) -> Vec<(&str, &str)> {
    answered.iter().map(|(asked, answer)| (asked.kind.native_question().unwrap_or_default(), answer.text())).collect()
}
