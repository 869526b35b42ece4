//! Settings of a user, or of a company, that take something from agents: MCP servers, or the question whether a call may run.

use std::fs;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, NEWEST, Turn, on_every_version, on_the_newest_version};

on_every_version!(without_its_mcp_server_calls_are_denied_and_the_chain_goes_on);
on_the_newest_version!(
    a_call_that_no_hook_decides_about_is_decided_as_without_hooks,
    what_a_hook_of_the_user_has_decided_counts,
    an_answer_arrives_although_claude_keeps_its_transcripts_elsewhere,
);

/// A chain of this user whose agent makes these calls, and replies "done".
fn chain(version: &str, settings: &Value, commands: &'static [&'static str]) -> Chain {
    let model = |said: &Conversation| match commands.get(said.results().count()) {
        Some(command) => Turn::bash(command),
        None => Turn::text("done"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    let folder = chain.home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    chain
}

fn without_its_mcp_server_calls_are_denied_and_the_chain_goes_on(version: &str) {
    let settings = json!({"allowedMcpServers": [{"serverName": "github"}], "permissions": {"allow": ["Bash(echo:*)"]}});
    let chain = chain(version, &settings, &["echo one", "touch made", "agent-cli ask 'When?'"]);
    let root = chain.started(&["spawn", "--prompt", "Work."]);
    chain.answer("now");
    assert_eq!(chain.ok(&["resume", &root]), "done\n");
    assert!(!chain.home.project().join("made").exists());
    let results: Vec<_> = chain.api.last_conversation().results().map(|(text, _)| text.to_string()).collect();
    assert!(results[0].contains("one") && results[2].contains("now"), "{results:?}");
    let refused = chain.run(&["spawn", "--prompt", "Work.", "--on-permission", "ask"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("needs the MCP server agent-cli, which "), "{refused:?}");
}

/// Settings with a hook that decides like this, after a moment, and one that says nothing.
fn deciding(behavior: &str) -> Value {
    let decision = json!({"behavior": behavior, "message": "not in this house"});
    let said = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    let hook = |command: String| json!({"type": "command", "command": command});
    let hooks = [hook(format!("sleep 0.7; echo '{said}'")), hook("true".to_owned())];
    json!({"hooks": {"PermissionRequest": [{"hooks": hooks}]}})
}

fn what_a_hook_of_the_user_has_decided_counts() {
    for (behavior, permissions) in [("allow", "ask"), ("allow", "deny"), ("deny", "ask"), ("deny", "deny")] {
        let chain = chain(NEWEST, &deciding(behavior), &["echo run >> count.txt"]);
        assert_eq!(chain.ok(&["spawn", "--prompt", "Work.", "--on-permission", permissions]), "done\n");
        let has_run = chain.home.project().join("count.txt").exists();
        assert_eq!(has_run, behavior == "allow", "{permissions}");
        let results: Vec<_> = chain.api.last_conversation().results().map(|(text, _)| text.to_string()).collect();
        assert_eq!(results[0].contains("not in this house"), behavior == "deny", "{permissions}: {results:?}");
        assert_eq!(chain.ok(&["questions"]), "");
    }
}

fn a_call_that_no_hook_decides_about_is_decided_as_without_hooks() {
    let hooks = json!({"hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": "sleep 0.3"}]}]}});
    let denied = chain(NEWEST, &hooks, &["echo run >> count.txt"]);
    assert_eq!(denied.ok(&["spawn", "--prompt", "Work."]), "done\n");
    assert!(!denied.home.project().join("count.txt").exists());
    let asked = chain(NEWEST, &hooks, &["echo run >> count.txt"]);
    let root = asked.started(&["spawn", "--prompt", "Work.", "--on-permission", "ask"]);
    asked.answer("allow");
    assert_eq!(asked.ok(&["resume", &root]), "done\n");
    assert_eq!(fs::read_to_string(asked.home.project().join("count.txt")).unwrap(), "run\n");
}

fn an_answer_arrives_although_claude_keeps_its_transcripts_elsewhere() {
    let elsewhere = tempfile::tempdir().unwrap();
    let chain = chain(NEWEST, &json!({"env": {"CLAUDE_CONFIG_DIR": elsewhere.path()}}), &["agent-cli ask 'When?'"]);
    let root = chain.started(&["spawn", "--prompt", "Work."]);
    chain.answer("now");
    assert_eq!(chain.ok(&["resume", &root]), "done\n");
    let results: Vec<_> = chain.api.last_conversation().results().map(|(text, _)| text.to_string()).collect();
    assert!(results[0].contains("now"), "{results:?}");
}
