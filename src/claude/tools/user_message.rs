//! What a user says to `claude` in its own format: the way to hand it the result of a call.

use serde_json::json;

use crate::claude::transcript::insert_results::CallResult;

/// The option with which `claude` reads such messages from its standard input.
pub(crate) const OPTION: &str = "--input-format=stream-json";

/// The message with the result of `call`, and a text beside it unless that is empty.
pub(crate) fn with_result(call: &str, result: &CallResult, text: &str) -> String {
    let mut blocks =
        vec![json!({"type": "tool_result", "tool_use_id": call, "content": result.text, "is_error": result.is_error})];
    if !text.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    let message = json!({"role": "user", "content": blocks});
    format!("{}\n", json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_the_exact_result() {
        let result = CallResult { text: "a\n\u{2028}\"b\"".into(), is_error: true };
        let line = with_result("t1", &result, "");
        assert_eq!(line.matches('\n').count(), 1);
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": result.text, "is_error": true});
        assert_eq!(message["message"], json!({"role": "user", "content": [block]}));
        let beside: serde_json::Value = serde_json::from_str(&with_result("t1", &result, "a notice")).unwrap();
        assert_eq!(beside["message"]["content"][1], json!({"type": "text", "text": "a notice"}));
    }
}
