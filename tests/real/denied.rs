//! Denied calls: they are reported to a person, and the suggested options would have allowed them.

use serde_json::{Value, json};

use crate::chain::{Chain, Said};
use crate::support::{Conversation, Item, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(denied_calls_are_reported_and_the_advice_lets_them_run, a_call_that_a_person_denied_is_not_reported,);

on_every_version_of_a_whole_run!(
    the_advice_for_an_adopted_session_is_a_command_that_helps,
    a_call_that_a_hook_asks_about_is_one_for_a_person,
    a_call_of_an_agent_below_is_reported_with_its_name,
    what_a_rule_or_a_hook_denies_comes_without_advice,
);

/// An agent that makes these calls at once, and ends.
fn caller(version: &str, calls: Turn) -> Chain {
    let next = move |said: &Conversation| match said.last_result() {
        Some(_) => Turn::text("done"),
        None => calls.clone(),
    };
    let chain = Chain::with_model(version, MessagesApi::start(next));
    chain.home.write("ins.md", "Do what the model does.");
    chain
}

/// The messages of a command next to its result, without the times.
fn reported(said: &Said) -> Vec<&str> {
    said.err.lines().map(|line| line.split_once("Z ").map_or(line, |(_, told)| told)).collect()
}

fn denied(chain: &Chain) -> Vec<Value> {
    let shown = chain.json(&["show", &chain.only_root(), "--json"]);
    shown["denied"].as_array().unwrap().clone()
}

fn denied_calls_are_reported_and_the_advice_lets_them_run(version: &str) {
    let write = json!({"file_path": "made.txt", "content": "x"});
    let calls = Turn::bash("touch made").and_bash("mkdir a; touch a/b").and_call("Write", write);
    let chain = caller(version, calls);
    let said = chain.run(&["spawn", "ins.md"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "done\n"), "{said:?}");
    let file = chain.home.project().join("made.txt");
    let [calls, hint] = reported(&said).try_into().unwrap_or_else(|_| panic!("{said:?}"));
    let named = format!("Bash: `touch made`, Bash: `mkdir a; touch a/b`, Write: `{}`", file.display());
    assert_eq!(calls, format!("3 calls were denied: {named}"));
    assert_eq!(
        hint,
        "hint: with --on-permission ask, a person decides about such calls; --permission-mode acceptEdits -- \
         '--allowedTools=Bash(touch made)' would have allowed some of them"
    );
    let root = chain.only_root();
    let shown = chain.ok(&["show", &root]);
    assert!(shown.contains("Bash: `touch made`") && shown.contains("--on-permission ask"), "{shown}");
    let again = chain.run(&["resume", &root]);
    assert_eq!(again.out, "done\n");
    assert_eq!(reported(&again), reported(&said), "it is told with the reply, each time");
    let listed = chain.json(&["resume", &root, "--json"])["denied"].clone();
    assert_eq!(listed[0]["tool"], "Bash");
    assert_eq!(listed[0]["input"], "touch made");
    assert_eq!(listed[0]["agent"].as_str(), Some(root.as_str()));
    let allowed_by = json!([["--on-permission", "ask"], ["--", "--allowedTools=Bash(touch made)"]]);
    assert_eq!(listed[0]["allowed_by"], allowed_by);
    assert_eq!(listed[1]["allowed_by"], json!([["--on-permission", "ask"]]));

    let advised = ["--permission-mode", "acceptEdits", "--", "--allowedTools=Bash(touch made)"];
    let said = chain.run(&[&["spawn", "ins.md"][..], &advised].concat());
    assert!(!said.err.contains("touch made") && !said.err.contains("Write"), "{said:?}");
    assert!(chain.home.project().join("made").exists() && file.exists());
}

fn a_call_of_an_agent_below_is_reported_with_its_name(version: &str) {
    let next = |said: &Conversation| {
        let is_child = said.last_user_text().is_some_and(|text| text.contains("child.md"));
        match (said.last_result(), is_child) {
            (Some(_), _) => Turn::text("done"),
            (None, true) => Turn::bash("cargo test --all"),
            (None, false) => Turn::bash("agent-cli spawn child.md"),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(next));
    chain.home.write("ins.md", "Do what the model does.");
    chain.home.write("child.md", "Do what the model does.");
    let said = chain.run(&["spawn", "ins.md"]);
    let child = chain.json(&["tree", &chain.only_root(), "--json"])[1]["id"].as_str().unwrap()[..8].to_owned();
    assert_eq!(
        reported(&said),
        [
            &format!("1 call of child.md ({child}) was denied: Bash: `cargo test --all`"),
            "hint: with --on-permission ask, a person decides about such calls; -- '--allowedTools=Bash(cargo test:*)' \
             would have allowed them"
        ]
    );
    assert_eq!(denied(&chain), [] as [Value; 0], "the root was denied nothing");
}

fn what_a_rule_or_a_hook_denies_comes_without_advice(version: &str) {
    let decision = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "not on Fridays"}});
    let hook = json!({"type": "command", "command": format!("echo '{decision}'")});
    for settings in [
        json!({"permissions": {"deny": ["Bash(touch:*)"]}}),
        json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}),
    ] {
        let chain = caller(version, Turn::bash("touch made"));
        let said = chain.run(&["spawn", "ins.md", "--", "--settings", &settings.to_string()]);
        assert_eq!(reported(&said), ["1 call was denied: Bash: `touch made`"], "{settings}");
        let [call] = denied(&chain).try_into().unwrap();
        assert_eq!((&call["unapproved"], &call["allowed_by"]), (&json!(false), &json!([])));
        let is_named = |word: &str| call["said"].as_str().unwrap().contains(word);
        assert!(is_named("not on Fridays") || is_named("has been denied"), "{call}");
        assert!(chain.ok(&["show", &chain.only_root()]).contains(call["said"].as_str().unwrap()));
    }
}

