//! An agent's last message, and its first reaction to an answer.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::claude::stream::line_cutter::LineCutter;
use crate::claude::stream::translate::translate;
use crate::core::attempt::signal::Signal;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::id::FrameId;
use crate::runtime::activity::output::{Output, Span};
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Exchange, Store};

/// How many bytes at the end of the output are read. An agent's last words before a question are near its end.
const TAIL: u64 = 1024 * 1024;
/// Longer texts are cut.
const LONGEST: usize = 4_000;

/// The last text of a frame's agent, without its subagents; `None`: it has not printed any lately.
pub(crate) fn last_words(store: &Store, frame: FrameId) -> Result<Option<String>, RuntimeError> {
    let read = || -> io::Result<Option<String>> {
        let mut printed = match File::open(store.dir().printed(frame)) {
            Ok(printed) => printed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let from = printed.metadata()?.len().saturating_sub(TAIL);
        printed.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        printed.take(TAIL).read_to_end(&mut bytes)?;
        let mut said = None;
        LineCutter::new(Some(LONGEST)).push(&bytes, |line| {
            let translated = translate(line.text, None);
            for happening in translated.happenings {
                if let AgentEventKind::Text { text } = happening
                    && translated.parent_tool_use_id.is_none()
                    && !text.trim().is_empty()
                    && Signal::on_a_line(&text).is_none()
                {
                    said = Some(text);
                }
            }
        });
        Ok(said)
    };
    read().map_err(while_trying(READ_PRINTED))
}

/// Enough of a text for a summary.
const TEXT: usize = 2_000;

/// The first call or text of the agent after it was given an answer; `None`: there was none, or there was no answer.
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
            // An agent can read an answer without a pause, after it has done other things.
            let is_after = given.began >= answered.at || event.at >= answered.at;
            is_after && event.parent_tool_use_id.is_none() && is_a_deed(&event.what, exchange.call.as_deref())
        });
        if found.is_some() || !more {
            return Ok(found);
        }
    }
}

/// Whether the agent did this itself. The call that returns the answer is printed again when it returns, which does not
/// count.
fn is_a_deed(what: &AgentEventKind, call: Option<&str>) -> bool {
    match what {
        AgentEventKind::ToolUse { id, .. } => Some(id.as_str()) != call,
        AgentEventKind::Text { text } => !text.trim().is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_agent_itself_said_last_is_found_near_the_end() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(temp.path()).unwrap();
        let frame = FrameId::random();
        assert_eq!(last_words(&store, frame).unwrap(), None);
        let said = |text: &str, parent: Option<&str>| {
            let message = json!({"model": "m", "content": [{"type": "text", "text": text}]});
            json!({"type": "assistant", "message": message, "parent_tool_use_id": parent}).to_string() + "\n"
        };
        let path = store.dir().printed(frame);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lines = [
            said("early", None),
            said(&"x".repeat(2_000_000), Some("toolu_1")),
            said(&format!("I need a date. {}", "y".repeat(5_000)), None),
            said("a subagent", Some("toolu_1")),
            said("SGN_PEND_STARTED (4f2c1a90)", None),
            said(" ", None),
        ];
        std::fs::write(&path, lines.concat()).unwrap();
        let found = last_words(&store, frame).unwrap().unwrap();
        assert!(
            found.starts_with("I need a date. y") && found.ends_with("y…") && found.len() < 5_000,
            "{}",
            found.len()
        );
        std::fs::write(&path, "no JSON\n").unwrap();
        assert_eq!(last_words(&store, frame).unwrap(), None);
    }

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
