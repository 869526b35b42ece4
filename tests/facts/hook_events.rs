//! What `--include-hook-events` shows of hooks that ask for an approval.

use serde_json::{Value, json};

use crate::session::{Session, decision, results};
use crate::support::{OLDER, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_hook_that_asks_is_reported_between_its_call_and_the_result,
    of_two_hooks_that_ask_one_gives_the_reason,
    the_hooks_of_the_next_call_end_after_the_result_of_the_first,
);

/// A session with hooks that ask, each a script, and no person to ask.
fn asking(version: &str, calls: Turn, scripts: &[String]) -> Session {
    let mut session = Session::new(version, calls);
    session.write("otherwise", "");
    let hooks: Vec<_> = scripts.iter().map(|script| json!({"type": "command", "command": script})).collect();
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": hooks}]}});
    session.write(".claude/settings.json", &settings.to_string());
    session.arguments = vec!["--include-hook-events"];
    session
}

fn print(reason: &str) -> String {
    format!("printf '%s' '{}'", decision("ask", json!({"permissionDecisionReason": reason})))
}

/// An event in a word, for those that matter here.
fn word(event: &Value) -> Option<String> {
    match event["type"].as_str()? {
        "assistant" if event["message"]["content"][0]["type"] == "tool_use" => Some("call".to_owned()),
        "user" => Some("result".to_owned()),
        "system" if event["hook_event"] == "PreToolUse" && event["stdout"] != "" => {
            assert_eq!(event["hook_name"], "PreToolUse:Bash");
            assert!(event["hook_id"].is_string());
            event["subtype"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// There are two hooks, one of which says nothing.
fn a_hook_that_asks_is_reported_between_its_call_and_the_result(version: &str) {
    let run = asking(version, Turn::bash("touch a"), &[print("why")]).start();
    let words: Vec<_> = run.events.iter().filter_map(word).collect();
    assert_eq!(words, ["call", "hook_started", "hook_started", "hook_response", "result"]);
    let told = run.events.iter().find(|event| word(event).as_deref() == Some("hook_response")).unwrap();
    let said: Value = serde_json::from_str(told["stdout"].as_str().unwrap()).unwrap();
    assert_eq!(said["hookSpecificOutput"]["permissionDecisionReason"], "why");
    assert_eq!(run.requests[1].last_result(), Some("why"));
}

fn of_two_hooks_that_ask_one_gives_the_reason(version: &str) {
    let scripts = [format!("sleep 1; {}", print("slow")), print("fast")];
    let run = asking(version, Turn::bash("touch a"), &scripts).start();
    let expected = if version == OLDER { "slow" } else { "fast" };
    assert_eq!(run.requests[1].last_result(), Some(expected));
}

fn the_hooks_of_the_next_call_end_after_the_result_of_the_first(version: &str) {
    let script = format!("case $(cat) in *'touch a'*) {} ;; *) {} ;; esac", print("of a"), print("of b"));
    let run = asking(version, Turn::bash("touch a").and_bash("touch b"), &[script]).start();
    let words: Vec<_> = run.events.iter().filter_map(word).filter(|word| word != "call").collect();
    let ends: Vec<_> = words.iter().filter(|word| *word != "hook_started").collect();
    assert_eq!(ends, ["hook_response", "result", "hook_response", "result"]);
    let told: Vec<_> = results(&run.requests[1]).into_iter().map(|(_, text, _)| text.to_owned()).collect();
    assert_eq!(told, ["of a", "of b"]);
}
