//! Claude Code's background tasks, which continue while a call is suspended.

use serde_json::json;

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(an_agent_that_asks_twice_beside_a_background_task_keeps_its_conversation);

on_every_version_of_a_whole_run!(an_agent_that_asks_for_several_things_beside_a_background_task_keeps_its_conversation);

/// Longer than Claude Code bridges a gap in a transcript by the time of its lines.
const TASK: &str = "sleep 8";

/// Works, starts a background task, calls `first`, and asks when it gets no result.
fn model(said: &Conversation, first: &Turn) -> Turn {
    let calls = said.items().iter().filter_map(command).count();
    let answered = said.results().any(|(text, _)| text == "yes") || was_told(said);
    match calls {
        _ if answered => Turn::text("done"),
        0 => Turn::bash("echo some work"),
        1 => Turn::call("Bash", json!({"command": TASK, "description": "Wait", "run_in_background": true})),
        2 => first.clone(),
        _ => Turn::bash("agent-cli ask 'Go again?'"),
    }
}

fn was_told(said: &Conversation) -> bool {
    said.last_user_text().is_some_and(|text| text.starts_with("SGN_RESUME") && text.contains("yes"))
}

fn command(item: &Item) -> Option<&str> {
    match item {
        Item::Call { input, .. } => input["command"].as_str(),
        _ => None,
    }
}

fn an_agent_that_asks_twice_beside_a_background_task_keeps_its_conversation(version: &str) {
    keeps_its_conversation(version, &Turn::bash("agent-cli ask 'Go?'"));
}

fn an_agent_that_asks_for_several_things_beside_a_background_task_keeps_its_conversation(version: &str) {
    let turn = Turn::bash("agent-cli ask 'Go?'").and_bash("echo more work").and_bash("agent-cli ask 'And then?'");
    keeps_its_conversation(version, &turn);
}

fn keeps_its_conversation(version: &str, turn: &Turn) {
    let turn = turn.clone();
    let chain = Chain::with_model(version, MessagesApi::start(move |said| model(said, &turn)));
    let instructions = chain.home.write("ins.md", "Work and ask.\n");
    let root = chain.started(&["spawn", "ins.md"]);
    let questions = chain.json(&["questions", "--json"]);
    for question in questions.as_array().unwrap() {
        chain.ok(&["answer", question["id"].as_str().unwrap(), "yes"]);
    }
    let before = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "done\n");
    let resumed = chain.api.requests()[before].conversation();
    let first = format!("Read {} and follow its instructions.", instructions.display());
    assert!(resumed.task().contains(&first), "{resumed:?}");
    assert!(resumed.results().any(|(text, _)| text == "some work"), "{resumed:?}");
    let given = resumed.results().filter(|(text, _)| *text == "yes").count();
    let told = resumed.last_user_text().map_or(0, |text| text.matches("\nyes").count());
    assert_eq!(given + told, questions.as_array().unwrap().len(), "every answer, once: {resumed:?}");
    chain.ok(&["fsck"]);
}
