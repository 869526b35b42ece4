//! The built-in AskUserQuestion.

use serde_json::{Value, json};

use crate::session::{Session, decision};
use crate::support::{NEWEST, Turn, on_every_version};

on_every_version!(
    it_is_deferred_and_answered_when_there_is_a_prompt_tool,
    without_the_prompt_tool_a_deferred_one_is_not_resumed_and_not_lost,
    a_hook_cannot_say_that_nobody_answered,
);

fn questions() -> Value {
    json!([
        {"question": "When?", "header": "Birthday", "multiSelect": false,
         "options": [{"label": "Jan", "description": "x"}, {"label": "Feb", "description": "x"}]},
        {"question": "Which?", "header": "Fruit", "multiSelect": true,
         "options": [{"label": "Apple", "description": "x"}, {"label": "Pear", "description": "x"}]},
    ])
}

fn asking(version: &str) -> Session {
    let mut session = Session::new(version, Turn::call("AskUserQuestion", json!({"questions": questions()})));
    // A prompt on standard input is text all the same.
    session.arguments = vec!["--permission-prompt-tool", "stdio"];
    session
}

fn it_is_deferred_and_answered_when_there_is_a_prompt_tool(version: &str) {
    let session = asking(version);
    assert!(session.start().is_deferred());
    assert_eq!(session.asked()[0]["tool_input"], json!({"questions": questions()}));
    let answers = json!({"When?": "some \"free\"\ntext\n", "Which?": "Apple, Pear"});
    let input = json!({"questions": questions(), "answers": answers});
    session.decide(&decision("allow", json!({"updatedInput": input})));
    let run = session.resume();
    let (text, is_error) = run.tool_result();
    assert!(!is_error && text.contains("\"When?\"=\"some \"free\"\ntext\n\", \"Which?\"=\"Apple, Pear\""), "{text}");
}

fn a_hook_cannot_say_that_nobody_answered(version: &str) {
    let session = asking(version);
    assert!(session.start().is_deferred());
    let answers = json!({"When?": "Jan"});
    let input = json!({"questions": questions(), "answers": answers, "afkTimeoutMs": 60_000});
    session.decide(&decision("allow", json!({"updatedInput": input})));
    let run = session.resume();
    let (text, _) = run.tool_result();
    assert!(!text.contains("No response after"), "{text}");
}

fn without_the_prompt_tool_a_deferred_one_is_not_resumed_and_not_lost(version: &str) {
    let mut session = asking(version);
    session.start();
    let arguments = std::mem::take(&mut session.arguments);
    let run = session.resume();
    assert_eq!((run.code, run.requests.len()), (Some(1), 0));
    assert_eq!(run.result()["stop_reason"], "tool_deferred_unavailable");
    assert_eq!((&run.result()["is_error"], run.result()["result"] == ""), (&json!(true), version != NEWEST));
    session.arguments = arguments;
    assert!(session.resume().is_deferred());
}
