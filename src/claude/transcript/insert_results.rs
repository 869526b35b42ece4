//! Inserts results into a transcript, for calls about which Claude Code cannot be made to ask again.
//!
//! When a session is resumed, Claude Code asks about a suspended call again, and then a hook gives its result. That only works
//! for a single call of a message, for results that a command can print unchanged, and if hooks run. Otherwise the results are
//! written into a copy of the transcript, replacing the marks of the suspended calls, just as Claude Code would have written
//! them if the calls had merely taken long. A prompt then makes the agent continue.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::claude::json_lines::blocks;
use crate::claude::transcript::ancestry::Broken;
use crate::claude::transcript::rewrite::{Change, Entries};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallResult {
    pub text: String,
    pub is_error: bool,
}

/// A copy of a transcript with results in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WithResults {
    pub text: Vec<u8>,
    /// The results for which no call is open.
    pub others: HashMap<String, CallResult>,
}

/// Copies a transcript and adds the results of calls that have none in it. A call is no longer open if the agent has continued
/// past it, because it then has another result.
pub(crate) fn copy(transcript: &Entries, mut results: HashMap<String, CallResult>) -> Result<WithResults, Broken> {
    let open = open_calls(transcript, true);
    let (mut changes, mut given) = (HashMap::new(), HashSet::new());
    for (at, marking) in transcript.rows().rev() {
        let Some((call, result)) = mark(marking).and_then(|call| results.get_key_value(call)) else { continue };
        let made = open.iter().find(|(open, _)| *open == call).map(|(_, made)| *made);
        let change = match made.filter(|_| given.insert(call.clone())) {
            // Lines that followed the mark now follow the result.
            Some(made) => Change::Replace(entry(call, made, marking, &marking["uuid"], result)),
            None => Change::Drop,
        };
        changes.insert(at, change);
    }
    let unmarked = open.iter().filter(|(call, _)| !given.contains(*call));
    let added = unmarked.filter_map(|(call, made)| {
        let result = results.get(*call)?;
        Some(entry(call, made, made, &json!(Uuid::new_v4()), result))
    });
    let text = transcript.copy(&changes, added.collect())?;
    results.retain(|call, _| !open.iter().any(|(open, _)| open == call));
    Ok(WithResults { text, others: results })
}

/// A transcript in which one suspended call is open, and all others have their results.
#[derive(Clone, Debug, Default)]
pub(crate) struct OneOpen {
    /// The copy; `None`: the transcript already is one.
    pub text: Option<Vec<u8>>,
    /// The results for which no call is open.
    pub others: HashMap<String, CallResult>,
}

/// Copies a transcript and adds the results of all open calls but one, whose mark is then the last: Claude Code may lose the
/// result that is passed for another. `None`: that call is not suspended, or another one would stay open.
pub(crate) fn leaving_open(
    transcript: &Entries,
    call: &str,
    results: &HashMap<String, CallResult>,
) -> Result<Option<OneOpen>, Broken> {
    let open = open_calls(transcript, true);
    let Some((_, made)) = open.iter().find(|(open, _)| *open == call) else { return Ok(None) };
    let Some(marked) = transcript.rows().rev().map(|(_, row)| row).find(|row| mark(row) == Some(call)) else {
        return Ok(None);
    };
    if open.iter().any(|(open, _)| !results.contains_key(*open)) {
        return Ok(None);
    }
    let is_open = |result: &String| open.iter().any(|(open, _)| open == result);
    let others =
        results.iter().filter(|(of, _)| !is_open(of)).map(|(of, result)| (of.clone(), result.clone())).collect();
    if open.len() == 1 && last_call(transcript) == Some(call) {
        return Ok(Some(OneOpen { text: None, others }));
    }
    let mut mark_at_end = marked.clone();
    (mark_at_end["uuid"], mark_at_end["parentUuid"]) = (json!(Uuid::new_v4()), made["uuid"].clone());
    let (mut changes, mut given) = (HashMap::new(), HashSet::new());
    for (at, row) in transcript.rows().rev() {
        let Some(of) = mark(row) else { continue };
        let Some((_, made)) = open.iter().find(|(open, _)| *open == of) else { continue };
        let change = if of != call && given.insert(of) {
            Change::Replace(entry(of, made, row, &row["uuid"], &results[of]))
        } else {
            Change::Drop
        };
        changes.insert(at, change);
    }
    let unmarked = open.iter().filter(|(open, _)| *open != call && !given.contains(open));
    let added = unmarked.map(|(of, made)| entry(of, made, made, &json!(Uuid::new_v4()), &results[*of]));
    let text = transcript.copy(&changes, added.chain([mark_at_end]).collect())?;
    Ok(Some(OneOpen { text: Some(text), others }))
}

