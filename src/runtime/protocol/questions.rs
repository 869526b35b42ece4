//! Questions asked with Claude Code's own tool, AskUserQuestion. Claude Code itself refuses malformed ones.

use serde_json::Value;

use crate::claude::tools::ask_user_question::{self, ASK_USER_QUESTION};
use crate::claude::tools::hook_input::{HookAnswer, HookInput, NOT_IN_A_SUBAGENT};
use crate::core::requests::request::{Request, RequestResult};
use crate::runtime::RuntimeError;
use crate::runtime::protocol::suspension::{REPEATED, Suspension};
use crate::runtime::protocol::{Asking, linger, response};
use crate::runtime::requests::spawn_request;
use crate::store::{ResultUse, Store};

pub(super) fn before(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    if input.agent_id.is_some() {
        return Ok(HookAnswer::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() });
    }
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let Some(questions) = ask_user_question::questions(&input.tool_input) else { return Ok(HookAnswer::Pass) };
    let store = asking.store()?;
    match Suspension::find(&store, asking.caller, call)? {
        Suspension::Record => {
            let caller = asking.caller;
            spawn_request::ask(&store, caller, Some(call), questions)?;
            let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
            if !linger::is_attended(asking, &store, &frame, ASK_USER_QUESTION)? {
                return Ok(HookAnswer::Defer);
            }
            let Some(over) = linger::or_suspended(asking, &store, &frame, call) else { return Ok(HookAnswer::Defer) };
            returned(asking, &store, input, &over)
        }
        Suspension::Keep | Suspension::LeaveOpen => Ok(HookAnswer::Defer),
        Suspension::Repeated => Ok(HookAnswer::Deny { reason: REPEATED.to_owned() }),
        Suspension::Return(over) => returned(asking, &store, input, &over),
    }
}

/// Makes the call return the outcome of its questions.
fn returned(
    asking: &Asking,
    store: &Store,
    input: &HookInput,
    over: &[(Request, RequestResult)],
) -> Result<HookAnswer, RuntimeError> {
    Ok(match outcome(&input.tool_input, over) {
        Ok(updated_input) => HookAnswer::Allow { updated_input, notice: response::notice(store, asking.caller)? },
        Err(reason) => HookAnswer::Deny { reason },
    })
}

/// The input with which a call returns the outcome of its questions, or why it cannot run.
pub(super) fn outcome(input: &Value, over: &[(Request, RequestResult)]) -> Result<Value, String> {
    let results = results(over);
    if is_unanswered(over) {
        Err(ask_user_question::denial(&results))
    } else {
        Ok(ask_user_question::with_answers(input, &results))
    }
}

/// Records that the agent sees the answers, unless another hook has changed them.
pub(super) fn after(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let store = asking.store()?;
    if let Suspension::Return(answered) = Suspension::find(&store, asking.caller, call)?
        && ask_user_question::has_run_with(&input.tool_input, &results(&answered))
    {
        let shown: Vec<_> = answered.iter().map(|(request, _)| request.id).collect();
        store.use_results(asking.caller, ResultUse::Shown(&shown))?;
    }
    Ok(HookAnswer::Pass)
}

/// Whether one of these is unanswered. The call cannot run then: its result would be that they were answered.
fn is_unanswered(over: &[(Request, RequestResult)]) -> bool {
    over.iter().any(|(_, result)| matches!(result, RequestResult::Unanswered { .. }))
}

/// Each question and its result.
fn results(over: &[(Request, RequestResult)]) -> Vec<(&str, &RequestResult)> {
    over.iter().map(|(asked, result)| (asked.kind.native_question().unwrap_or_default(), result)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::id::{AttemptId, FrameId, RequestId};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::RequestKind;
    use crate::core::requests::request_state::RequestState;

    fn asked(question: &str, native: bool) -> Request {
        Request {
            id: RequestId::random(),
            frame: FrameId::random(),
            attempt: AttemptId::random(),
            call: Some("toolu_1".to_owned()),
            kind: RequestKind::Ask(Form { native, ..Form::text(question) }),
            state: RequestState::Open,
            made: Timestamp::UNIX_EPOCH,
            progress: Default::default(),
        }
    }

    #[test]
    fn a_call_with_one_unanswered_question_cannot_run() {
        let answered = (asked("When?", true), RequestResult::Text("Jan 1st".into()));
        let unanswered =
            (asked("Where?", true), RequestResult::Unanswered { said: "nobody answered".into(), seconds: 60 });
        assert!(!is_unanswered(std::slice::from_ref(&answered)));
        assert!(is_unanswered(&[answered.clone(), unanswered.clone()]));
        let both = [answered, unanswered];
        assert_eq!(results(&both).iter().map(|(question, _)| *question).collect::<Vec<_>>(), ["When?", "Where?"]);
    }
}
