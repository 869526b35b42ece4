//! Gives a working agent the messages of people and agents above, together with the results of its calls.

use crate::claude::tools::hook_input::{HookAnswer, HookInput, POST_TOOL_USE};
use crate::core::steering::message;
use crate::runtime::protocol::response::HookResponse;
use crate::runtime::protocol::{Asking, ProtocolError};
use crate::runtime::while_trying;

/// Claude Code puts longer texts of hooks into a file. Longer messages are delivered in the prompt after this turn.
const LONGEST: usize = 8_000;

/// Answers what Claude Code has written to the hook's standard input after calls.
///
/// # Errors
///
/// [`ProtocolError`] if the messages cannot be read. They are delivered later then.
pub(crate) fn answer(asking: &Asking, input: &[u8]) -> Result<HookResponse, ProtocolError> {
    let input = HookInput::parse(input).map_err(|error| while_trying("read the hook's input")(error.into()))?;
    // The calls of a subagent are not the agent's.
    if input.agent_id.is_some() {
        return Ok(HookAnswer::Pass.into());
    }
    let (store, caller) = (asking.store()?, asking.caller);
    // Before they are read: later messages are announced again.
    store.dir().forget_messages(caller.frame).map_err(while_trying("remove the file that names messages"))?;
    let text = message::in_words(&store.give_messages(caller, LONGEST)?);
    let event = input.hook_event_name.unwrap_or_else(|| POST_TOOL_USE.to_owned());
    Ok(text.map_or(HookAnswer::Pass, |text| HookAnswer::Tell { event, text }).into())
}
