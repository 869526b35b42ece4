//! The built-in ExitPlanMode.

use serde_json::{Value, json};

use crate::session::{Session, decision};
use crate::support::{Conversation, Item, NEWEST, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_hook_is_told_the_plan_in_the_file_and_so_is_the_conversation,
    what_a_hook_allows_is_refused_all_the_same,
);

/// The file in which Claude Code expects the plan.
fn plan_file(said: &Conversation) -> String {
    let all = said.context();
    let paths = all.match_indices(".md").filter_map(|(at, _)| all[..at + 3].rsplit([' ', '\n', '`', '"']).next());
    paths.into_iter().find(|path| path.contains("/plans/")).expect("the agent is told where").to_owned()
}

/// A model that may write a plan, and asks to leave plan mode.
fn planning(version: &'static str, writes: bool) -> Session {
    let mut session = Session::with_model(version, move |said| {
        let calls = said.items().iter().filter(|item| matches!(item, Item::Call { .. })).count();
        match calls + usize::from(!writes) {
            0 => Turn::call("Write", json!({"file_path": plan_file(said), "content": "# P\n"})),
            1 if calls == usize::from(writes) => Turn::call("ExitPlanMode", json!({"plan": "# Mine"})),
            _ => Turn::text("done"),
        }
    });
    session.arguments = vec!["--permission-prompt-tool", "stdio", "--permission-mode", "plan"];
    let hook = session.script("plan", "cat >> asked.plan\necho >> asked.plan\ncat decision\n");
    session.settings["hooks"]["PreToolUse"] =
        json!([{"matcher": "ExitPlanMode", "hooks": [{"type": "command", "command": hook}]}]);
    session
}

fn asked(session: &Session) -> Value {
    serde_json::from_str(session.read("asked.plan").lines().next().unwrap()).unwrap()
}

fn a_hook_is_told_the_plan_in_the_file_and_so_is_the_conversation(version: &'static str) {
    let session = planning(version, true);
    assert!(session.start().is_deferred());
    let asked = asked(&session);
    assert_eq!((&asked["permission_mode"], &asked["tool_input"]["plan"]), (&json!("plan"), &json!("# P\n")));
    assert!(asked["tool_input"]["planFilePath"].as_str().is_some_and(|path| path.contains("/plans/")), "{asked}");
    let made = session.transcript().into_iter().find_map(|line| {
        let block = line["message"]["content"][0].clone();
        (block["name"] == "ExitPlanMode").then(|| block["input"].clone())
    });
    assert_eq!(made.unwrap()["plan"], "# P\n");
    // Without a file.
    let session = planning(version, false);
    assert!(session.start().is_deferred());
    let said = if version == NEWEST { json!({}) } else { json!({"plan": "# Mine"}) };
    assert_eq!(self::asked(&session)["tool_input"], said);
}

fn what_a_hook_allows_is_refused_all_the_same(version: &'static str) {
    let session = planning(version, false);
    session.decide(&decision("allow", json!({})));
    let run = session.start();
    let last = run.requests.last().unwrap().last_result().unwrap().to_owned();
    assert!(last.contains("Stream closed"), "{last}");
}
