//! The findings of `doctor`, in environments created for the tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::programs;
use crate::world::World;

/// A world in which nothing is wrong.
fn healthy() -> World {
    World::new().with("ANTHROPIC_API_KEY", "a secret").with("CLAUDE_CONFIG_DIR", "conf")
}

/// The checks of this name.
#[track_caller]
fn checks(world: &World, code: i32, name: &str) -> Vec<(String, String)> {
    let outcome = world.run(&["doctor", "--json"]);
    outcome.exits_with(code);
    assert!(!outcome.stdout.contains("secret"), "{outcome}");
    let report = outcome.json();
    let checks = report["checks"].as_array().expect("a list").iter();
    let text = |value: &Value| world.named(value.as_str().unwrap_or_default());
    checks
        .filter(|check| check["name"] == name)
        .map(|check| (text(&check["status"]), text(&check["message"])))
        .collect()
}

/// The only check of this name.
#[track_caller]
fn check(world: &World, code: i32, name: &str) -> String {
    let found = checks(world, code, name);
    let [(status, message)] = found.as_slice() else { panic!("{name}: {found:?}") };
    format!("{status}: {message}")
}

/// Writes a file of the home folder.
fn home_file(world: &World, name: &str, text: &str) {
    let path = world.home().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, text).expect("writable");
}

