//! Opens a copy of an agent's conversation.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::lookup::frame_named;
use crate::core::id::FrameId;
use crate::runtime::steering::opening::Opening;
use crate::store::StoreError;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) agent: FrameId,
    /// How a copy of its conversation is opened.
    pub(crate) opening: Opening,
}

/// Prepares to open a copy of a conversation. If the agent is paused inside a call, the copy in which the call is closed is
/// written now.
pub(crate) fn open(app: &App<'_>, id: &str) -> Result<Outcome, AppError> {
    app.asker.may(PersonsTask::OpenConversations)?;
    let agent = frame_named(app, id)?;
    let frame = app.store.frame(agent)?.ok_or(StoreError::UnknownFrame(agent))?;
    Ok(Outcome { agent, opening: Opening::prepared(app.store, &frame)? })
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
        let refused = open(&testing::app_of(&store, caller), &id).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot open conversations");
        let app = testing::app(&store);
        assert!(matches!(open(&app, &id).unwrap_err(), AppError::Runtime(RuntimeError::Fork(_))));
        assert!(matches!(open(&app, "0000").unwrap_err(), AppError::Store(StoreError::Unknown(_))));
    }
}
