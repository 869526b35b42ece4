//! Reads the output of an attempt.

use std::collections::HashSet;
use std::io::{self, BufRead};
use std::path::PathBuf;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use crate::claude::json_lines::{GrowingFile, blocks, json_lines};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::event::{StreamBlock, StreamEvent};
use crate::claude::stream::tokens::of_answer;
use crate::core::agent::usage::Usage;
use crate::core::requests::request::Returned;
use crate::core::text::json;

/// Reads events until `stream` ends.
///
/// A broken line (garbage, a line torn by a kill) is counted and skipped.
pub(crate) fn read(mut stream: impl BufRead) -> io::Result<Digest> {
    let (mut digest, mut line) = (Digest::default(), Vec::new());
    while stream.read_until(b'\n', &mut line)? > 0 {
        absorb(&line, &mut digest);
        line.clear();
    }
    Ok(digest)
}

fn absorb(line: &[u8], digest: &mut Digest) {
    match json::read::<StreamEvent>(line) {
        Ok(event) => digest.absorb(event),
        Err(_) => digest.broken_lines += u64::from(!line.trim_ascii().is_empty()),
    }
}

/// The tool that was called with the id `call`, if the call was printed.
pub(crate) fn tool_of(stream: impl BufRead, call: &str) -> io::Result<Option<String>> {
    find_block(stream, call, |block| {
        let is_made = block["type"] == "tool_use" && block["id"] == call;
        block["name"].as_str().filter(|_| is_made).map(str::to_owned)
    })
}

/// What the call with the id `call` has returned, if that was printed.
pub(crate) fn returned(stream: impl BufRead, call: &str) -> io::Result<Option<Returned>> {
    find_block(stream, call, |block| {
        let is_result = block["type"] == "tool_result" && block["tool_use_id"] == call;
        if is_result { StreamBlock::deserialize(block).ok()?.as_result() } else { None }
    })
}

/// The result of `found` for the first block that it accepts, among those of messages that contain the id `call`.
fn find_block<T>(stream: impl BufRead, call: &str, found: impl Fn(&Value) -> Option<T>) -> io::Result<Option<T>> {
    for line in stream.split(b'\n') {
        let line = line?;
        // Few lines contain the id, so long ones without it are not parsed.
        let names = memmem::find(&line, call.as_bytes()).is_some();
        let event: Value = if names { json::read(&line).unwrap_or_default() } else { Value::Null };
        if let Some(found) = blocks(&event).find_map(&found) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// How many turns were made, as Claude Code counts them: the responses of the API that the agent itself got.
pub(crate) fn turns(stream: impl BufRead) -> io::Result<usize> {
    let mut answers = HashSet::new();
    for event in json_lines::<StreamEvent>(stream) {
        let event = event?;
        let is_answer = event.kind == "assistant" && event.parent_tool_use_id.is_null();
        let message = event.message;
        let id = message.id.as_str().filter(|_| is_answer && message.model != "<synthetic>");
        answers.extend(id.map(str::to_owned));
    }
    Ok(answers.len())
}

/// What the first request sent and was answered, and the model.
pub(crate) fn first_answer(stream: impl BufRead) -> io::Result<Option<(String, Usage)>> {
    for event in json_lines::<StreamEvent>(stream) {
        let StreamEvent { kind, message, .. } = event?;
        let model = message.model.as_str().filter(|model| kind == "assistant" && !model.starts_with('<'));
        if let Some(model) = model {
            return Ok(Some((model.to_owned(), of_answer(&message.usage))));
        }
    }
    Ok(None)
}

/// Where the login of a session comes from, as Claude Code says when it begins.
pub(crate) fn login(stream: impl BufRead) -> io::Result<Option<Login>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Init {
        api_key_source: String,
    }
    let init = json_lines::<Init>(stream).next().transpose()?;
    Ok(init.map(|init| if init.api_key_source == "none" { Login::Subscription } else { Login::Key }))
}

/// How Claude Code is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Subscription,
    Key,
}

/// The ids of the events: the transcript has the same messages under the same ids.
pub(crate) fn names(stream: impl BufRead) -> io::Result<HashSet<String>> {
    #[derive(Deserialize)]
    struct NamedEvent {
        uuid: String,
    }
    json_lines::<NamedEvent>(stream).map(|event| Ok(event?.uuid)).collect()
}

