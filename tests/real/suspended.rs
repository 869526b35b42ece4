//! Requests whose tool call is suspended, and those that are not, beside what users do with hooks.

use crate::chain::Chain;
use crate::support::Item;

const ASK: &str = "1. _ask_ \"When?\"\n2. _terminate_ {the answer}.\n";

/// Runs a fact on both versions.
macro_rules! on_both_versions {
    ($($fact:ident),+ $(,)?) => {
        mod newest { $(#[test] fn $fact() { super::$fact(crate::support::NEWEST); })+ }
        mod older { $(#[test] fn $fact() { super::$fact(crate::support::OLDER); })+ }
    };
}

on_both_versions!(
    without_hooks_agents_pause_with_signals,
    a_person_is_asked_once_when_hooks_are_switched_off_meanwhile,
    a_request_that_a_users_hook_denies_is_none,
    a_request_in_a_pipe_pauses_with_a_signal,
    a_wrong_request_is_told_what_is_wrong_and_does_not_pause,
    a_child_that_fails_fails_the_call,
);

/// The settings of the user, not of the project.
fn user_settings(chain: &Chain, settings: &serde_json::Value) {
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

/// The results of the tool calls that the last request has.
fn results(chain: &Chain) -> Vec<(String, bool)> {
    let last = chain.api.requests().pop().unwrap().conversation();
    let results = last.items().iter().filter_map(|item| match item {
        Item::Result { text, is_error, .. } => Some((text.clone(), *is_error)),
        _ => None,
    });
    results.collect()
}

fn pauses_with_a_signal(chain: &Chain, arguments: &[&str]) {
    chain.home.write("ins.md", ASK);
    let root = chain.started(arguments);
    assert_eq!(chain.api.count(), 3, "it reads, asks, and ends its turn");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 4);
}

fn without_hooks_agents_pause_with_signals(version: &str) {
    pauses_with_a_signal(&Chain::new(version), &["spawn", "ins.md", "--no-hooks"]);
    let chain = Chain::new(version);
    user_settings(&chain, &serde_json::json!({"disableAllHooks": true}));
    pauses_with_a_signal(&chain, &["spawn", "ins.md"]);
}

fn a_person_is_asked_once_when_hooks_are_switched_off_meanwhile(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "1. _spawn_ `child.md`.\n2. _terminate_ {the sub-agent's reply}.\n");
    chain.home.write("child.md", ASK);
    let root = chain.started(&["spawn", "ins.md"]);
    user_settings(&chain, &serde_json::json!({"disableAllHooks": true}));
    chain.answer("Jan 1st");
    // claude runs the calls that it does not ask about.
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
    assert_eq!(chain.api.count(), 4 + 2);
}

fn a_request_that_a_users_hook_denies_is_none(version: &str) {
    let chain = Chain::new(version);
    let denial = serde_json::json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "nobody is here"}});
    let hook = serde_json::json!({"type": "command", "command": format!("echo '{denial}'")});
    user_settings(&chain, &serde_json::json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}));
    chain.home.write("ins.md", ASK);
    assert!(chain.ok(&["spawn", "ins.md"]).contains("nobody is here"));
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn a_request_in_a_pipe_pauses_with_a_signal(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "1. _run_ `agent-cli ask When? | tee log`.\n2. _terminate_ {the output}.\n");
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    let log = std::fs::read_to_string(chain.home.project().join("log")).unwrap();
    assert!(log.starts_with("SGN_PEND_STARTED ("), "{log}");
}

fn a_wrong_request_is_told_what_is_wrong_and_does_not_pause(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "1. _run_ `agent-cli spawn none.md --frobnicate`.\n2. _terminate_ \"over\".\n");
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    let (text, is_error) = results(&chain).pop().unwrap();
    assert!(is_error && text.contains("--frobnicate"), "{text}");
}

fn a_child_that_fails_fails_the_call(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "1. _spawn_ `child.md`.\n2. _terminate_ \"over\".\n");
    chain.home.write("child.md", "1. _terminate_ \"SGN_UNHANDLED\".\n");
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    let (text, is_error) = results(&chain).pop().unwrap();
    assert!(is_error && text.contains("SGN_UNHANDLED"), "{text}");
}

#[test]
fn the_first_version_that_can_suspend_does_and_the_one_before_pauses_with_a_signal() {
    pauses_with_a_signal(&Chain::new("2.1.88"), &["spawn", "ins.md"]);
    let chain = Chain::new("2.1.89");
    chain.home.write("ins.md", ASK);
    let root = chain.started(&["spawn", "ins.md"]);
    assert_eq!(chain.api.count(), 2, "it reads and asks");
    chain.answer("Jan 1st");
    // It appends a reminder to the result, of which the scripted model keeps a line break.
    assert_eq!(chain.ok(&["resume", &root]).trim_end(), "Jan 1st");
}