fn last_call(transcript: &Entries) -> Option<&str> {
    let own = transcript
        .rows()
        .rev()
        .map(|(_, row)| row)
        .filter(|row| row["type"] == "assistant" && row["isSidechain"] != true);
    let mut calls = own.flat_map(|row| blocks(row).rev());
    calls.find(|block| block["type"] == "tool_use").and_then(|block| block["id"].as_str())
}

/// A copy of a transcript in which all suspended calls have the result that `said` gives; `None`: it has none. Claude Code
/// would make them again in a fork.
pub(crate) fn closed<'a>(transcript: &Entries, said: impl Fn(&str) -> &'a str) -> Result<Option<Vec<u8>>, Broken> {
    let open = suspended_calls(transcript);
    if open.is_empty() {
        return Ok(None);
    }
    let result = |call: &str| CallResult { text: said(call).to_owned(), is_error: false };
    let results = open.into_iter().map(|call| (call.clone(), result(&call))).collect();
    Ok(Some(copy(transcript, results)?.text))
}

/// A copy of the transcript of an agent that still works, in which all open calls have the result that `said` gives; `None`: it
/// does not have `call` yet.
pub(crate) fn closed_at<'a>(
    transcript: &Entries,
    call: &str,
    said: impl Fn(&str) -> &'a str,
) -> Result<Option<Vec<u8>>, Broken> {
    let open: Vec<&str> = open_calls(transcript, true).into_iter().map(|(open, _)| open).collect();
    if !open.contains(&call) {
        return Ok(None);
    }
    let result = |call: &str| CallResult { text: said(call).to_owned(), is_error: false };
    let results = open.into_iter().map(|call| (call.to_owned(), result(call))).collect();
    Ok(Some(copy(transcript, results)?.text))
}

/// The calls of a transcript that have no result, if one of them is marked as suspended. Otherwise empty: Claude Code itself
/// tells the agent about calls that were cut short.
pub(crate) fn suspended_calls(transcript: &Entries) -> Vec<String> {
    let open = open_calls(transcript, false);
    let marked: Vec<&str> = transcript.rows().filter_map(|(_, entry)| mark(entry)).collect();
    let is_suspended = open.iter().any(|(call, _)| marked.contains(call));
    open.into_iter().filter(|_| is_suspended).map(|(call, _)| call.to_owned()).collect()
}

/// The calls without a result, and the lines that made them. `at_end`: only those that the agent has not continued past.
fn open_calls(transcript: &Entries, at_end: bool) -> Vec<(&str, &Value)> {
    let mut open: Vec<(&str, &Value)> = Vec::new();
    for (_, entry) in transcript.rows().filter(|(_, entry)| entry["isSidechain"] != true) {
        let message = &entry["message"];
        let is_answer = entry["type"] == "assistant" && message["model"] != "<synthetic>";
        if is_answer && at_end {
            open.retain(|(_, made)| made["message"]["id"] == message["id"]);
        }
        for block in blocks(entry) {
            if let Some(call) = block["id"].as_str().filter(|_| is_answer && block["type"] == "tool_use") {
                open.retain(|(open, _)| *open != call);
                open.push((call, entry));
            }
            // A call that has its result needs no other.
            if let Some(call) = block["tool_use_id"].as_str() {
                open.retain(|(open, _)| *open != call);
            }
        }
    }
    open
}

/// The fields that all lines after a line share.
pub(crate) const SAME: [&str; 7] = ["sessionId", "timestamp", "cwd", "version", "gitBranch", "userType", "isSidechain"];

/// The call that this line marks as suspended, if any.
pub(crate) fn mark(entry: &Value) -> Option<&str> {
    let attachment = &entry["attachment"];
    attachment["toolUseID"].as_str().filter(|_| attachment["type"] == "hook_deferred_tool")
}

