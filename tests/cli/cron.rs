//! Chains that are started in a shell and resumed by cron, which knows little of its environment.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::programs;
use crate::world::World;

/// A world whose state directory is the default one, so that cron finds it.
fn world() -> World {
    World::new().without("AGENT_CLI_STATE_DIR")
}

fn settings(env: &Value) -> Value {
    json!({"disableAllHooks": true, "env": env})
}

/// The report on cron.
#[track_caller]
fn report(world: &World, code: i32) -> Value {
    let outcome = world.run(&["doctor", "--cron", "--json"]);
    outcome.exits_with(code);
    assert!(!outcome.stdout.contains("secret"), "{outcome}");
    outcome.json()
}

/// The only check of this name.
#[track_caller]
fn check(world: &World, code: i32, name: &str) -> String {
    let report = report(world, code);
    let checks = report["checks"].as_array().expect("a list").iter();
    let mut found = checks.filter(|check| check["name"] == name && check["message"] != Value::Null);
    let check = found.next().expect(name);
    assert_eq!(found.next(), None);
    world.named(&format!("{}: {}", check["status"].as_str().unwrap(), check["message"].as_str().unwrap()))
}

/// The log output of a command of the crontab.
fn run_by_cron(world: &World, line: &str) -> String {
    let command = line.strip_prefix("*/5 * * * * ").expect("every five minutes").replace("\\%", "%");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &command]).current_dir(world.home()).env_clear();
    let variables = [("LOGNAME", "ann"), ("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")];
    let status = shell.envs(variables).env("HOME", world.home()).status().expect("there is a shell");
    assert!(status.success());
    fs::read_to_string(world.home().join("chain.log")).expect("there is a log")
}

