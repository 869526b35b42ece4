//! Questions with options, defaults and an expiry, asked of the real Claude Code.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(
    an_answer_is_the_key_of_an_option_to_the_byte,
    an_expired_question_fails_and_a_default_is_named_as_one,
    questions_that_are_asked_together_have_one_result,
    a_question_of_the_built_in_tool_expires_in_the_words_of_claude_code,
);

/// An agent that makes this call and replies with its result.
fn calling(version: &str, call: impl Fn() -> Turn + Send + Sync + 'static) -> (Chain, String) {
    let model = move |said: &Conversation| match said.last_result() {
        None => call(),
        Some(result) => Turn::text(result),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    chain
        .home
        .write("questions.json", r#"[{"name": "a", "question": "A?"}, {"question": "B?", "options": ["x", "y"]}]"#);
    let mut command = chain.command();
    command.env("AGENT_CLI_QUESTIONS_EXPIRE", "3d").args(["spawn", "ins.md"]);
    let spawned = command.output().expect("it runs");
    let started = String::from_utf8(spawned.stdout).expect("text");
    let root = started.trim().strip_prefix("SGN_PEND_STARTED (").and_then(|rest| rest.strip_suffix(')'));
    let root = root.unwrap_or_else(|| panic!("{started}{}", String::from_utf8_lossy(&spawned.stderr))).to_owned();
    (chain, root)
}

/// Makes all open questions expire.
fn expire(chain: &Chain) {
    let database = chain.database();
    let sql = "UPDATE requests SET detail = json_replace(detail, '$.ask.expires_at', '2026-01-01T00:00:00Z')
               WHERE status = 'open' AND json_extract(detail, '$.ask.expires_at') IS NOT NULL";
    assert!(database.execute(sql, []).expect("writable") > 0);
}

/// The last result that the model was sent, and whether it was an error.
fn last_result(chain: &Chain) -> (String, bool) {
    chain.last_results().pop().expect("a result")
}

fn an_answer_is_the_key_of_an_option_to_the_byte(version: &str) {
    let command =
        r#"agent-cli ask 'Deploy?' --option now --option 'l"ater  ü=in the morning' --default now --expires 3d"#;
    let (chain, root) = calling(version, move || Turn::bash(command));
    let asked = chain.api.count();
    let question = chain.json(&["questions", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(chain.run(&["answer", &question, "at noon"]).code, Some(2));
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    chain.answer("2");
    assert_eq!(chain.ok(&["resume", &root]), "l\"ater  ü\n");
    assert_eq!(last_result(&chain), ("l\"ater  ü".to_owned(), false));
    assert_eq!(chain.api.count(), asked + 1);
}

fn an_expired_question_fails_and_a_default_is_named_as_one(version: &str) {
    let nobody = "no answer until 2026-01-01T00:00:00Z";
    for (default, result, fails) in [
        ("", format!("the question has expired: {nobody}"), true),
        ("--default later", format!("later\n\n(This is the default: {nobody}.)"), false),
    ] {
        let command = format!("agent-cli ask 'Deploy?' --option now --option later --expires 3d {default}");
        let (chain, root) = calling(version, move || Turn::bash(&command));
        let asked = chain.api.count();
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        expire(&chain);
        chain.ok(&["resume", "--all"]);
        let (text, is_error) = last_result(&chain);
        assert!(text.ends_with(&result) && is_error == fails, "{is_error}: {text}");
        assert!(chain.ok(&["resume", &root]).contains(nobody));
        assert_eq!(chain.api.count(), asked + 1, "it is told once");
    }
}

fn questions_that_are_asked_together_have_one_result(version: &str) {
    let (chain, root) = calling(version, || Turn::bash("agent-cli ask --questions questions.json"));
    chain.answer_to("B?", "2");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    chain.answer_to("A?", "\"one\"\ntwo");
    let result: Value = serde_json::from_str(&chain.ok(&["resume", &root])).expect("JSON");
    let expected = json!([
        {"name": "a", "question": "A?", "answer": "\"one\"\ntwo", "expired": false},
        {"question": "B?", "answer": "y", "expired": false},
    ]);
    assert_eq!(result, expected);
}

fn a_question_of_the_built_in_tool_expires_in_the_words_of_claude_code(version: &str) {
    let (chain, root) = calling(version, || {
        let options = json!([{"label": "x", "description": "x"}, {"label": "y", "description": "y"}]);
        let question = |text: &str| json!({"question": text, "header": "H", "multiSelect": false, "options": options});
        Turn::call("AskUserQuestion", json!({"questions": [question("A?"), question("B?")]}))
    });
    chain.answer_to("A?", "2");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    let asked = chain.api.count();
    expire(&chain);
    chain.run(&["resume", &root]);
    let (text, is_error) = last_result(&chain);
    assert!(text.contains("No response after ") && text.contains("the user may be away from keyboard"), "{text}");
    assert!(text.contains("the user had selected: \"A?\"=\"y\""), "{text}");
    assert!(!text.contains("\"B?\"="), "{text}");
    // The call itself would say that the questions were answered.
    assert!(is_error && text.contains("no answer until 2026-01-01T00:00:00Z"), "{text}");
    assert!(chain.ok(&["resume", &root]).contains("No response after"));
    assert_eq!(chain.api.count(), asked + 1, "it is told once");
}
