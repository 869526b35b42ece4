//! Requests that are not alone in their call, and those that a person's rules restrict.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, NEWEST, Turn, on_every_version, on_the_newest_version};

on_every_version!(
    a_request_beside_something_else_is_refused_before_anything_runs,
    a_request_in_another_directory_leaves_the_shell_there,
    a_rule_that_denies_requests_holds,
    a_question_that_needs_an_approval_is_asked_once,
);

on_the_newest_version!(a_subagent_and_a_monitor_are_refused_a_request_beside_something_else,);

const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn a_request_beside_something_else_is_refused_before_anything_runs(version: &str) {
    let chain = Chain::new(version);
    let commands = [
        "agent-cli ask 'Deploy?' && touch deployed",
        "cd . && agent-cli ask 'Deploy?' 2>&1 | tee deployed",
        "X=$(agent-cli ask 'Deploy?'); touch deployed",
        "timeout 5 agent-cli ask 'Deploy?'",
        "agent-cli spawn none.md & touch deployed",
        "bash <<< \"agent-cli ask 'Deploy?'; touch deployed\"",
        "timeout 9 sh -s <<< 'agent-cli ask Deploy; touch deployed'",
    ];
    let calls: String = commands.iter().map(|command| format!("run {command}\n")).collect();
    chain.home.write("ins.md", &format!("{calls}run grep -c 'agent-cli ask' ins.md\nreply {{result}}\n"));
    assert_eq!(chain.ok(&[&["spawn", "ins.md"], &FREE[..]].concat()), "7\n");
    let refused =
        chain.last_results().into_iter().filter(|(text, is_error)| *is_error && text.contains("nothing was run"));
    assert_eq!(refused.count(), commands.len());
    assert!(!chain.home.project().join("deployed").exists());
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn a_request_in_another_directory_leaves_the_shell_there(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("sub/file", "");
    chain.home.write("ins.md", "run cd sub && agent-cli ask 'When?' 2>&1\nrun pwd\nreply {result}\n");
    let root = chain.started(&[&["spawn", "ins.md"], &FREE[..]].concat());
    chain.answer("now");
    let sub = chain.home.project().join("sub").canonicalize().unwrap();
    assert_eq!(chain.ok(&["resume", &root]), format!("{}\n", sub.display()));
    assert!(chain.last_results().contains(&("now".to_owned(), false)));
}

fn user_settings(chain: &Chain, settings: &Value) {
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

fn a_rule_that_denies_requests_holds(version: &str) {
    let rule = "Bash(agent-cli spawn:*)";
    for (settings, arguments) in [
        (json!({"permissions": {"deny": [rule]}}), vec!["spawn", "ins.md"]),
        (json!({"permissions": {"ask": [rule]}}), vec!["spawn", "ins.md"]),
        (json!({}), vec!["spawn", "ins.md", "--", "--disallowedTools=Edit,Bash(agent-cli spawn:*)"]),
    ] {
        let chain = Chain::new(version);
        user_settings(&chain, &settings);
        chain.home.write("child.md", "reply the child ran\n");
        chain.home.write("ins.md", "spawn child.md\nask When?\nreply {result}\n");
        let root = chain.started(&arguments);
        let (text, is_error) = chain.last_results().remove(1);
        assert!(is_error && (text.contains("denied") || text.contains("haven't granted")), "{text}");
        assert_eq!(chain.json(&["tree", &root, "--json"]).as_array().map(Vec::len), Some(1));
        chain.answer("now");
        assert_eq!(chain.ok(&["resume", &root]), "now\n");
    }
}

/// A rule has Claude Code ask about the call that asks.
fn a_question_that_needs_an_approval_is_asked_once(version: &str) {
    let questions = json!([{"question": "When?", "header": "Birthday", "multiSelect": false,
        "options": [{"label": "Jan", "description": "x"}, {"label": "Feb", "description": "x"}]}]);
    let api = MessagesApi::start(move |said| match said.last_result() {
        None => Turn::call("AskUserQuestion", json!({"questions": questions})),
        Some(text) => Turn::text(text),
    });
    let chain = Chain::with_model(version, api);
    user_settings(&chain, &json!({"permissions": {"ask": ["AskUserQuestion"]}}));
    let root = chain.started(&["spawn", "--prompt", "go"]);
    chain.answer("Jan");
    let said = chain.ok(&["resume", &root]);
    assert!(said.contains("\"When?\"=\"Jan\""), "{said}");
    assert_eq!(chain.api.count(), 2);
}

/// The calls that were made.
fn calls(said: &Conversation) -> usize {
    said.items().iter().filter(|item| matches!(item, Item::Call { .. })).count()
}

fn a_subagent_and_a_monitor_are_refused_a_request_beside_something_else() {
    const SUBTASK: &str = "ask a person whether to deploy";
    let command = json!({"command": "cd . && agent-cli ask 'Go?' && touch deployed", "description": "asks"});
    let api = MessagesApi::start(move |said| {
        let is_subagent = said.items().iter().any(|item| matches!(item, Item::User(text) if text.contains(SUBTASK)));
        match (is_subagent, calls(said)) {
            (true, 0) => Turn::call("Bash", command.clone()),
            (false, 0) => {
                let input = json!({"description": "x", "prompt": SUBTASK, "subagent_type": "general-purpose",
                    "run_in_background": false});
                Turn::call("Agent", input)
            }
            (false, 1) => Turn::load("Monitor"),
            (false, 2) => {
                let mut input = command.clone();
                input["persistent"] = json!(true);
                Turn::call("Monitor", input)
            }
            _ => {
                let results: Vec<&str> = said.results().map(|(text, _)| text).collect();
                Turn::text(results.join("\n"))
            }
        }
    });
    let chain = Chain::with_model(NEWEST, api);
    let told = chain.ok(&[&["spawn", "--prompt", "do it"], &FREE[..]].concat());
    assert!(
        told.contains("a subagent cannot wait") && told.contains("a command that is monitored cannot wait"),
        "{told}"
    );
    assert!(!chain.home.project().join("deployed").exists());
    assert_eq!(chain.json(&["questions", "--all", "--json"]), json!([]));
}