/// A line with the result of `call`, which the line `made` contains. It follows that line: 2.1.89 would not find it elsewhere.
/// All other fields are copied from the line `like`.
fn entry(call: &str, made: &Value, like: &Value, uuid: &Value, result: &CallResult) -> Value {
    let block = json!({
        "type": "tool_result", "tool_use_id": call, "content": result.text, "is_error": result.is_error,
    });
    let mut entry = json!({
        "type": "user",
        "uuid": uuid,
        "parentUuid": made["uuid"],
        "sourceToolAssistantUUID": made["uuid"],
        "message": {"role": "user", "content": [block]},
    });
    for same in SAME {
        if let Some(value) = like.get(same).or_else(|| made.get(same)) {
            entry[same] = value.clone();
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::text::json::any_json;

    const PROMPT: &str = r#"{"type":"user","uuid":"u0","parentUuid":null,"message":{"content":"go"}}"#;
    const CALL: &str = r#"{"type":"assistant","uuid":"u1","parentUuid":"u0","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t1"}]}}"#;
    const MARK: &str = r#"{"type":"attachment","uuid":"u2","parentUuid":"u1","attachment":{"type":"hook_deferred_tool","toolUseID":"t1"}}"#;
    const RESULT: &str = r#"{"type":"user","uuid":"u3","parentUuid":"u1","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;

    fn result(text: &str) -> CallResult {
        CallResult { text: text.into(), is_error: false }
    }

    fn entries(lines: &[&str]) -> Entries {
        Entries::read(lines.join("\n").as_bytes()).unwrap()
    }

    fn read(text: &[u8]) -> Vec<Value> {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap_or_default()).collect()
    }

    fn copied(lines: &[&str]) -> (Vec<Value>, usize) {
        let copied = copy(&entries(lines), HashMap::from([("t1".to_owned(), result(" Jan 1st\n"))])).unwrap();
        (read(&copied.text), copied.others.len())
    }

    const OTHER: &str = r#"{"type":"assistant","uuid":"u4","parentUuid":"u1","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t2"}]}}"#;
    const MARK_OF_OTHER: &str = r#"{"type":"attachment","uuid":"u5","parentUuid":"u4","attachment":{"type":"hook_deferred_tool","toolUseID":"t2","toolName":"Bash"}}"#;

    /// The copy for passing `t2` its result: its lines, and how many results have no open call.
    fn left_open(lines: &[&str], results: &[&str]) -> Option<(Option<Vec<Value>>, usize)> {
        let results = results.iter().map(|call| ((*call).to_owned(), result(&format!("of {call}")))).collect();
        let left = leaving_open(&entries(lines), "t2", &results).unwrap()?;
        Some((left.text.map(|text| read(&text)), left.others.len()))
    }

    #[test]
    fn one_call_stays_open_and_its_mark_comes_last() {
        let at = r#"{"type":"last-prompt","leafUuid":"u5"}"#;
        let (lines, others) = left_open(&[PROMPT, CALL, OTHER, MARK_OF_OTHER, MARK, at], &["t1", "t2", "t9"]).unwrap();
        let lines = lines.unwrap();
        let result = lines.iter().position(|line| line["message"]["content"][0]["content"] == "of t1").unwrap();
        let marks: Vec<_> = lines.iter().enumerate().filter(|(_, line)| mark(line).is_some()).collect();
        let [(at, last)] = marks[..] else { panic!("{lines:?}") };
        assert!(result < at && at == lines.len() - 1, "{lines:?}");
        assert_eq!(
            (mark(last), &last["parentUuid"], &last["attachment"]["toolName"]),
            (Some("t2"), &json!("u4"), &json!("Bash"))
        );
        assert_eq!(others, 1);
    }

    #[test]
    fn a_transcript_with_one_open_call_that_comes_last_is_used_as_it_is() {
        let answered = [PROMPT, CALL, OTHER, RESULT, MARK_OF_OTHER];
        assert_eq!(left_open(&answered, &["t2"]), Some((None, 0)));
        let first = [PROMPT, OTHER, MARK_OF_OTHER, CALL, RESULT];
        let (lines, _) = left_open(&first, &["t2"]).unwrap();
        assert_eq!(mark(lines.unwrap().last().unwrap()), Some("t2"), "it is not the last of its message");
    }

    #[test]
    fn what_is_not_suspended_or_not_alone_is_not_handed_anything() {
        let later = r#"{"type":"assistant","uuid":"u6","parentUuid":"u5","message":{"id":"m2","content":[{"type":"text","text":"so"}]}}"#;
        for (lines, results) in [
            (&[PROMPT, OTHER][..], &["t2"][..]),
            (&[PROMPT, CALL, MARK], &["t1", "t2"]),
            (&[PROMPT, CALL, OTHER, MARK, MARK_OF_OTHER], &["t2"]),
            (&[PROMPT, OTHER, MARK_OF_OTHER, later], &["t2"]),
        ] {
            assert_eq!(left_open(lines, results), None, "{lines:?}");
        }
    }

    #[test]
    fn a_result_takes_the_place_of_the_mark() {
        let at = r#"{"type":"last-prompt","leafUuid":"u2"}"#;
        let (lines, others) = copied(&[PROMPT, CALL, MARK, at]);
        assert_eq!((lines.len(), others), (4, 0));
        let added = &lines[2];
        assert_eq!(
            (&added["uuid"], &added["parentUuid"], &added["sessionId"]),
            (&json!("u2"), &json!("u1"), &json!("s"))
        );
        assert_eq!(added["message"]["content"][0]["content"], " Jan 1st\n");
        assert_eq!(lines[3]["leafUuid"], "u2");
    }

    #[test]
    fn a_call_that_has_its_result_or_is_not_there_gets_none() {
        let (lines, others) = copied(&[PROMPT, CALL, RESULT]);
        assert_eq!((lines, others), (read([PROMPT, CALL, RESULT].join("\n").as_bytes()), 1));
        assert_eq!(copied(&["garbage", "{\"torn"]), (vec![Value::Null, Value::Null], 1));
    }

    #[test]
    fn what_followed_on_a_mark_keeps_the_conversation_before_it() {
        let task = r#"{"type":"user","uuid":"u4","parentUuid":"u2","message":{"content":"a task has ended"}}"#;
        let again = r#"{"type":"assistant","uuid":"u5","parentUuid":"u4","message":{"id":"m2","content":[{"type":"tool_use","id":"t2"}]}}"#;
        let mark = r#"{"type":"attachment","uuid":"u6","parentUuid":"u5","attachment":{"type":"hook_deferred_tool","toolUseID":"t2"}}"#;
        // What claude sent says nothing about the result of a call.
        let sent = r#"{"type":"api-request-blob","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}"#;
        let results = ["t1", "t2"].map(|call| (call.to_owned(), result("yes")));
        let copied = copy(&entries(&[PROMPT, CALL, MARK, task, again, sent, mark]), results.into()).unwrap();
        assert_eq!(copied.others.into_keys().collect::<Vec<_>>(), ["t1"], "the agent has gone on from it");
        let parents: Vec<_> = read(&copied.text).iter().map(|line| line["parentUuid"].clone()).collect();
        assert_eq!(json!(parents), json!([null, "u0", "u1", "u4", null, "u5"]));
    }

    #[test]
    fn the_transcript_of_an_agent_that_works_is_closed_once_it_has_the_call() {
        let closed = |lines: &[&str]| {
            let said = |call: &str| if call == "t2" { "you" } else { "not you" };
            closed_at(&entries(lines), "t2", said).unwrap().map(|text| read(&text))
        };
        assert_eq!(closed(&[PROMPT, CALL]), None);
        let answered = r#"{"type":"user","uuid":"u6","parentUuid":"u4","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}"#;
        assert_eq!(closed(&[PROMPT, CALL, OTHER, answered]), None, "it has returned");
        let lines = closed(&[PROMPT, CALL, OTHER]).unwrap();
        let results: Vec<_> = lines[3..].iter().map(|line| &line["message"]["content"][0]["content"]).collect();
        assert_eq!(results, ["not you", "you"]);
    }

    #[test]
    fn of_two_suspended_calls_one_can_be_given_its_result() {
        let other = r#"{"type":"assistant","uuid":"u4","parentUuid":"u1","message":{"id":"m1","content":[{"type":"tool_use","id":"t2"}]}}"#;
        let first = MARK.replace("\"parentUuid\":\"u1\"", "\"parentUuid\":\"u4\"");
        let second = r#"{"type":"attachment","uuid":"u5","parentUuid":"u2","attachment":{"type":"hook_deferred_tool","toolUseID":"t2"}}"#;
        let lines = [PROMPT, CALL, other, &first, second];
        let copied = copy(&entries(&lines), HashMap::from([("t2".to_owned(), result("yes"))])).unwrap();
        let parents: Vec<_> = read(&copied.text).iter().map(|line| line["parentUuid"].clone()).collect();
        assert_eq!(json!(parents), json!([null, "u0", "u1", "u4", "u4"]));
        assert_eq!(suspended_calls(&entries(&lines)), ["t1", "t2"]);
        assert!(suspended_calls(&entries(&[PROMPT, CALL])).is_empty());
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
            let before = Entries::read(transcript.as_slice()).unwrap();
            if let Ok(copied) = copy(&before, results) {
                let is_result = |line: &&Value| line["sourceToolAssistantUUID"] == "u1";
                let after = read(&copied.text);
                prop_assert_eq!(after.iter().filter(is_result).count(), 1 - copied.others.len());
                let kept = read(&transcript).into_iter().filter(|line| mark(line).is_none());
                let after = after.into_iter().filter(|line| !is_result(&line));
                prop_assert_eq!(after.collect::<Vec<_>>(), kept.collect::<Vec<_>>());
            }
        }
    }
}