#[test]
fn a_login_in_the_environment_only_is_a_problem() {
    let world = world().with("ANTHROPIC_API_KEY", "a secret");
    world.run(&["doctor"]).succeeds();
    insta::assert_snapshot!(check(&world, 1, "login"), @"problem: the login exists only in this shell's environment (ANTHROPIC_API_KEY)");
    let outcome = world.run(&["doctor", "--cron"]);
    let text = world.named(&outcome.exits_with(1).stdout);
    assert!(!text.contains("secret"));
    let lines = text.lines().filter(|line| ["space:", "file-system:"].iter().all(|check| !line.contains(check)));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    ok       claude: [STAND-IN] is Claude Code 2.1.330 (found by AGENT_CLI_CLAUDE)
    ok       version: calls can be suspended: agents wait inside a tool call, without a process
    warning  path: cron's PATH (/usr/bin:/bin) has no claude, which only a new chain needs
             hint: a spawn from cron needs --claude PATH; resume uses the one that the chain was started with
    problem  login: the login exists only in this shell's environment (ANTHROPIC_API_KEY)
             hint: put it into "env" in [HOME]/.claude/settings.json, or into the crontab
    ok       environment: no other variable of this shell matters to agents
    ok       settings: readable settings files: 1
    warning  hooks: disableAllHooks is set in [HOME]/.claude/settings.json: calls are not suspended, agents pause with signals
             hint: remove it to suspend calls; signals work too
    ok       retention: Claude Code keeps transcripts for its default time; agent-cli keeps copies
    ok       permissions: no rule denies agent-cli commands
    ok       permission-mode: chains start in Claude Code's default permission mode, unless an option sets another
    warning  convention: [PROJECT]/CLAUDE.md does not exist, so nothing defines _spawn_
             hint: agent-cli init writes it
    ok       state-directory: [HOME]/.local/state/agent-cli (the platform's), which does not exist yet
    ok       database: not created yet; the first chain creates it
    for the crontab:
             ANTHROPIC_API_KEY=VALUE
             */5 * * * * [BIN]/agent-cli resume --all >> [HOME]/chain.log 2>&1
    1 problem, 3 warnings
    "#);
    assert!(!world.home().join(".local").exists());
}

#[test]
fn a_login_that_lasts_is_found_by_cron() {
    for lasting in [
        settings(&json!({"ANTHROPIC_API_KEY": "a secret"})),
        json!({"apiKeyHelper": "echo a secret"}),
        settings(&json!({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "a secret"})),
    ] {
        let world = world().with("ANTHROPIC_API_KEY", "a secret");
        world.user_settings(&lasting);
        let report = report(&world, 0);
        assert_eq!(report["checks"].as_array().unwrap().iter().filter(|check| check["status"] == "problem").count(), 0);
    }
    let world = world();
    world.user_settings(&settings(&json!({"ANTHROPIC_API_KEY": "a secret"})));
    insta::assert_snapshot!(check(&world, 0, "login"), @"ok: found ANTHROPIC_API_KEY in [HOME]/.claude/settings.json (not tested)");
    let world = world.with("ANTHROPIC_AUTH_TOKEN", "a secret");
    insta::assert_snapshot!(check(&world, 0, "login"), @"warning: this shell logs in with ANTHROPIC_AUTH_TOKEN, but cron would log in with ANTHROPIC_API_KEY in [HOME]/.claude/settings.json");
    let world = world.without("ANTHROPIC_AUTH_TOKEN");
    world.user_settings(&settings(&json!({"ANTHROPIC_API_KEY": ""})));
    insta::assert_snapshot!(check(&world, 1, "login"), @"problem: no login found");
}

#[test]
fn what_only_this_shell_has_is_named() {
    let world = world().with("HTTPS_PROXY", "http://secret@proxy").with("ANTHROPIC_BASE_URL", "http://secret");
    let world = world.with("EDITOR", "vi").with("CLAUDE_CONFIG_DIR", "conf").with("CLAUDE_CODE_SESSION_ID", "x");
    fs::create_dir(world.project().join("conf")).expect("writable");
    fs::write(world.project().join("conf/.credentials.json"), "a secret").expect("writable");
    insta::assert_snapshot!(check(&world, 0, "environment"), @"warning: only this shell's environment has HTTPS_PROXY");
    insta::assert_snapshot!(check(&world, 0, "configuration"), @"warning: CLAUDE_CONFIG_DIR is set to [PROJECT]/conf only in this shell: chains keep it, but a spawn from cron would not have it");
    insta::assert_snapshot!(check(&world, 0, "login"), @"ok: found conf/.credentials.json (not tested)");
    assert_eq!(report(&world, 0)["cron"]["variables"], json!(["HTTPS_PROXY"]));
    let world = world.without("HTTPS_PROXY");
    insta::assert_snapshot!(check(&world, 0, "environment"), @"ok: chains keep ANTHROPIC_BASE_URL, which a spawn from cron would not have; no other variable of this shell matters to agents");
    // This shell's claude is the one that chains have a record of.
    insta::assert_snapshot!(check(&world, 0, "claude"), @"ok: [STAND-IN] is Claude Code 2.1.330 (found by AGENT_CLI_CLAUDE)");
}

#[test]
fn the_example_works_under_cron() {
    let home = World::new();
    let state = home.home().join("it's 50% full");
    let world = home.with("AGENT_CLI_STATE_DIR", &state).with("ANTHROPIC_API_KEY", "a secret");
    world.user_settings(&settings(&json!({"ANTHROPIC_API_KEY": "a secret"})));
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let line = report(&world, 1)["cron"]["line"].as_str().expect("a line").to_owned();
    assert!(line.contains(programs::agent_cli().to_str().unwrap()), "{line}");
    let log = run_by_cron(&world, &line);
    assert_eq!(log, "", "nothing can continue");
    world.answer("tomorrow");
    let log = run_by_cron(&world, &line);
    assert!(log.contains(&format!("{} done: tomorrow\n", &id[..8])), "{log}");
    let found = report(&world, 1);
    let mut checks = found["checks"].as_array().unwrap().iter();
    let elsewhere = checks.find(|check| check["status"] == "problem").unwrap();
    assert_eq!(elsewhere["name"], "state-directory");
}

/// What the first `spawn` in a state directory reports about the login.
fn warning(world: &World, arguments: &[&str]) -> String {
    // There may be none yet.
    let _ = fs::remove_dir_all(world.state());
    let outcome = world.run(arguments);
    outcome.succeeds();
    assert!(!outcome.stderr.contains("secret") && !outcome.stdout.contains("login"), "{outcome}");
    let lines: Vec<_> = outcome.stderr.lines().skip_while(|line| !line.contains("login")).collect();
    world.named(&lines.join("\n"))
}

#[test]
fn a_chain_that_waits_says_that_its_login_is_in_the_environment_only() {
    let world = World::new().with("ANTHROPIC_API_KEY", "a secret");
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.file("done.md", "reply ok\n");
    insta::assert_snapshot!(warning(&world, &["spawn", "root.md"]), @r#"
    warning: the login exists only in this shell's environment (ANTHROPIC_API_KEY): agent-cli resume from cron would not have it
    hint: put it into "env" in [HOME]/.claude/settings.json, or into the crontab; agent-cli doctor --cron checks
    "#);
    assert!(!world.run(&["spawn", "root.md"]).stderr.contains("login"), "it is said once");
    assert!(!warning(&world, &["spawn", "root.md", "--json"]).is_empty());
    assert_eq!(warning(&world, &["-q", "spawn", "root.md"]), "");
    assert_eq!(warning(&world, &["spawn", "done.md"]), "", "nobody resumes it");
    let given = r#"--settings={"env": {"ANTHROPIC_AUTH_TOKEN": "x"}}"#;
    assert_eq!(warning(&world, &["spawn", "root.md", "--", given]), "");
    world.file(".claude/settings.local.json", r#"{"apiKeyHelper": "echo x"}"#);
    assert_eq!(warning(&world, &["spawn", "root.md"]), "");
    fs::remove_file(world.project().join(".claude/settings.local.json")).expect("it is there");
    fs::write(world.home().join(".claude/.credentials.json"), "x").expect("writable");
    assert_eq!(warning(&world, &["spawn", "root.md"]), "");
    fs::remove_file(world.home().join(".claude/.credentials.json")).expect("it is there");
    world.user_settings(&settings(&json!({"ANTHROPIC_API_KEY": "x"})));
    assert_eq!(warning(&world, &["spawn", "root.md"]), "");
    let world = world.without("ANTHROPIC_API_KEY");
    world.user_settings(&json!({"disableAllHooks": true}));
    assert_eq!(warning(&world, &["spawn", "root.md"]), "", "there is no login at all");
    let world = world.with("CLAUDE_CODE_USE_BEDROCK", "1").with("AWS_BEARER_TOKEN_BEDROCK", "a secret");
    let said = warning(&world, &["spawn", "root.md"]);
    assert!(said.contains("only in this shell's environment (AWS_BEARER_TOKEN_BEDROCK): "), "{said}");
}
