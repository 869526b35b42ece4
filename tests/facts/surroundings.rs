//! What `agent-cli doctor` relies on: how `claude` takes its settings files, and what it logs in with.

use std::process::Output;

use serde_json::json;

use crate::session::{REQUEST, Session, decision};
use crate::support::extent::{is_whole, some_of};
use crate::support::{Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    the_strongest_settings_that_say_something_about_hooks_count,
    settings_with_a_mistake_are_passed_over_as_a_whole_and_without_a_word,
    each_of_these_is_a_login_and_an_empty_key_is_none,
    a_bypass_that_is_disabled_becomes_the_default_mode_without_a_word,
    root_may_bypass_permissions_in_a_sandbox_only,
    a_rule_that_denies_a_request_does_not_keep_its_call_from_being_deferred,
);

const KEY: &str = "ANTHROPIC_API_KEY";

fn session(version: &str) -> Session {
    Session::new(version, Turn::bash(REQUEST))
}

fn run(session: &Session, without: &str, with: &[(&str, &str)]) -> Output {
    let mut command = session.command();
    command.env_remove(without).envs(with.iter().copied()).arg("go").output().unwrap()
}

/// Whether the hook was run.
fn asks_the_hook(session: &Session) -> bool {
    let before = session.asked().len();
    let output = run(session, "", &[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    session.asked().len() > before
}

fn the_strongest_settings_that_say_something_about_hooks_count(version: &str) {
    let session = session(version);
    session.write(".claude/settings.json", r#"{"disableAllHooks": true}"#);
    assert!(!asks_the_hook(&session));
    session.home.write(".claude/settings.json", r#"{"disableAllHooks": false}"#);
    assert!(asks_the_hook(&session));
    session.home.write(".claude/settings.local.json", r#"{"disableAllHooks": true}"#);
    assert!(!asks_the_hook(&session));
}

/// Each of them would switch the hooks off.
fn settings_with_a_mistake_are_passed_over_as_a_whole_and_without_a_word(version: &str) {
    let session = session(version);
    for rest in ["}", ", \"cleanupPeriodDays\": 0}", ", \"cleanupPeriodDays\": \"x\"}"] {
        let start = if rest == "}" { "// a comment\n" } else { "" };
        session.write(".claude/settings.json", &format!("{start}{{\"disableAllHooks\": true{rest}"));
        assert!(asks_the_hook(&session), "{rest}");
    }
}

fn each_of_these_is_a_login_and_an_empty_key_is_none(version: &str) {
    let logs_in = |session: &Session, with: &[(&str, &str)]| {
        let before = session.api.count();
        run(session, KEY, with);
        session.api.count() > before
    };
    let plain = session(version);
    assert!(!logs_in(&plain, &[]));
    assert!(!logs_in(&plain, &[(KEY, "")]));
    for name in some_of([KEY, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"], 1) {
        assert!(logs_in(&plain, &[(name, "dummy")]), "{name}");
    }
    let oauth = json!({"claudeAiOauth": {"accessToken": "dummy", "refreshToken": "dummy", "expiresAt": 9_999_999_999_999_u64,
        "scopes": ["user:inference"], "subscriptionType": "max"}});
    let logins = [
        (".claude/settings.json", json!({"apiKeyHelper": "echo dummy"})),
        ("project/.claude/settings.json", json!({"apiKeyHelper": "echo dummy"})),
        (".claude/settings.json", json!({"env": {KEY: "dummy"}})),
        (".claude/.credentials.json", oauth),
        (".claude.json", json!({"primaryApiKey": "dummy"})),
    ];
    for (file, content) in some_of(logins, 1) {
        let session = session(version);
        session.write(file, &content.to_string());
        assert!(logs_in(&session, &[]), "{file}: {content}");
    }
}

fn a_bypass_that_is_disabled_becomes_the_default_mode_without_a_word(version: &str) {
    let mut session = session(version);
    session.arguments = vec!["--permission-mode=bypassPermissions"];
    let mode = |session: &Session| {
        let run = session.start();
        assert_eq!(run.err, "");
        run.events[0]["permissionMode"].clone()
    };
    assert_eq!(mode(&session), "bypassPermissions");
    session.id = uuid::Uuid::new_v4().to_string();
    session.write(".claude/settings.json", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#);
    assert_eq!(mode(&session), "default");
}

/// For others than root there is nothing to see.
fn root_may_bypass_permissions_in_a_sandbox_only(version: &str) {
    let mut session = session(version);
    session.arguments = vec!["--permission-mode=bypassPermissions"];
    let is_root = rustix::process::geteuid().is_root();
    for (with, may) in [
        (None, false),
        (Some(("IS_SANDBOX", "true")), false),
        (Some(("IS_SANDBOX", "1")), true),
        (Some(("CLAUDE_CODE_BUBBLEWRAP", "1")), true),
    ] {
        let output = run(&session, "IS_SANDBOX", with.as_slice());
        assert_eq!(output.status.success(), may || !is_root, "{with:?}: {output:?}");
    }
}

fn a_rule_that_denies_a_request_does_not_keep_its_call_from_being_deferred(version: &str) {
    let mut session = session(version);
    session.write(".claude/settings.json", r#"{"permissions": {"deny": ["Bash(agent-cli ask:*)"]}}"#);
    session.arguments = vec!["--allowedTools=Bash(agent-cli ask:*)"];
    assert!(session.start().is_deferred());
}

#[test]
fn version_2_1_89_defers_questions_too() {
    if !is_whole() {
        return;
    }
    let questions = json!([{"question": "When?", "header": "Birthday", "multiSelect": false,
        "options": [{"label": "Jan", "description": "x"}, {"label": "Feb", "description": "x"}]}]);
    let mut session = Session::new("2.1.89", Turn::call("AskUserQuestion", json!({"questions": questions})));
    session.arguments = vec!["--permission-prompt-tool", "stdio"];
    assert!(session.start().is_deferred());
    session.decide(&decision("allow", json!({"updatedInput": {"questions": questions, "answers": {"When?": "Jan"}}})));
    assert!(session.resume().tool_result().0.contains("\"When?\"=\"Jan\""));
}
