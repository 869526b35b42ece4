//! How far an agent's turn has come, according to its transcript. While a subagent or a workflow runs in the background,
//! `claude` prints neither a suspended call nor a reply, but immediately writes both to the transcript.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::json_lines::{GrowingFile, blocks, json_lines_of};
use crate::claude::stream::lifetime::WrittenTurn;
use crate::claude::transcript::insert_results;
use crate::core::text::json;

/// Reads a growing transcript incrementally.
#[derive(Debug, Default)]
pub(crate) struct TurnReader {
    file: GrowingFile,
    turn: TurnSoFar,
}

#[derive(Debug, Default)]
struct TurnSoFar {
    /// The message of the model that was read last.
    message: Value,
    said: String,
    written: WrittenTurn,
}

pub(crate) fn read(transcript: &Path) -> io::Result<WrittenTurn> {
    let mut reader = TurnReader::new(transcript.to_owned());
    reader.read()?;
    Ok(reader.turn.written)
}

impl TurnReader {
    /// Reads the transcript at `path`.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { file: GrowingFile::new(path, 0), ..Self::default() }
    }

    /// Everything written so far.
    pub(crate) fn read(&mut self) -> io::Result<&WrittenTurn> {
        let Self { file, turn } = self;
        file.read(|line| turn.take(&json::read(line).unwrap_or_default()))?;
        Ok(&turn.written)
    }
}

impl TurnSoFar {
    fn take(&mut self, entry: &Value) {
        self.written.total_cost_usd = entry["totalCostUSD"].as_f64().or(self.written.total_cost_usd);
        if entry["isSidechain"] == true {
            return;
        }
        self.written.suspended.extend(insert_results::mark(entry).map(str::to_owned));
        let message = &entry["message"];
        match entry["type"].as_str() {
            Some("assistant") => {
                if self.message != message["id"] {
                    self.message = message["id"].clone();
                    (self.written.suspended, self.said) = (HashSet::new(), String::new());
                }
                blocks(entry).filter_map(|block| block["text"].as_str()).for_each(|text| self.said.push_str(text));
                // A line of an incomplete message has no stop reason.
                let is_over = !matches!(message["stop_reason"].as_str(), None | Some("tool_use" | "pause_turn"));
                // Claude Code writes errors in the agent's name.
                let is_its_own = message["model"] != "<synthetic>";
                self.written.reply = (is_over && is_its_own).then(|| self.said.clone());
            }
            Some("user") => self.written.reply = None,
            _ => {}
        }
    }
}

/// Whether the agent has continued from `call` before the transcript has its result, because Claude Code has told it that the
/// result is missing.
pub(crate) fn lacks_result(transcript: &Path, call: &str) -> io::Result<bool> {
    let mut made = None;
    for entry in json_lines_of::<Value>(transcript)? {
        let entry = entry?;
        if entry["isSidechain"] == true {
            continue;
        }
        match (entry["type"].as_str(), &made) {
            (Some("assistant"), _) if blocks(&entry).any(|block| block["id"] == call) => {
                made = Some(entry["message"]["id"].clone());
            }
            (Some("assistant"), Some(message)) if entry["message"]["id"] != *message => return Ok(true),
            (Some("user"), Some(_)) if blocks(&entry).any(|block| block["tool_use_id"] == call) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    fn said(id: &str, text: &str, stop_reason: &Value) -> String {
        let content = [json!({"type": "text", "text": text})];
        json!({"type": "assistant", "message": {"id": id, "content": content, "stop_reason": stop_reason}}).to_string()
    }

    fn mark(call: &str) -> String {
        json!({"type": "attachment", "attachment": {"type": "hook_deferred_tool", "toolUseID": call}}).to_string()
    }

    fn of(lines: &[String]) -> WrittenTurn {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        read(file.path()).unwrap()
    }

    #[test]
    fn a_reply_is_all_that_the_last_message_says_when_it_is_over() {
        let (over, open) = (json!("end_turn"), Value::Null);
        assert_eq!(of(&[said("m1", "a", &over), said("m1", "b", &over)]).reply.as_deref(), Some("ab"));
        assert_eq!(of(&[said("m1", "a", &over), said("m2", "b", &over)]).reply.as_deref(), Some("b"));
        for not_over in [open, json!("tool_use")] {
            assert_eq!(of(&[said("m1", "a", &not_over)]).reply, None);
        }
        let error = said("m1", "API Error: 529", &json!("stop_sequence"))
            .replacen("\"id\"", "\"model\":\"<synthetic>\",\"id\"", 1);
        assert_eq!(of(&[error]).reply, None);
        let notification = json!({"type": "user", "message": {"content": "<task-notification>"}}).to_string();
        assert_eq!(of(&[said("m1", "a", &over), notification]).reply, None);
    }

    #[test]
    fn marks_count_until_the_agent_goes_on() {
        let call = said("m1", "", &json!("tool_use"));
        let both = of(&[call.clone(), mark("t1"), call.clone(), mark("t2")]);
        assert_eq!(both.suspended, ["t1", "t2"].map(str::to_owned).into());
        assert!(of(&[call, mark("t1"), said("m2", "", &json!("end_turn"))]).suspended.is_empty());
        let theirs = mark("t1").replacen('{', "{\"isSidechain\":true,", 1);
        assert!(of(&[theirs]).suspended.is_empty());
    }

    #[test]
    fn what_is_added_is_read_and_what_is_torn_is_read_later() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| file.as_file().write_all(text.as_bytes()).unwrap();
        let mut reader = TurnReader::new(file.path().to_owned());
        let line = said("m1", "so", &json!("end_turn"));
        write("garbage\n{\"type\":\"cost-state\",\"totalCostUSD\":0.5}\n");
        write(&line[..9]);
        assert_eq!(reader.read().unwrap(), &WrittenTurn { total_cost_usd: Some(0.5), ..WrittenTurn::default() });
        write(&format!("{}\n", &line[9..]));
        for _ in 0..2 {
            assert_eq!(reader.read().unwrap().reply.as_deref(), Some("so"));
        }
    }

    mod handed_over {
        use super::super::*;

        const CALL: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1"}]}}"#;
        const OTHER: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t2"}]}}"#;
        const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
        const OF_OTHER: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}"#;
        const ANSWER: &str = r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"so"}]}}"#;
        const OF_SUBAGENT: &str =
            r#"{"type":"assistant","isSidechain":true,"message":{"id":"m3","content":[{"type":"text","text":"so"}]}}"#;

        fn lacks(lines: &[&str]) -> bool {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
            lacks_result(file.path(), "t1").unwrap()
        }

        #[test]
        fn a_result_is_lacking_if_the_agent_answered_before_it() {
            assert!(!lacks(&[CALL, OTHER, OF_OTHER, RESULT, ANSWER]));
            assert!(!lacks(&[CALL, OF_SUBAGENT, "torn", RESULT]));
            assert!(lacks(&[CALL, OTHER, OF_OTHER, ANSWER, RESULT]));
            assert!(lacks(&[CALL, ANSWER]));
            assert!(!lacks(&[CALL]), "it has not gone on");
            assert!(!lacks(&[ANSWER]), "there is no such call");
        }
    }
}
