//! How a call gets its result from outside: which results it can return exactly, and the message that passes one to `claude`.

use serde_json::json;

use crate::claude::transcript::insert_results::CallResult;
use crate::core::requests::request::Delivery;

/// Claude Code writes longer results to a file and shows the agent only their beginning. In bytes, which are never
/// fewer than its characters.
const MOST_BYTES: usize = 30_000;

/// Whether the call that made these requests can return all of their results unchanged. Bash trims the output of a
/// command, and replaces it if nothing is left; AskUserQuestion does neither.
pub(crate) fn returns_unchanged(deliveries: &[Delivery]) -> bool {
    deliveries.iter().map(|delivery| delivery.result.text().len()).sum::<usize>() <= MOST_BYTES
        && deliveries
            .iter()
            .all(|delivery| delivery.kind.native_question().is_some() || bash_keeps(delivery.result.text()))
}

fn bash_keeps(output: &str) -> bool {
    !output.is_empty() && output.trim() == output && !output.contains('\0')
}

/// The option with which `claude` reads such messages from its standard input.
pub(crate) const INPUT_OPTION: &str = "--input-format=stream-json";

/// The message with the result of `call`, and a text after it unless that is empty.
pub(crate) fn user_message(call: &str, result: &CallResult, text: &str) -> String {
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
    use crate::core::attempt::delivery::testing::answer;
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::RequestKind;

    #[test]
    fn a_call_returns_what_its_tool_can_return() {
        let returns = |results: &[&str], native: bool| {
            let kind = RequestKind::Ask(Form { native, ..Form::text("When?") });
            let of = |text: &&str| Delivery { kind: kind.clone(), ..answer(text) };
            returns_unchanged(&results.iter().map(of).collect::<Vec<_>>())
        };
        let (most, more) = ("x".repeat(30_000), "x".repeat(30_001));
        for (results, native, expected) in [
            (&["Jan 1st"][..], false, true),
            (&[most.as_str()], false, true),
            (&[more.as_str()], false, false),
            (&[""], false, false),
            (&[" a"], false, false),
            (&["a\n"], false, false),
            (&["a\0b"], false, false),
            (&["", " a"], true, true),
            (&[&most[..20_000], &most[..10_000]], true, true),
            (&[&most[..20_000], &most[..10_001]], true, false),
        ] {
            assert_eq!(returns(results, native), expected, "{} of {}", results.len(), results[0].len());
        }
    }

    #[test]
    fn a_message_is_one_line_with_the_exact_result() {
        let result = CallResult { text: "a\n\u{2028}\"b\"".into(), is_error: true };
        let line = user_message("t1", &result, "");
        assert_eq!(line.matches('\n').count(), 1);
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": result.text, "is_error": true});
        assert_eq!(message["message"], json!({"role": "user", "content": [block]}));
        let beside: serde_json::Value = serde_json::from_str(&user_message("t1", &result, "a notice")).unwrap();
        assert_eq!(beside["message"]["content"][1], json!({"type": "text", "text": "a notice"}));
    }
}
