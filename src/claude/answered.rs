//! Results that are put into a transcript, for calls whose results Claude Code cannot be made to ask for.
//!
//! A suspended call is asked about again when its session is resumed, and then a hook gives its result. That is only so
//! for one call of a message, for results that a command can print unchanged, and where hooks run. In every other case
//! the results are written into a copy of the transcript, in the place of the marks that the calls are suspended, as
//! Claude Code would have written them had the calls merely taken long. A prompt then makes the agent go on.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};
use uuid::Uuid;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The text, exact to the byte.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Copies a transcript and adds the results of calls that have none in it. Returns those results for which there is no
/// such call.
///
/// # Errors
///
/// Those of reading and writing. Lines that are no JSON are copied as they are.
pub fn copy(
    transcript: impl BufRead,
    mut results: HashMap<String, CallResult>,
    mut to: impl Write,
) -> io::Result<HashMap<String, CallResult>> {
    let mut calls: Vec<(String, Value)> = Vec::new();
    for line in transcript.split(b'\n') {
        let line = line?;
        let entry = serde_json::from_slice::<Value>(&line).unwrap_or_default();
        if mark(&entry).is_some_and(|call| results.contains_key(call)) {
            continue;
        }
        for block in entry["message"]["content"].as_array().into_iter().flatten() {
            if let Some(call) = block["id"].as_str().filter(|call| results.contains_key(*call)) {
                calls.push((call.to_owned(), entry.clone()));
            }
            // A call that has its result needs no other.
            if let Some(call) = block["tool_use_id"].as_str() {
                calls.retain(|(open, _)| open != call);
            }
        }
        if !line.is_empty() {
            to.write_all(&line)?;
            to.write_all(b"\n")?;
        }
    }
    for (call, made) in calls {
        let Some(result) = results.remove(&call) else { continue };
        writeln!(to, "{}", entry(&call, &made, &result))?;
    }
    Ok(results)
}

/// The calls of a transcript that have no result, if one of them is marked as suspended. Otherwise none: of calls that
/// were cut short Claude Code tells the agent itself.
///
/// # Errors
///
/// Those of reading.
pub fn suspended_calls(transcript: impl BufRead) -> io::Result<Vec<String>> {
    let (mut open, mut marked) = (Vec::new(), Vec::new());
    for line in transcript.split(b'\n') {
        let entry = serde_json::from_slice::<Value>(&line?).unwrap_or_default();
        marked.extend(mark(&entry).map(str::to_owned));
        for block in entry["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                open.extend(block["id"].as_str().map(str::to_owned));
            }
            if let Some(call) = block["tool_use_id"].as_str() {
                open.retain(|open| open != call);
            }
        }
    }
    Ok(if open.iter().any(|call| marked.contains(call)) { open } else { Vec::new() })
}

/// What all lines that follow on one line have in common.
pub(super) const SAME: [&str; 7] = ["sessionId", "timestamp", "cwd", "version", "gitBranch", "userType", "isSidechain"];

/// The call that a line of a transcript marks as suspended, if it is such a line.
pub(super) fn mark(entry: &Value) -> Option<&str> {
    let attachment = &entry["attachment"];
    attachment["toolUseID"].as_str().filter(|_| attachment["type"] == "hook_deferred_tool")
}

/// A line with the result of `call`, which the line `made` has made. It follows on that line: 2.1.89 would not see it
/// elsewhere.
fn entry(call: &str, made: &Value, result: &CallResult) -> Value {
    let block = json!({
        "type": "tool_result", "tool_use_id": call, "content": result.text, "is_error": result.is_error,
    });
    let mut entry = json!({
        "type": "user",
        "uuid": Uuid::new_v4(),
        "parentUuid": made["uuid"],
        "sourceToolAssistantUUID": made["uuid"],
        "message": {"role": "user", "content": [block]},
    });
    for same in SAME {
        if let Some(value) = made.get(same) {
            entry[same] = value.clone();
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::claude::settings::any_json;

    const CALL: &str =
        r#"{"type":"assistant","uuid":"u1","sessionId":"s","message":{"content":[{"type":"tool_use","id":"t1"}]}}"#;
    const MARK: &str =
        r#"{"type":"attachment","uuid":"u2","attachment":{"type":"hook_deferred_tool","toolUseID":"t1"}}"#;
    const RESULT: &str =
        r#"{"type":"user","uuid":"u3","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;

    fn copied(transcript: &str) -> (Vec<String>, usize) {
        let result = CallResult { text: " Jan 1st\n".into(), is_error: false };
        let mut to = Vec::new();
        let left = copy(transcript.as_bytes(), HashMap::from([("t1".to_owned(), result)]), &mut to).unwrap();
        (String::from_utf8(to).unwrap().lines().map(str::to_owned).collect(), left.len())
    }

    #[test]
    fn a_result_takes_the_place_of_the_mark() {
        let (lines, left) = copied(&format!("{{\"first\":1}}\n{CALL}\n{MARK}\n"));
        assert_eq!((lines.len(), left), (3, 0));
        assert_eq!(lines[1], CALL);
        let added: Value = serde_json::from_str(&lines[2]).unwrap();
        assert_eq!((&added["parentUuid"], &added["sessionId"]), (&json!("u1"), &json!("s")));
        assert_eq!(added["message"]["content"][0]["content"], " Jan 1st\n");
    }

    #[test]
    fn a_call_that_has_its_result_or_is_not_there_gets_none() {
        let (lines, left) = copied(&format!("{CALL}\n{RESULT}\n"));
        assert_eq!((lines, left), (vec![CALL.to_owned(), RESULT.to_owned()], 1));
        assert_eq!(copied("garbage\n{\"torn"), (vec!["garbage".to_owned(), "{\"torn".to_owned()], 1));
    }

    /// Lines of a transcript, whole and torn, and others.
    fn any_transcript() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just(CALL.as_bytes().to_vec()),
            Just(MARK.as_bytes().to_vec()),
            Just(RESULT.as_bytes().to_vec()),
            any_json().prop_map(|value| value.to_string().into_bytes()),
            any::<Vec<u8>>(),
            Just(CALL.as_bytes()[..40].to_vec()),
        ];
        prop::collection::vec(line, 0..8).prop_map(|lines| lines.join(&b'\n'))
    }

    proptest! {
        #[test]
        fn any_transcript_keeps_its_lines_and_gets_at_most_one_result(transcript in any_transcript()) {
            let results = HashMap::from([("t1".to_owned(), CallResult { text: String::new(), is_error: true })]);
            let mut to = Vec::new();
            let left = copy(transcript.as_slice(), results, &mut to).unwrap();
            let lines = |text: &[u8]| {
                let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && *line != MARK.as_bytes());
                lines.map(<[u8]>::to_vec).collect::<Vec<_>>()
            };
            let (before, after) = (lines(&transcript), lines(&to));
            prop_assert!(after.starts_with(&before));
            prop_assert_eq!(after.len() - before.len(), 1 - left.len());
        }
    }
}
