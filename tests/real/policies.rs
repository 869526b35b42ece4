//! Settings of a user, or of a company, that take something from agents: MCP servers, or the question whether a call may run.

use std::fs;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, NEWEST, Turn, on_every_version, on_the_newest_version};

on_every_version!(without_its_mcp_server_calls_are_denied_and_the_chain_goes_on);
on_the_newest_version!(
    a_call_that_no_hook_decides_about_is_decided_as_without_hooks,
    what_a_hook_of_the_user_has_decided_counts,
    of_two_open_calls_a_person_is_asked_about_none_that_a_hook_has_decided,
    a_hook_of_the_project_decides_about_the_calls_of_children_in_worktrees,
    an_answer_arrives_although_claude_keeps_its_transcripts_elsewhere,
);

/// A chain of this user whose agent makes these calls, and replies "done".
fn chain(version: &str, settings: &Value, commands: &'static [&'static str]) -> Chain {
    let model = |said: &Conversation| match commands.get(said.results().count()) {
        Some(command) => Turn::bash(command),
        None => Turn::text("done"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    write_settings(&chain, settings);
    chain
}

/// Writes settings of the user.
fn write_settings(chain: &Chain, settings: &Value) {
    let folder = chain.home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
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

fn of_two_open_calls_a_person_is_asked_about_none_that_a_hook_has_decided() {
    for behavior in ["allow", "deny"] {
        let model = |said: &Conversation| match said.results().count() {
            0 => Turn::bash("echo run >> one; false").and_bash("echo run >> two; false"),
            _ => Turn::text("done"),
        };
        let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
        write_settings(&chain, &deciding(behavior));
        assert_eq!(chain.ok(&["spawn", "--prompt", "Work.", "--on-permission", "ask"]), "done\n");
        assert_eq!(chain.ok(&["questions"]), "");
        for made in ["one", "two"] {
            assert_eq!(chain.home.project().join(made).exists(), behavior == "allow");
        }
    }
}

fn a_hook_of_the_project_decides_about_the_calls_of_children_in_worktrees() {
    let model = |said: &Conversation| match (said.task().contains("CHILD"), said.results().count()) {
        (true, 0) => Turn::bash("echo run >> made; cat made"),
        (false, 0) => Turn::bash("agent-cli spawn --worktree --prompt CHI''LD"),
        _ => Turn::text(said.last_result().unwrap_or_default()),
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    for args in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "start"]] {
        let mut git = chain.home.command("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(args);
        assert!(git.current_dir(chain.home.project()).status().unwrap().success(), "{args:?}");
    }
    fs::create_dir_all(chain.home.project().join(".claude")).unwrap();
    let local = chain.home.project().join(".claude/settings.local.json");
    fs::write(local, deciding("allow").to_string()).unwrap();
    let reply = chain.ok(&["spawn", "--prompt", "Work."]);
    assert!(reply.starts_with("run\n"), "{reply}");
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
