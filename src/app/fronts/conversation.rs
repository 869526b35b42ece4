//! Reads an agent's conversation, one page at a time.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::logs::{self, Input};
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::id::FrameId;

/// One page of a conversation, in chronological order.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) events: Vec<AgentEvent>,
    /// Whether there are earlier events.
    pub(crate) has_earlier: bool,
    /// Where the next page begins, if any.
    pub(crate) later: Option<Timestamp>,
}

/// The number of events on a page.
const MOST: usize = 200;

/// Reads the events that mean something to people: the last events, or the first ones since a time.
pub(crate) fn read(
    app: &App<'_>,
    agent: FrameId,
    since: Option<Timestamp>,
    is_full: bool,
) -> Result<Conversation, AppError> {
    let tail = since.is_none().then_some(MOST + 1);
    let input = Input { id: agent.to_string(), with_descendants: false, since, tail, is_full, follows: false };
    let mut found = logs::logs(app, &input, |event| is_shown(&event.what))?;
    let mut events = Vec::new();
    while let Some(event) = found.next()?.filter(|_| events.len() <= MOST) {
        if is_shown(&event.what) {
            events.push(event);
        }
    }
    let is_cut = events.len() > MOST;
    if since.is_none() {
        events.drain(..usize::from(is_cut));
        return Ok(Conversation { events, has_earlier: is_cut, later: None });
    }
    let later = events.pop_if(|_| is_cut).map(|event| event.at);
    Ok(Conversation { events, has_earlier: true, later })
}

/// Whether an event means something to people.
fn is_shown(what: &AgentEventKind) -> bool {
    match what {
        AgentEventKind::RequestOver { .. } | AgentEventKind::Other { .. } => false,
        AgentEventKind::Thinking { text } => !text.trim().is_empty(),
        AgentEventKind::RateLimit { status, .. } => status != "allowed",
        AgentEventKind::Task { status, .. } => status != "progress",
        _ => true,
    }
}

/// Returns an event's name in links. It is the same on every page of the conversation.
pub(crate) fn anchor(event: &AgentEvent) -> String {
    let what = serde_json::to_value(&event.what).unwrap_or_default();
    let text = |name: &str| what[name].as_str().map(|text| text.chars().take(80).collect::<String>());
    let named = ["type", "id", "tool_use_id", "text", "status"].map(text);
    let attempt = event.attempt.map(|attempt| attempt.to_string());
    let bytes = Sha256::digest(format!("{} {attempt:?} {named:?}", event.at));
    bytes[..6].iter().fold("e-".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}
