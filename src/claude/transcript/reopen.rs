//! Reopens a call that was denied: the transcript is cut off after the call, which is marked as suspended.
//!
//! Claude Code takes the mark for its own. Resumed without a prompt, it repeats the call with the same id and input, and asks
//! again whether it may run.

use std::collections::HashMap;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::claude::json_lines::blocks;
use crate::claude::stream::event::REJECTED;
use crate::claude::transcript::ancestry::Broken;
use crate::claude::transcript::rewrite::{Change, Entries};

/// The result of another call in the message at which the agent was stopped.
pub(crate) const NOT_RUN: &str =
    "not run: another call of this turn needed an approval first. Call it again if it is still needed.";

/// Copies a transcript that ends with the denial of `call`, and reopens that call. `None`: there is no such call, or the agent
/// has continued since.
pub(crate) fn copy(transcript: &Entries, call: &str) -> Result<Option<Vec<u8>>, Broken> {
    let mut made: Option<&Value> = None;
    let mut changes = HashMap::new();
    for (at, entry) in transcript.rows() {
        let has = |name: &str| blocks(entry).any(|block| block[name] == call);
        if has("id") {
            made = Some(entry);
        } else if let Some(made) = &made {
            if entry["type"] == "assistant" && entry["message"]["id"] != made["message"]["id"] {
                return Ok(None);
            }
            if has("tool_use_id") || is_interruption(entry) {
                changes.insert(at, Change::Drop);
            } else if entry["toolUseResult"] == REJECTED {
                changes.insert(at, Change::Replace(not_run(entry.clone())));
            }
        }
    }
    let Some(mark) = made.and_then(|made| mark(call, made)) else { return Ok(None) };
    transcript.copy(&changes, vec![mark]).map(Some)
}

fn is_interruption(entry: &Value) -> bool {
    let says =
        |block: &Value| block["text"].as_str().is_some_and(|text| text.starts_with("[Request interrupted by user"));
    entry["type"] == "user" && blocks(entry).any(says)
}

fn not_run(mut entry: Value) -> Value {
    for block in entry["message"]["content"].as_array_mut().into_iter().flatten() {
        if block["type"] == "tool_result" {
            block["content"] = NOT_RUN.into();
        }
    }
    entry
}

fn mark(call: &str, made: &Value) -> Option<Value> {
    let block = blocks(made).find(|block| block["id"] == call)?;
    let attachment = json!({
        "type": "hook_deferred_tool", "toolUseID": call, "toolName": block["name"], "toolInput": block["input"],
    });
    let mut mark =
        json!({"type": "attachment", "uuid": Uuid::new_v4(), "parentUuid": made["uuid"], "attachment": attachment});
    for same in crate::claude::transcript::insert_results::SAME {
        if let Some(value) = made.get(same) {
            mark[same] = value.clone();
        }
    }
    Some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"type":"assistant","uuid":"u1","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"x"}}]}}"#;
    const OTHER: &str = r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","message":{"id":"m1","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}"#;
    const DENIED: &str = r#"{"type":"user","uuid":"u3","parentUuid":"u1","sourceToolAssistantUUID":"u1","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]},"toolUseResult":"User rejected tool use"}"#;
    const REJECTION: &str = r#"{"type":"user","uuid":"u4","parentUuid":"u2","sourceToolAssistantUUID":"u2","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"STOP"}]},"toolUseResult":"User rejected tool use"}"#;
    const STOPPED: &str = r#"{"type":"user","uuid":"u5","parentUuid":"u3","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;

    fn copied(lines: &[&str]) -> Option<Vec<Value>> {
        let transcript = Entries::read((lines.join("\n") + "\n").as_bytes()).unwrap();
        let text = String::from_utf8(copy(&transcript, "t1").unwrap()?).unwrap();
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect())
    }

    #[test]
    fn a_denied_call_is_open_and_marked() {
        let lines = copied(&["garbage", CALL, DENIED, STOPPED, r#"{"type":"last-prompt"}"#]).unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!((&lines[2]["type"], &lines[3]["parentUuid"]), (&json!("last-prompt"), &json!("u1")));
        assert_eq!(lines[3]["sessionId"], "s");
        let attachment = json!({"type": "hook_deferred_tool", "toolUseID": "t1", "toolName": "Bash",
            "toolInput": {"command": "x"}});
        assert_eq!(lines[3]["attachment"], attachment);
    }

    #[test]
    fn what_followed_on_the_denial_follows_on_the_call() {
        let later = r#"{"type":"attachment","uuid":"u7","parentUuid":"u5"}"#;
        let at = r#"{"type":"last-prompt","leafUuid":"u5"}"#;
        let lines = copied(&[CALL, DENIED, STOPPED, later, at]).unwrap();
        assert_eq!(lines[1]["parentUuid"], "u1");
        assert_eq!(lines[2]["leafUuid"], lines[3]["uuid"], "the conversation stands at the mark");
    }

    #[test]
    fn a_call_beside_it_that_was_not_run_says_so() {
        let lines = copied(&[CALL, OTHER, DENIED, REJECTION, STOPPED]).unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2]["message"]["content"][0]["content"], NOT_RUN);
    }

    #[test]
    fn what_the_agent_has_gone_on_from_is_not_opened() {
        let next = r#"{"type":"assistant","uuid":"u6","parentUuid":"u3","message":{"id":"m2","content":[{"type":"text","text":"so"}]}}"#;
        assert_eq!(copied(&[CALL, DENIED, next]), None);
        assert_eq!(copied(&[OTHER, REJECTION, STOPPED]), None);
    }
}
