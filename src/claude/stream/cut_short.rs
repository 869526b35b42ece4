//! Results of tool calls that were cut short, whatever their text says.
//!
//! Claude Code tells the model that the user rejected a call that was running when it was interrupted, so that it did not run. It
//! may have run.

use serde_json::Value;

/// What Claude Code notes beside the result of a call that was rejected, or running when it was interrupted.
pub(crate) const REJECTED: &str = "User rejected tool use";

const WORDS: [&str; 5] = [
    "The user doesn't want to proceed with this tool use.", "The user doesn't want to take this action right now.",
    "[Request interrupted", "[Tool call interrupted", "[Tool call skipped",
];

/// Whether a call was cut short, by its result. `text`: what the model sees; `beside`: what Claude Code notes beside it.
pub(crate) fn is_cut_short(text: &str, beside: &Value) -> bool {
    beside == REJECTED || beside["interrupted"] == true || WORDS.iter().any(|words| text.starts_with(words))
}

/// Whether the result belongs to a command that was killed or asked to end.
pub(crate) fn is_of_a_killed_command(text: &str) -> bool {
    ["Exit code 130", "Exit code 137", "Exit code 143"].iter().any(|words| text.starts_with(words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_was_cut_short_is_known_by_what_stands_beside_its_result_or_by_its_words() {
        assert!(is_cut_short("anything", &json!(REJECTED)));
        assert!(is_cut_short("half of its outp", &json!({"stdout": "half of its outp", "interrupted": true})));
        let rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …)";
        let lost = "[Tool call interrupted: the session ended before this call's result was recorded, …]";
        assert!(is_cut_short(rejected, &Value::Null) && is_cut_short(lost, &json!("Error: x")));
        assert!(!is_cut_short("slept", &json!({"stdout": "slept", "interrupted": false})));
        assert!(!is_cut_short("it says: [Request interrupted by user]", &Value::Null));
    }
}
