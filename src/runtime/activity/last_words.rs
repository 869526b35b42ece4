//! What an agent said last.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::claude::events::line_cutter::LineCutter;
use crate::claude::events::translate::translate;
use crate::core::attempt::signal::Signal;
use crate::core::events::agent_event::AgentEventKind;
use crate::core::id::FrameId;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::Store;

/// How much of the end of the output is read, in bytes. What an agent says before it asks is near its end.
const TAIL: u64 = 1024 * 1024;
/// Longer texts are cut.
const LONGEST: usize = 4_000;

/// The last text of a frame's agent itself; `None`: it has not said anything lately.
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
            let translated = translate(line.text);
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
}
