//! Looks at agents whose end is waited for.

use crate::core::requests::request::RequestResult;
use crate::core::waits::conditions::AwaitedAgent;
use crate::core::waits::wait_progress::CheckResult;
use crate::runtime::RuntimeError;
use crate::store::Store;

/// Whether an agent is over. One that was removed will never be: its end has come.
pub(super) fn look_at(store: &Store, agent: &AwaitedAgent) -> Result<CheckResult, RuntimeError> {
    let id = agent.id.short();
    let Some(frame) = store.frame(agent.id)? else {
        return Ok(CheckResult::Met(Some(format!("{id} was removed: it has no result"))));
    };
    Ok(match frame.result(store.replies(agent.id)?.reply) {
        None => CheckResult::NotYet(frame.state.name().to_owned()),
        Some(RequestResult::Text(reply) | RequestResult::Default(reply)) => {
            CheckResult::Met(Some(format!("{id} is done:\n\n{reply}")))
        }
        // An agent never ends unanswered, only a question does.
        Some(
            RequestResult::Failed(why) | RequestResult::PartlyFailed(why) | RequestResult::Unanswered { said: why, .. },
        ) => CheckResult::Met(Some(format!("{id} has failed:\n\n{why}"))),
    })
}
