//! Opens a copy of an agent's conversation.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup::frame_named;
use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::runtime::steering::opening::Opening;
use crate::store::Attempt;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) agent: FrameId,
    /// How to open a copy of the agent's conversation.
    pub(crate) opening: Opening,
}

/// Prepares to open a copy of an agent's conversation, or with `earlier` of its conversation before it started afresh.
///
/// If the agent is paused inside a call, this writes a copy in which the call is closed.
pub(crate) fn open(app: &App<'_>, id: &str, earlier: bool) -> Result<Outcome, AppError> {
    app.asker.may(PersonsTask::OpenConversations)?;
    let agent = frame_named(app, id)?;
    let frame = app.store.frame_here(agent)?;
    let frame = if earlier { before_it_started_afresh(app, frame)? } else { frame };
    Ok(Outcome { agent, opening: Opening::prepared(app.store, &frame)? })
}

/// Returns the agent with the conversation that it last summarised.
fn before_it_started_afresh(app: &App<'_>, frame: Frame) -> Result<Frame, AppError> {
    let short = frame.id.short();
    match app.store.attempts(frame.id)?.into_iter().rev().find(Attempt::is_summary) {
        Some(Attempt { session, summarises, .. }) => Ok(Frame { session, checkpoint: summarises, ..frame }),
        None => {
            let refusal = Refusal::new(format!("{short} has no earlier conversation: it has not started afresh"));
            Err(refusal.hint(format!("agent-cli open {short} opens its conversation")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::runtime::RuntimeError;
    use crate::store;

    #[test]
    fn agents_open_nothing_and_an_agent_without_a_conversation_has_nothing_to_open() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let id = caller.frame.to_string();
        let refused = open(&testing::app_of(&store, caller), &id, false).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot open conversations");
        let app = testing::app(&store);
        assert!(matches!(open(&app, &id, false).unwrap_err(), AppError::Runtime(RuntimeError::Fork(_))));
        let refused = open(&app, &id, true).unwrap_err().to_string();
        assert!(refused.ends_with("has no earlier conversation: it has not started afresh"), "{refused}");
        assert!(matches!(open(&app, "0000", false).unwrap_err(), AppError::Store(store::StoreError::Unknown(_))));
    }
}
