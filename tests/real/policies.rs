//! Settings of a user, or of a company, that take something from agents: MCP servers, or the question whether a call may run.

use std::fs;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, NEWEST, Turn, on_every_version, on_the_newest_version};

on_every_version!(without_its_mcp_server_calls_are_denied_and_the_chain_goes_on);
on_the_newest_version!(
    nobody_is_asked_about_a_call_that_a_hook_has_allowed,
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

fn nobody_is_asked_about_a_call_that_a_hook_has_allowed() {
    let decision =
        json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}});
    let hook = json!([{"hooks": [{"type": "command", "command": format!("echo '{decision}'")}]}]);
    let chain = chain(NEWEST, &json!({"hooks": {"PermissionRequest": hook}}), &["echo run >> count.txt"]);
    assert_eq!(chain.ok(&["spawn", "--prompt", "Work.", "--on-permission", "ask"]), "done\n");
    assert_eq!(fs::read_to_string(chain.home.project().join("count.txt")).unwrap(), "run\n");
    assert_eq!(chain.ok(&["questions"]), "");
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
