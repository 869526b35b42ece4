//! Requests whose tool call is suspended, and those that are not, together with users' hooks.

use crate::chain::Chain;
use crate::support::extent::is_whole;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

const ASK: &str = "ask When?\nreply {result}\n";

on_every_version!(
    without_hooks_agents_pause_with_signals, a_request_that_a_users_hook_denies_is_none,
    a_wrong_request_is_told_what_is_wrong_and_does_not_pause, a_child_that_fails_fails_the_call,
    a_call_that_is_resumed_without_hooks_does_not_ask_again
);

on_every_version_of_a_whole_run!(
    a_person_is_asked_once_when_hooks_are_switched_off_during_the_wait,
    a_child_is_started_once_though_hooks_were_switched_off_during_the_wait,
    an_answer_comes_though_a_rule_forbids_the_command_that_prints_it,
    an_answer_comes_though_a_users_hook_replaces_its_call,
    a_result_whose_call_a_users_hook_suspends_again_is_not_lost,
    an_answer_comes_though_a_users_hook_denies_its_call
);

/// The settings of the user, not of the project.
fn user_settings(chain: &Chain, settings: &serde_json::Value) {
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
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

fn a_person_is_asked_once_when_hooks_are_switched_off_during_the_wait(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "spawn child.md\nreply {result}\n");
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

fn a_wrong_request_is_told_what_is_wrong_and_does_not_pause(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "run agent-cli spawn none.md --frobnicate\nend over\n");
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    let (text, is_error) = chain.last_results().pop().unwrap();
    assert!(is_error && text.contains("--frobnicate"), "{text}");
}

fn a_child_that_fails_fails_the_call(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "spawn child.md\nend over\n");
    chain.home.write("child.md", "end SGN_UNHANDLED\n");
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    let (text, is_error) = chain.last_results().pop().unwrap();
    assert!(is_error && text.contains("SGN_UNHANDLED"), "{text}");
}

fn a_call_that_is_resumed_without_hooks_does_not_ask_again(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "ask When?\nask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "ins.md"]);
    user_settings(&chain, &serde_json::json!({"disableAllHooks": true}));
    chain.answer("Jan 1st");
    // The second question is a new one, though it reads the same.
    assert_eq!(chain.ok(&["resume", &root]), format!("SGN_PEND_STARTED ({root})\n"));
    assert_eq!(chain.last_results().into_iter().filter(|result| *result == ("Jan 1st".to_owned(), false)).count(), 1);
    chain.answer("Jan 2nd");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 2nd\n");
}

fn a_child_is_started_once_though_hooks_were_switched_off_during_the_wait(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "spawn child.md\nreply {result}\n");
    chain.home.write("child.md", ASK);
    let root = chain.started(&["spawn", "ins.md"]);
    user_settings(&chain, &serde_json::json!({"disableAllHooks": true}));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.ok(&["tree", &root]).lines().filter(|line| line.contains("child.md")).count(), 1);
}

/// A model that asks once, takes what the call returns for the answer, and says what a prompt brings it later.
fn asker(conversation: &Conversation) -> Turn {
    let later = conversation.last_user_text().filter(|text| text.starts_with("SGN_RESUME"));
    match (later, conversation.result_texts().first()) {
        (Some(text), _) => Turn::text(text.lines().last().unwrap_or_default()),
        (None, Some(text)) => Turn::text(format!("returned: {text}")),
        (None, None) => Turn::bash("agent-cli ask 'When?'"),
    }
}

const RETURNED: (&str, usize) = ("returned: Jan 1st\n", 2);

/// Whatever `settings` do to the resumed call, the answer comes, and once: what the agent says, and after how many requests.
fn the_answer_comes(version: &str, settings: &serde_json::Value, (said, requests): (&str, usize)) {
    let chain = Chain::with_model(version, MessagesApi::start(asker));
    chain.home.write("ins.md", "Ask when.");
    let root = chain.started(&["spawn", "ins.md"]);
    user_settings(&chain, settings);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), said);
    assert_eq!(chain.api.count(), requests, "it asks, and is given the answer");
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn of_a_users_hook(decision: &str, more: &serde_json::Value) -> serde_json::Value {
    let mut output = serde_json::json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
    output.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let said = serde_json::json!({"hookSpecificOutput": output});
    // It answers after ours.
    let hook = serde_json::json!({"type": "command", "command": format!("sleep 0.5; echo '{said}'")});
    serde_json::json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
}

fn an_answer_comes_though_a_users_hook_denies_its_call(version: &str) {
    let more = serde_json::json!({"permissionDecisionReason": "not today"});
    // What the call was denied with is a turn of its own.
    the_answer_comes(version, &of_a_users_hook("deny", &more), ("Jan 1st\n", 4));
}

fn an_answer_comes_though_a_users_hook_replaces_its_call(version: &str) {
    let more = serde_json::json!({"updatedInput": {"command": "echo theirs"}});
    the_answer_comes(version, &of_a_users_hook("allow", &more), RETURNED);
}

fn a_result_whose_call_a_users_hook_suspends_again_is_not_lost(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", ASK);
    let root = chain.started(&["spawn", "ins.md"]);
    user_settings(&chain, &of_a_users_hook("defer", &serde_json::json!({})));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 3, "it reads and asks, and is given the answer");
}

fn an_answer_comes_though_a_rule_forbids_the_command_that_prints_it(version: &str) {
    the_answer_comes(version, &serde_json::json!({"permissions": {"deny": ["Bash(*hook-result*)"]}}), RETURNED);
}

#[test]
fn the_first_version_that_can_suspend_does_and_the_one_before_pauses_with_a_signal() {
    if !is_whole() {
        return;
    }
    pauses_with_a_signal(&Chain::new("2.1.88"), &["spawn", "ins.md"]);
    let chain = Chain::new("2.1.89");
    chain.home.write("ins.md", ASK);
    let root = chain.started(&["spawn", "ins.md"]);
    assert_eq!(chain.api.count(), 2, "it reads and asks");
    chain.answer("Jan 1st");
    // It appends a reminder to the result, of which the scripted model keeps a line break.
    assert_eq!(chain.ok(&["resume", &root]).trim_end(), "Jan 1st");
}
