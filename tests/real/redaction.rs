//! What a user's hook after a command takes out of its output, no agent is given in another way.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, Turn, on_every_version};

on_every_version!(
    an_answer_that_a_hook_has_replaced_is_not_given_again,
    a_reply_that_a_hook_has_replaced_is_not_given_again,
    replies_of_a_group_that_a_hook_has_replaced_are_not_given_again,
    an_answer_that_a_hook_has_objected_to_is_not_given_again,
    an_answer_to_a_native_question_that_a_hook_has_replaced_is_not_given_again,
    answers_in_a_transcript_are_fetched_with_a_command,
    an_answer_to_a_program_is_fetched_with_a_command,
    an_answer_that_another_hook_has_denied_is_fetched_with_a_command,
);

const SECRET: &str = "the key is hunter2";
const REPLACED: &str = "the key is [removed]";

fn shown() -> Value {
    let shown = json!({"stdout": REPLACED, "stderr": "", "interrupted": false, "isImage": false});
    json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": shown}})
}

/// A hook that says `said` of results with the secret.
fn after(matcher: &str, said: &Value) -> Value {
    let command = format!("case $(cat) in *hunter2*) echo '{said}' ;; esac");
    json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}])
}

/// The settings of the user, not of the project.
fn settings(chain: &Chain, hooks: &Value) {
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), json!({"hooks": hooks}).to_string()).unwrap();
}

/// A model that begins with `calls`, runs every command that it is told to fetch a result with, and is then over.
fn fetching(version: &str, calls: Turn) -> Chain {
    let model = move |said: &Conversation| {
        let mut commands = Vec::new();
        let mut begun = false;
        for item in said.items() {
            match item {
                Item::User(text) | Item::Result { text, .. } => commands
                    .extend(text.split('`').filter(|word| word.starts_with("agent-cli resume ")).map(str::to_owned)),
                Item::Call { input, .. } => {
                    begun = true;
                    commands.retain(|command| input["command"] != **command);
                }
                Item::Assistant(_) => begun = true,
            }
        }
        match commands.first() {
            Some(command) => Turn::bash(command),
            None if begun => Turn::text("over"),
            None => calls.clone(),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    chain
}

/// No request has the secret, and the last one has what the hook has made of it, so many times.
fn is_replaced(chain: &Chain, requests: usize, times: usize) {
    for request in chain.api.requests() {
        assert!(!request.body.to_string().contains("hunter2"), "{}", request.body);
    }
    assert_eq!(chain.api.count(), requests);
    let last = chain.api.last_conversation();
    let replaced = |item: &&Item| matches!(item, Item::Result { text, is_error: false, .. } if text == REPLACED);
    assert_eq!(last.items().iter().filter(replaced).count(), times, "{last:?}");
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn an_answer_that_a_hook_has_replaced_is_not_given_again(version: &str) {
    let chain = fetching(version, Turn::bash("agent-cli ask 'Which?'"));
    settings(&chain, &json!({"PostToolUse": after("Bash", &shown())}));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer(SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    is_replaced(&chain, 2, 1);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
}

/// A parent whose model spawns with `command`, and children that reply with the secret.
fn replies(version: &str, command: &'static str, requests: usize) {
    let parent = |said: &Conversation| said.user_texts().any(|text| text.contains("ins.md"));
    let model = move |said: &Conversation| match (parent(said), said.last_result()) {
        (true, None) => Turn::bash(command),
        (true, Some(_)) => Turn::text("over"),
        (false, _) => Turn::text(SECRET),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Spawn.");
    chain.home.write("child.md", "Say which.");
    settings(&chain, &json!({"PostToolUse": after("*", &shown())}));
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    is_replaced(&chain, requests, 1);
}

fn a_reply_that_a_hook_has_replaced_is_not_given_again(version: &str) {
    replies(version, "agent-cli spawn child.md", 3);
}

fn replies_of_a_group_that_a_hook_has_replaced_are_not_given_again(version: &str) {
    replies(version, "agent-cli spawn child.md child.md", 4);
}

fn an_answer_that_a_hook_has_objected_to_is_not_given_again(version: &str) {
    let chain = fetching(version, Turn::bash("agent-cli ask 'Which?'"));
    settings(&chain, &json!({"PostToolUse": after("Bash", &json!({"decision": "block", "reason": "not this one"}))}));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer(SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    assert_eq!(chain.api.count(), 2, "it asks, and goes on");
}

fn an_answer_to_a_native_question_that_a_hook_has_replaced_is_not_given_again(version: &str) {
    let options = json!([{"label": "a", "description": "a"}, {"label": "b", "description": "b"}]);
    let questions = json!([{"question": "Which?", "header": "Key", "multiSelect": false, "options": options}]);
    let chain = fetching(version, Turn::call("AskUserQuestion", json!({"questions": questions})));
    let shown = json!({"questions": questions, "answers": {"Which?": REPLACED}});
    let shown = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": shown}});
    settings(&chain, &json!({"PostToolUse": after("AskUserQuestion", &shown)}));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer(SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    assert_eq!(chain.api.count(), 2, "it asks, and goes on");
    let last = chain.api.requests().pop().unwrap().body.to_string();
    assert!(!last.contains("hunter2") && last.contains(REPLACED), "{last}");
}

/// Of two suspended calls, both results stand in the transcript.
fn answers_in_a_transcript_are_fetched_with_a_command(version: &str) {
    let chain = fetching(version, Turn::bash("agent-cli ask 'Which?'").and_bash("agent-cli ask 'And?'"));
    settings(&chain, &json!({"PostToolUse": after("Bash", &shown())}));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer_to("Which?", SECRET);
    chain.answer_to("And?", SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    is_replaced(&chain, 4, 2);
}

fn an_answer_to_a_program_is_fetched_with_a_command(version: &str) {
    let chain = fetching(version, Turn::bash("agent-cli ask 'Which?'"));
    settings(&chain, &json!({"PostToolUse": after("Bash", &shown())}));
    // Its call returns the signal, and the agent ends its turn.
    let root = chain.started(&["spawn", "ins.md", "--no-hooks"]);
    chain.answer(SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    is_replaced(&chain, 4, 1);
}

fn an_answer_that_another_hook_has_denied_is_fetched_with_a_command(version: &str) {
    let chain = fetching(version, Turn::bash("agent-cli ask 'Which?'"));
    let root = chain.started(&["spawn", "ins.md"]);
    let denial = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "not today"}});
    let command = format!("case $(cat) in *'agent-cli ask'*) echo '{denial}' ;; esac");
    let before = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]);
    settings(&chain, &json!({"PreToolUse": before, "PostToolUse": after("Bash", &shown())}));
    chain.answer(SECRET);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    is_replaced(&chain, 4, 1);
}