/// The id of the last message from or to the agent; `None`: without a message, or if it has no id.
pub(crate) fn last_message(stream: impl BufRead) -> io::Result<Option<String>> {
    #[derive(Deserialize)]
    struct NamedMessage {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        parent_tool_use_id: Value,
        uuid: Option<String>,
    }
    let mut last = None;
    for event in json_lines::<NamedMessage>(stream) {
        let event = event?;
        if matches!(event.kind.as_str(), "user" | "assistant") && event.parent_tool_use_id.is_null() {
            last = event.uuid;
        }
    }
    Ok(last)
}

/// Reads what a running attempt has printed since the last read.
#[derive(Debug)]
pub(crate) struct OutputFollower {
    file: GrowingFile,
    digest: Digest,
}

impl OutputFollower {
    /// Reads the events in the file at `path`, starting at offset `from`.
    pub(crate) fn new(path: PathBuf, from: u64) -> Self {
        Self { file: GrowingFile::new(path, from), digest: Digest::default() }
    }

    /// Everything printed so far.
    pub(crate) fn read(&mut self) -> io::Result<&Digest> {
        self.file.read(|line| absorb(line, &mut self.digest))?;
        Ok(&self.digest)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use proptest::prelude::*;

    use super::*;

    const RESULT: &str = r#"{"type":"result","is_error":false,"result":"Jan 1st"}"#;

    fn reply(text: &[u8], buffer: usize) -> (Option<String>, u64) {
        let digest = read(BufReader::with_capacity(buffer, text)).unwrap();
        (digest.result.map(|result| result.text), digest.broken_lines)
    }

    #[test]
    fn a_turn_is_an_answer_that_the_agent_itself_got() {
        let lines = [
            r#"{"type":"assistant","message":{"id":"m1","content":[]}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[]}}"#,
            r#"{"type":"assistant","message":{"id":"m3","model":"<synthetic>"}}"#,
            r#"{"type":"user","message":{"id":"m4"}}"#,
            "torn",
            r#"{"type":"assistant","message":{"id":"m5"}}"#,
        ];
        assert_eq!(turns(lines.join("\n").as_bytes()).unwrap(), 2);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        let text = format!("garbage\n\n{{\"type\":\"sys\n{RESULT}\n\u{1}\u{2}\n{{\"torn\":");
        for buffer in [1, 7, 8192] {
            assert_eq!(reply(text.as_bytes(), buffer), (Some("Jan 1st".into()), 4));
        }
        assert_eq!(reply(b"", 8192), (None, 0));
    }

    #[test]
    fn the_tool_of_a_call_is_known_once_it_was_printed() {
        let call = |id: &str, tool: &str| {
            let block = serde_json::json!({"type": "tool_use", "id": id, "name": tool, "input": {"command": "t1 t2"}});
            serde_json::json!({"type": "assistant", "message": {"content": [block]}}).to_string()
        };
        let text = format!("garbage t2\n{}\n{}\n", call("t1", "Bash"), call("t2", "Monitor"));
        let tool = |id| tool_of(text.as_bytes(), id).unwrap();
        assert_eq!((tool("t1").as_deref(), tool("t2").as_deref()), (Some("Bash"), Some("Monitor")));
        assert_eq!(tool("t3"), None);
    }

    #[test]
    fn a_last_line_without_its_end_is_read() {
        assert_eq!(reply(RESULT.as_bytes(), 8192), (Some("Jan 1st".into()), 0));
    }

    #[test]
    fn what_is_printed_is_followed_line_by_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let print = |text: &str| file.as_file().write_all(text.as_bytes()).unwrap();
        print("of an earlier attempt\n");
        let mut follower = OutputFollower::new(file.path().to_owned(), 22);
        print(&RESULT[..10]);
        assert_eq!(follower.read().unwrap(), &Digest::default());
        print(&format!("{}\ngarbage\n", &RESULT[10..]));
        for _ in 0..2 {
            let digest = follower.read().unwrap();
            assert_eq!(
                (digest.result.as_ref().map(|result| result.text.as_str()), digest.broken_lines),
                (Some("Jan 1st"), 1)
            );
        }
    }

    #[test]
    fn two_events_on_one_line_are_broken_and_do_not_reach_the_next() {
        let text = format!("{RESULT}{RESULT}\n{}\n", RESULT.replace("Jan 1st", "Feb 2nd"));
        assert_eq!(reply(text.as_bytes(), 8192), (Some("Feb 2nd".into()), 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(before: Vec<u8>, buffer in 1usize..64) {
            let mut text = before;
            text.extend([b"\n", RESULT.as_bytes()].concat());
            prop_assert_eq!(reply(&text, buffer).0, Some("Jan 1st".into()));
        }
    }
}
