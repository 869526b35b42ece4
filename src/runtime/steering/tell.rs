//! Sends messages to agents, and new instructions to finished ones.

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::MessageId;
use crate::core::steering::message::MessageSender;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Store, Telling};

/// When an agent gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrives {
    /// With the result of its next tool call, or when its turn ends.
    NextCall,
    /// When it continues.
    NextWakeUp,
}

/// Records a message, and announces it where the agent's hook looks.
pub(crate) fn tell(
    store: &Store,
    frame: &Frame,
    text: &str,
    sender: &MessageSender,
) -> Result<(MessageId, Arrives), RuntimeError> {
    let message = store.tell(frame.id, Telling::Message, text, sender)?;
    // It may have started to run since.
    let runs = store.frame(frame.id)?.is_some_and(|frame| matches!(frame.state, FrameState::Running { .. }));
    // A runner on another host announces it.
    if runs && store.elsewhere(frame.id)?.is_none() {
        store.dir().note_message(frame.id).map_err(while_trying("write the file that names messages"))?;
    }
    Ok((message, if runs { Arrives::NextCall } else { Arrives::NextWakeUp }))
}