fn a_call_that_a_person_denied_is_not_reported(version: &str) {
    let chain = caller(version, Turn::bash("touch made").and_bash("touch other"));
    let root = chain.started(&["spawn", "ins.md", "--on-permission", "ask"]);
    assert_eq!(denied(&chain), [] as [Value; 0], "a person is asked");
    for question in chain.json(&["questions", "--json"]).as_array().unwrap() {
        chain.ok(&["answer", question["id"].as_str().unwrap(), "deny: not now"]);
    }
    let said = chain.run(&["resume", &root]);
    assert_eq!((said.out.as_str(), reported(&said).len()), ("done\n", 0), "{said:?}");
    assert_eq!(denied(&chain), [] as [Value; 0]);
}

/// No rule and no mode would have helped.
fn a_call_that_a_hook_asks_about_is_one_for_a_person(version: &str) {
    let decision = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "ask", "permissionDecisionReason": "look at it first"}});
    let hook = json!({"type": "command", "command": format!("echo '{decision}'")});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}).to_string();
    let chain = caller(version, Turn::bash("touch made"));
    let said = chain.run(&["spawn", "ins.md", "--", "--settings", &settings, "--allowedTools=Bash(touch made)"]);
    let hint = "hint: with --on-permission ask, a person decides about such calls";
    assert_eq!(reported(&said), ["1 call was denied: Bash: `touch made`", hint], "{said:?}");
    let [call] = denied(&chain).try_into().unwrap();
    assert_eq!((&call["unapproved"], &call["asked_by_hook"]), (&json!(true), &json!(true)), "{call}");
    assert_eq!(call["said"], "look at it first");
    assert!(chain.ok(&["show", &chain.only_root()]).contains("Bash: `touch made` (look at it first)"));

    let chain = caller(version, Turn::bash("touch made"));
    let root = chain.started(&["spawn", "ins.md", "--on-permission", "ask", "--", "--settings", &settings]);
    chain.answer("allow");
    assert_eq!(chain.ok(&["resume", &root]), "done\n");
    assert!(chain.home.project().join("made").exists());
}

fn the_advice_for_an_adopted_session_is_a_command_that_helps(version: &str) {
    const FIRST: &str = "A person's own session.";
    let write = json!({"file_path": "made.txt", "content": "x"});
    for ends in ["SGN_PEND_STARTED", "done"] {
        let write = write.clone();
        let next = move |said: &Conversation| match said.items().last() {
            Some(Item::User(text)) if text.contains(FIRST) => Turn::text("SGN_PEND_STARTED"),
            Some(Item::User(_)) => Turn::call("Write", write.clone()),
            Some(Item::Result { is_error: true, .. }) => Turn::text(ends),
            _ => Turn::text("written"),
        };
        let chain = Chain::with_model(version, MessagesApi::start(next));
        let session = uuid::Uuid::new_v4().to_string();
        let mut person = chain.home.command(crate::support::claude(version));
        person.args(["-p", "--session-id", &session, FIRST]).stdin(std::process::Stdio::null());
        assert!(person.output().unwrap().status.success());

        let said = chain.run(&["resume", &session]);
        let hint = said.err.lines().find(|line| line.contains("acceptEdits")).unwrap_or_else(|| panic!("{said:?}"));
        let (_, hint) = hint.split_once("hint: ").unwrap();
        let command = hint.strip_suffix(" continues with them allowed").unwrap();
        let command: Vec<&str> = command.split(' ').skip(1).collect();
        assert_eq!(chain.ok(&command), "written\n", "{hint}");
        assert!(chain.home.project().join("made.txt").exists());
    }
}
