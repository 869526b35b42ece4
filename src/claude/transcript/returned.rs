//! Whether a call that was handed its result from outside has it where its agent saw it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use crate::core::text::json;

/// Whether the agent has gone on from `call` before the transcript has its result: Claude Code has told it then that the result is
/// missing.
pub(crate) fn lacks_result(transcript: &Path, call: &str) -> io::Result<bool> {
    let (mut reader, mut line) = (BufReader::new(File::open(transcript)?), Vec::new());
    let mut made = None;
    while reader.read_until(b'\n', &mut line)? > 0 {
        let entry: Value = json::read(&line).unwrap_or_default();
        line.clear();
        let blocks = || entry["message"]["content"].as_array().into_iter().flatten();
        if entry["isSidechain"] == true {
            continue;
        }
        match (entry["type"].as_str(), &made) {
            (Some("assistant"), _) if blocks().any(|block| block["id"] == call) => {
                made = Some(entry["message"]["id"].clone());
            }
            (Some("assistant"), Some(message)) if entry["message"]["id"] != *message => return Ok(true),
            (Some("user"), Some(_)) if blocks().any(|block| block["tool_use_id"] == call) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

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
