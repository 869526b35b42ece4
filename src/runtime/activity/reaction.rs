//! What an agent did first once it had an answer.

use std::collections::VecDeque;

use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::runtime::activity::output::{Output, Span};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Exchange, Store};

/// A summary needs no more of a text.
const TEXT: usize = 2_000;

/// The first call or text of the agent after it was given an answer; `None`: there was none, or there was no answer.
///
/// # Errors
///
/// What it printed cannot be read.
pub(crate) fn reaction(store: &Store, exchange: &Exchange) -> Result<Option<AgentEvent>, RuntimeError> {
    let (Some(given), Some(answered)) = (exchange.given, exchange.records.last()) else { return Ok(None) };
    let path = store.dir().printed(exchange.frame);
    let mut output = Output::new(exchange.frame, path, Some(TEXT)).beginning_at(given.output_from);
    output.look().map_err(while_trying(READ_PRINTED))?;
    let attempts = store.attempts(exchange.frame)?;
    output.set_spans(attempts.iter().filter(|attempt| attempt.id == given.attempt).map(Span::new).collect());
    let mut events = VecDeque::new();
    loop {
        let more = output.read(None, &mut events).map_err(while_trying(READ_PRINTED))?;
        let found = events.drain(..).find(|event| {
            // An agent can read an answer without a pause, when it has done other things.
            let is_after = given.began >= answered.at || event.at >= answered.at;
            is_after && event.parent_tool_use_id.is_none() && is_a_deed(&event.what, exchange.call.as_deref())
        });
        if found.is_some() || !more {
            return Ok(found);
        }
    }
}

/// Whether it is a deed of the agent. The call that returns the answer is printed once more when it does.
fn is_a_deed(what: &AgentEventKind, call: Option<&str>) -> bool {
    match what {
        AgentEventKind::ToolUse { id, .. } => Some(id.as_str()) != call,
        AgentEventKind::Text { text } => !text.trim().is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deed_is_a_text_or_another_call() {
        let call = |id: &str| AgentEventKind::ToolUse {
            id: id.into(),
            name: "Bash".into(),
            summary: "Bash: ls".into(),
            input: serde_json::Value::Null,
        };
        let text = |text: &str| AgentEventKind::Text { text: text.into() };
        let is = |what| is_a_deed(&what, Some("toolu_asked"));
        assert_eq!(
            [is(call("toolu_asked")), is(call("toolu_next")), is(text(" \n")), is(text("So."))],
            [false, true, false, true]
        );
        assert!(!is(AgentEventKind::Other { name: "system/x".into() }));
    }
}