#[test]
fn nothing_is_wrong_and_nothing_is_made() {
    let world = healthy();
    world.file("CLAUDE.md", "_spawn_ as you like");
    let outcome = world.run(&["doctor"]);
    let lines = outcome.succeeds().stdout.lines();
    // The fill level and the kind of the disk depend on the machine.
    let lines = lines.filter(|line| ["space:", "file-system:"].iter().all(|check| !line.contains(check)));
    let text = world.named(&lines.collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!(text, @"
    ok       claude: [STAND-IN] is Claude Code 2.1.330 (found by AGENT_CLI_CLAUDE)
    ok       version: calls can be suspended: agents wait inside a tool call, without a process
    ok       login: found ANTHROPIC_API_KEY (not tested)
    ok       environment: agents inherit every variable that was set on purpose
    ok       settings: readable settings files: 0
    ok       hooks: no settings disable hooks
    ok       retention: Claude Code keeps transcripts for its default time; agent-cli keeps copies
    ok       permissions: no rule denies agent-cli commands
    ok       permission-mode: chains start in Claude Code's default permission mode, unless an option sets another
    ok       convention: [PROJECT]/CLAUDE.md defines _spawn_
    ok       agent-cli: [BIN]/agent-cli is in PATH
    ok       state-directory: [STATE] (named by AGENT_CLI_STATE_DIR), which does not exist yet
    ok       database: not created yet; the first chain creates it
    no problems found
    ");
    assert!(!world.state().exists());
    assert_eq!(world.log().versions, 1);
    assert_eq!(world.starts(), 0);
}

#[test]
fn json_tells_of_claude_and_of_the_checks() {
    let world = healthy().with("STAND_IN_VERSION", "2.1.88");
    let report = world.run(&["doctor", "--json"]).succeeds().json();
    let claude = json!({
        "path": programs::stand_in(),
        "found_by": "AGENT_CLI_CLAUDE",
        "usable": true,
        "version": "2.1.88",
        "sessions_by_id": true,
        "suspended_calls": false,
        "native_questions": false,
        "differences": [
            "calls cannot be suspended",
            "sessions are found only from their own working directory",
            "the cost of a resumed run does not include what the session cost before",
        ],
    });
    assert_eq!(report["claude"], claude);
    let version = json!({
        "name": "version",
        "status": "warning",
        "message": "agents can pause only with signals: suspending calls needs 2.1.89, and this is 2.1.88",
        "hint": "run claude update, then agent-cli doctor",
    });
    assert_eq!(report["checks"][1], version);
}

#[test]
fn a_claude_that_cannot_be_used_is_exit_status_4() {
    let world = healthy().without("AGENT_CLI_CLAUDE").with("PATH", "/nonexistent");
    insta::assert_snapshot!(check(&world, 4, "claude"), @r#"problem: no program named "claude" in PATH (found by PATH)"#);
    let outcome = world.run(&["doctor"]);
    assert!(
        outcome.stdout.contains("\n         hint: install Claude Code, or name it with --claude PATH"),
        "{outcome}"
    );
    assert_eq!(world.run(&["doctor", "--json"]).json()["claude"]["path"], Value::Null);
    insta::assert_snapshot!(check(&healthy().with("AGENT_CLI_CLAUDE", "/nonexistent/claude"), 4, "claude"), @"problem: there is no program at /nonexistent/claude (found by AGENT_CLI_CLAUDE)");
    insta::assert_snapshot!(check(&healthy().with("STAND_IN_VERSION", "2.0.10"), 4, "claude"), @"problem: [STAND-IN] is Claude Code 2.0.10, and agent-cli needs 2.0.73 or newer (found by AGENT_CLI_CLAUDE)");
    let world = healthy();
    let file = world.file("claude", "#!/bin/sh\necho GNU bash\n");
    let world = world.with("AGENT_CLI_CLAUDE", &file);
    insta::assert_snapshot!(check(&world, 4, "claude"), @"problem: [PROJECT]/claude is not an executable file (found by AGENT_CLI_CLAUDE)");
    world.executable("claude", "#!/bin/sh\necho GNU bash\n");
    insta::assert_snapshot!(check(&world, 4, "claude"), @"problem: [PROJECT]/claude (found by AGENT_CLI_CLAUDE) is not Claude Code");
    let report = world.run(&["doctor", "--json", "--claude", &programs::stand_in().to_string_lossy()]);
    assert_eq!(report.succeeds().json()["claude"]["found_by"], "--claude");
}

#[test]
fn several_programs_in_path_are_named() {
    let world = healthy().without("AGENT_CLI_CLAUDE");
    for folder in ["one", "two"] {
        world.executable(format!("{folder}/claude"), "#!/bin/sh\necho '2.1.330 (Claude Code)'\n");
    }
    let project = world.project();
    let world = world.with("PATH", format!("{0}/one:{0}/two:/usr/bin:/bin", project.display()));
    insta::assert_snapshot!(check(&world, 0, "path"), @"warning: PATH contains several claude programs; the first one is used: [PROJECT]/one/claude, [PROJECT]/two/claude");
    insta::assert_snapshot!(check(&world, 0, "agent-cli"), @"warning: agent-cli is not in PATH: only agents find it");
}

#[test]
fn a_login_is_seen_and_not_read() {
    let world = World::new();
    if cfg!(not(target_os = "macos")) {
        insta::assert_snapshot!(check(&world, 1, "login"), @"problem: no login found");
        home_file(&world, ".claude.json", "{\"primaryApiKey\": \"a secret\"}");
        insta::assert_snapshot!(check(&world, 0, "login"), @"warning: no login found; .claude.json, which may contain a key, is not checked");
    }
    home_file(&world, ".claude/.credentials.json", "a secret");
    insta::assert_snapshot!(check(&world, 0, "login"), @"ok: found [HOME]/.claude/.credentials.json (not tested)");
    home_file(
        &world,
        ".claude/settings.json",
        r#"{"apiKeyHelper": "a secret", "env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}"#,
    );
    let world = world.with("ANTHROPIC_AUTH_TOKEN", "a secret").with("ANTHROPIC_API_KEY", "");
    insta::assert_snapshot!(check(&world, 0, "login"), @"ok: found ANTHROPIC_AUTH_TOKEN, [HOME]/.claude/.credentials.json, apiKeyHelper in [HOME]/.claude/settings.json, CLAUDE_CODE_USE_BEDROCK in [HOME]/.claude/settings.json (not tested)");
}

#[test]
fn settings_that_are_in_the_way_are_named() {
    let world = healthy().without("CLAUDE_CONFIG_DIR");
    home_file(&world, ".claude/settings.json", "{\"disableAllHooks\": \"a secret\",}");
    insta::assert_snapshot!(check(&world, 0, "settings"), @"warning: [HOME]/.claude/settings.json is not JSON (line 1, column 32): Claude Code silently ignores the whole file");
    home_file(&world, ".claude/settings.json", "{\"cleanupPeriodDays\": 3}");
    insta::assert_snapshot!(check(&world, 0, "retention"), @"warning: Claude Code deletes transcripts after 3 days; chains that wait longer continue from copies kept by agent-cli");
    world.file(".claude/settings.json", "{\"disableAllHooks\": true}");
    insta::assert_snapshot!(check(&world, 0, "hooks"), @"warning: disableAllHooks is set in [PROJECT]/.claude/settings.json: calls are not suspended, agents pause with signals");
    world.file(".claude/settings.local.json", "{\"permissions\": {\"deny\": [\"Bash(agent-cli ask:*)\"]}}");
    insta::assert_snapshot!(check(&world, 0, "permissions"), @"warning: the rule Bash(agent-cli ask:*) in [PROJECT]/.claude/settings.local.json denies agent-cli commands to agents");
    // Settings belong to a directory.
    world.file("sub/CLAUDE.md", "# Sub");
    let report = world.run(&["doctor", "--json", "--cwd", "sub"]).succeeds().json();
    let checks = report["checks"].as_array().expect("a list");
    let of = |name: &str| checks.iter().find(|check| check["name"] == name).expect(name)["message"].clone();
    assert_eq!(of("hooks"), "no settings disable hooks");
    assert!(of("convention").as_str().expect("a text").contains("sub/CLAUDE.md does not define _spawn_"));
    world.file("CLAUDE.md", "_spawn_ as you like");
    insta::assert_snapshot!(check(&world, 0, "convention"), @"ok: [PROJECT]/CLAUDE.md defines _spawn_");
    world.run(&["init", "--user", "--yes"]).succeeds();
    fs::remove_file(world.project().join("CLAUDE.md")).expect("it exists");
    insta::assert_snapshot!(check(&world, 0, "convention"), @"ok: [HOME]/.claude/CLAUDE.md defines _spawn_");
    world.run(&["uninit", "--user", "--yes"]).succeeds();
    insta::assert_snapshot!(check(&world, 0, "convention"), @"warning: [PROJECT]/CLAUDE.md does not exist, so nothing defines _spawn_");
    world.run(&["doctor", "--cwd", "nowhere"]).exits_with(2);
}

#[test]
fn a_mode_that_is_not_granted_is_named() {
    let world = healthy().without("CLAUDE_CONFIG_DIR").with("AGENT_CLI_PERMISSION_MODE", "bypassPermissions");
    // The answer depends on who runs the tests: the superuser is refused.
    let outcome = world.run(&["doctor"]);
    let refused =
        outcome.stdout.contains("problem  permission-mode: AGENT_CLI_PERMISSION_MODE=bypassPermissions is refused");
    assert_eq!(outcome.code(), Some(i32::from(refused)), "{outcome}");
    let world = world.with("IS_SANDBOX", "1");
    insta::assert_snapshot!(check(&world, 0, "permission-mode"), @"ok: chains start in permission mode bypassPermissions, unless an option sets another");
    home_file(&world, ".claude/settings.json", "{\"permissions\": {\"disableBypassPermissionsMode\": \"disable\"}}");
    insta::assert_snapshot!(check(&world, 0, "permission-mode"), @"warning: AGENT_CLI_PERMISSION_MODE=bypassPermissions has no effect: disableBypassPermissionsMode is set in [HOME]/.claude/settings.json, and claude silently uses the mode default");
}

#[test]
fn the_state_directory_is_looked_at() {
    let world = healthy();
    fs::write(world.state(), "a file").expect("writable");
    insta::assert_snapshot!(check(&world, 1, "state-directory"), @"problem: [STATE] (named by AGENT_CLI_STATE_DIR) cannot be created: [STATE] is not a directory");
    fs::remove_file(world.state()).expect("writable");
    fs::create_dir(world.state()).expect("writable");
    fs::set_permissions(world.state(), PermissionsExt::from_mode(0o755)).expect("own");
    insta::assert_snapshot!(check(&world, 0, "privacy"), @"warning: other users can read the state directory (mode 755), which contains conversations");
    insta::assert_snapshot!(check(&world, 0, "database"), @"ok: not created yet; the first chain creates it");
    assert_eq!(checks(&world, 0, "locks").len(), 1);
    assert_eq!(fs::read_dir(world.state()).expect("readable").count(), 0);
    fs::write(world.state().join("agent-cli.db"), "no database").expect("writable");
    insta::assert_snapshot!(check(&world, 1, "database"), @"problem: [STATE]/agent-cli.db is not a database of agent-cli");
    fs::remove_file(world.state().join("agent-cli.db")).expect("writable");
    world.run(&["ls"]).succeeds();
    let database = world.database();
    database.pragma_update(None, "user_version", 999).expect("writable");
    let found = check(&world, 1, "database");
    assert!(found.starts_with("problem: [STATE]/agent-cli.db has version 999"), "{found}");
}

#[test]
fn chains_tell_of_their_claude_and_their_pauses() {
    let world = healthy();
    world.file("root.md", "ask When?\nreply {result}\n");
    symlink(programs::stand_in(), world.project().join("claude")).expect("writable");
    world.run(&["spawn", "root.md", "--claude", "./claude", "--no-hooks"]).started();
    insta::assert_snapshot!(check(&world, 0, "recorded-claude"), @"ok: [PROJECT]/claude, with which 1 open chain was started, is unchanged");
    insta::assert_snapshot!(check(&world, 0, "pauses"), @"ok: 0 of the last 1 requests suspended their call: their chains were started with --no-hooks or --bare");
    insta::assert_snapshot!(check(&world, 0, "database"), @"ok: it can be opened and is intact");
    fs::remove_file(world.project().join("claude")).expect("writable");
    insta::assert_snapshot!(check(&world, 0, "recorded-claude"), @"warning: there is no program at [PROJECT]/claude: 1 open chain was started with it, and continue with another");
    let world = world.without("AGENT_CLI_CLAUDE").with("PATH", "/nonexistent");
    insta::assert_snapshot!(check(&world, 4, "recorded-claude"), @"problem: there is no program at [PROJECT]/claude: 1 open chain was started with it, and there is no other");
}

#[test]
fn an_agent_is_told_that_it_is_one() {
    let id = "0193e7b0-1c2d-4abc-8def-0123456789ff";
    let world = healthy().with("AGENT_CLI_AGENT_ID", id).with("AGENT_CLI_ATTEMPT", id);
    insta::assert_snapshot!(check(&world, 0, "caller"), @"warning: agent [ID1:8] started this command, so these checks see its environment");
}

#[test]
fn variables_that_agents_do_not_inherit_are_named() {
    let world = healthy().with("CLAUDE_CODE_SIMPLE", "a secret").with("CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS", "1");
    let world = world.with("CLAUDECODE", "1").with("ANTHROPIC_MODEL", "opus").with("DISABLE_SPRING", "1");
    insta::assert_snapshot!(check(&world, 0, "environment"), @"warning: agents do not inherit CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS, CLAUDE_CODE_SIMPLE, which could break a chain");
    let world = World::new().with("ANTHROPIC_API_KEY", "a secret");
    let settings = r#"{"env": {"CLAUDE_CODE_SAFE_MODE": "a secret", "CLAUDE_CODE_SHELL": "x"}}"#;
    home_file(&world, ".claude/settings.json", settings);
    insta::assert_snapshot!(check(&world, 0, "environment"), @"warning: [HOME]/.claude/settings.json sets CLAUDE_CODE_SAFE_MODE, which would break chains: agents run without it");
}

/// A rule that lets an agent call agent-cli must not let it run any program.
#[test]
fn an_agent_cannot_have_doctor_run_a_program() {
    let world = World::new();
    let evil = world.executable("evil.sh", "#!/bin/sh\ntouch \"$0.ran\"\necho '2.1.330 (Claude Code)'\n");
    let evil = evil.display().to_string();
    let calls = format!(
        "agent-cli doctor --claude {evil} 2>&1; AGENT_CLI_CLAUDE={evil} agent-cli doctor 2>&1; agent-cli doctor --json"
    );
    world.file("root.md", format!("run {calls}\nreply {{result}}\n"));
    let said = world.run(&["spawn", "root.md"]).stdout;
    assert!(!std::path::Path::new(&format!("{evil}.ran")).exists());
    assert_eq!(said.matches("agents cannot choose the claude program that doctor runs").count(), 2, "{said}");
    assert!(said.contains("\"found_by\": \"chain\"") || said.contains("\"found_by\":\"chain\""), "{said}");
}

#[test]
fn what_is_wrong_is_coloured() {
    let world = healthy();
    let shown = world.run(&["--color", "always", "doctor"]).stdout;
    assert!(shown.contains("\u{1b}[32mok\u{1b}[0m       claude: "), "{shown:?}");
    assert!(shown.contains("\u{1b}[33mwarning\u{1b}[0m  convention: "), "{shown:?}");
}

#[test]
fn a_session_that_can_use_agent_cli_is_checked() {
    let world = healthy();
    let found = |name: &str| checks(&world, 0, name);
    assert_eq!([found("plugin"), found("mcp"), found("trust")], [const { Vec::new() }; 3]);
    let conf = world.project().join("conf");
    let version = env!("CARGO_PKG_VERSION");
    let install = |version: &str| {
        let entry = json!([{"scope": "user", "version": version}]);
        let text = json!({"plugins": {"agent-cli@agent-cli": entry}}).to_string();
        world.file("conf/plugins/installed_plugins.json", text);
    };
    install(version);
    let ok = |text: String| vec![("ok".to_owned(), text)];
    assert_eq!(found("plugin"), ok(format!("agent-cli@agent-cli {version} is installed in Claude Code")));
    assert_eq!(found("trust").len(), 1);
    let project = fs::canonicalize(world.project()).expect("it is there");
    let server = json!({"command": "/usr/bin/agent-cli", "args": ["mcp"]});
    let projects = json!({(project.to_str().expect("text")): {"hasTrustDialogAccepted": true}});
    let known = json!({"mcpServers": {"chains": server, "other": {"command": "x"}}, "projects": projects});
    fs::write(conf.join(".claude.json"), known.to_string()).expect("writable");
    install("0.0.1");
    let outdated = format!("agent-cli@agent-cli is version 0.0.1, and this is agent-cli {version}");
    assert_eq!(found("plugin"), [("warning".to_owned(), outdated)]);
    let twice = "the plugin agent-cli@agent-cli and the MCP server chains offer the same tools twice";
    assert_eq!(found("mcp"), [("warning".to_owned(), twice.to_owned())]);
    assert_eq!(found("trust"), []);
    assert_eq!(found("mcp-tasks"), []);
    let world = world.with("CLAUDE_CODE_DISABLE_MCP_TASKS", "1");
    assert!(check(&world, 0, "mcp-tasks").starts_with("warning: CLAUDE_CODE_DISABLE_MCP_TASKS is set, so "));
}
