//! Checks whether an agent can start afresh: in a new session, with a summary in place of its conversation.

use crate::app::App;
use crate::app::chains::tell;
use crate::app::error::{AppError, Refusal};
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Node;
use crate::core::id::FrameId;
use crate::core::requests::request::RequestKind;
use crate::runtime::steering::stop;
use crate::store::TreeOf;

/// Refuses an agent that cannot start afresh. `instructs`: whether the agent gets a new instruction. Concludes the agent's
/// attempt first if its processes have ended.
pub(super) fn check(app: &App<'_>, id: FrameId, instructs: bool) -> Result<(), AppError> {
    stop::conclude_ended(app.store, id)?;
    can_start(app, id, instructs)
}

/// Refuses an agent that cannot start afresh according to the records.
pub(super) fn can_start(app: &App<'_>, id: FrameId, instructs: bool) -> Result<(), AppError> {
    let frame = tell::agent(app.store, id)?;
    let short = id.short();
    let refuse = |why: String, hint: String| Err(Refusal::new(why).hint(hint).into());
    match &frame.state {
        FrameState::Running { .. } => {
            return refuse(
                format!("{short} is working"),
                format!("agent-cli pause {short}, then agent-cli resume {short} --afresh"),
            );
        }
        FrameState::Done if !instructs => {
            return refuse(
                format!("{short} is done: it has nothing to continue with"),
                format!("agent-cli resume {short} --afresh --prompt TEXT gives it a new instruction"),
            );
        }
        state if state.was_stopped() && !instructs => {
            return refuse(
                format!("{short} was stopped, and does not continue"),
                format!("agent-cli resume {short} --afresh --prompt TEXT gives it a new instruction"),
            );
        }
        _ => {}
    }
    if frame.checkpoint.is_none() {
        let why = match frame.summary() {
            Some(_) => format!("{short} has already written a summary: its next turn begins a new session"),
            None => format!("{short} has no conversation yet"),
        };
        return refuse(why, format!("agent-cli resume {short} continues it"));
    }
    let family = app.store.tree(TreeOf::Family(id))?;
    let Some(node) = family.get(id) else { return Ok(()) };
    if let Some(successor) = node.handed_off_to() {
        return refuse(
            format!("{short} has handed off to {}, and does not continue", successor.short()),
            format!("agent-cli resume {} --afresh", successor.short()),
        );
    }
    match awaits_approval(node) {
        Some(question) => refuse(
            format!("{short} was stopped at a call that a person has to approve, which another session could not make"),
            format!("agent-cli answer {question} allow or deny, and start afresh when it waits for something else"),
        ),
        None => Ok(()),
    }
}

/// The approval request at which an agent was stopped.
fn awaits_approval(node: &Node) -> Option<String> {
    let is_approval = |kind: &RequestKind| matches!(kind, RequestKind::Permission { .. } | RequestKind::Plan(_));
    node.requests.iter().find(|request| is_approval(&request.kind)).map(|request| request.id.short())
}
