//! Settings: files, variables and options in layers, and what a project's file may set.

use std::fs;

use serde_json::Value;

use crate::inbox::shows;
use crate::world::{World, write_config};

/// Where a setting comes from, and its value.
fn setting(world: &World, key: &str) -> (String, Value) {
    let found = world.run(&["config", "get", key, "--json"]).json();
    (found["origin"].as_str().expect("an origin").to_owned(), found["value"].clone())
}

fn launch(world: &World) -> Value {
    let launch: String = world
        .database()
        .query_row("SELECT launch FROM frames ORDER BY rowid DESC LIMIT 1", [], |row| row.get(0))
        .unwrap();
    serde_json::from_str(&launch).unwrap()
}

fn limit(world: &World, name: &str) -> Value {
    let id = world.run(&["ls", "--all", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    world.run(&["show", &id, "--json"]).json()["limits"][name].clone()
}

#[test]
fn each_layer_counts_before_those_below_it() {
    let world = World::new();
    assert_eq!(setting(&world, "stop-grace"), ("default".into(), "1m".into()));
    write_config(&world, "stop-grace = '50s'\n");
    assert_eq!(setting(&world, "stop-grace"), ("user".into(), "50s".into()));
    world.file(".agent-cli.toml", "stop-grace = '40s'\n");
    assert_eq!(setting(&world, "stop-grace"), ("project".into(), "40s".into()));
    let world = world.with("AGENT_CLI_STOP_GRACE", "70s");
    assert_eq!(setting(&world, "stop-grace"), ("environment".into(), "1m 10s".into()));
    let world = world.with("AGENT_CLI_STOP_GRACE", "soon");
    let refused = world.run(&["config", "get", "stop-grace"]);
    refused.exits_with(2);
    assert!(refused.stderr.contains("AGENT_CLI_STOP_GRACE=soon is not a duration"), "{refused}");
}

#[test]
fn a_chain_starts_with_what_is_set_and_options_come_first() {
    let world = World::new();
    world.file("root.md", "reply done\n");
    let text = "[spawn]\nmodel = 'small'\ntimeout = '30m'\nclaude-args = ['--max-turns=5']\non-permission = 'ask'\n\
        [limits]\nmax-parallel = 2\nmax-budget-usd = 3\nnative-agents = 'off'\n";
    write_config(&world, text);
    world.run(&["spawn", "root.md"]).prints("done");
    let begun = launch(&world);
    assert_eq!((&begun["timeout"], &begun["on_permission"]), (&1800.into(), &"ask".into()), "{begun}");
    assert_eq!((&begun["args"], &begun["native_agents"]), (&serde_json::json!(["--max-turns=5"]), &0.into()));
    let started = world.log().starts.remove(0).argv.join(" ");
    assert!(started.contains("--model=small") || started.contains("--model small"), "{started}");
    assert_eq!((limit(&world, "max_parallel"), limit(&world, "max_budget_usd")), (2.into(), 3.0.into()));
    let options = ["--model", "large", "--on-permission", "deny", "--max-parallel", "3", "--", "--max-turns=7"];
    world.run(&[&["spawn", "root.md"][..], &options].concat()).prints("done");
    let begun = launch(&world);
    assert_eq!(begun["on_permission"], "deny");
    assert_eq!(begun["args"], serde_json::json!(["--max-turns=5", "--max-turns=7"]));
    assert_eq!(limit(&world, "max_parallel"), 3);
}

#[test]
fn a_project_cannot_widen_anything_until_it_is_trusted() {
    let world = World::new();
    let evil = world.executable("evil", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    world.file("root.md", "reply done\n");
    let text = format!(
        "claude = '{}'\n[spawn]\npermission-mode = 'bypassPermissions'\nmodel = 'theirs'\n[limits]\nmax-agents = 300\n\
         max-parallel = 1\n[on]\ndone = 'touch \"$HOME/ran\"'\n",
        evil.display()
    );
    world.file(".agent-cli.toml", &text);
    let spawned = world.run(&["spawn", "root.md"]);
    spawned.prints("done");
    assert!(spawned.stderr.contains("claude, spawn.permission-mode, limits.max-agents: ignored"), "{spawned}");
    assert!(spawned.stderr.contains("agent-cli config trust"), "{spawned}");
    assert!(!world.home().join("ran").exists());
    assert_eq!((limit(&world, "max_agents"), limit(&world, "max_parallel")), (256.into(), 1.into()));
    assert_eq!(launch(&world)["permission_mode"], Value::Null);
    assert_eq!(setting(&world, "spawn.model"), ("project".into(), "theirs".into()));

    let trusted = world.run(&["config", "trust", "--yes"]);
    trusted.succeeds();
    assert!(trusted.stderr.contains("spawn.permission-mode = \"bypassPermissions\""), "{trusted}");
    assert!(
        trusted.stderr.contains("`on.done`") && trusted.stderr.contains("only your own file can set it"),
        "{trusted}"
    );
    assert_eq!(setting(&world, "limits.max-agents"), ("project".into(), 300.into()));
    // A changed file is no longer trusted.
    world.file(".agent-cli.toml", format!("{text}\n"));
    assert_eq!(setting(&world, "limits.max-agents"), ("default".into(), 256.into()));
    world.run(&["config", "trust", "--yes"]).succeeds();
    world.run(&["config", "untrust"]).succeeds();
    assert_eq!(setting(&world, "limits.max-agents"), ("default".into(), 256.into()));
    let list = world.run(&["config", "--json"]).json();
    let ignored: Vec<_> = list["ignored"].as_array().unwrap().iter().map(|it| it["key"].clone()).collect();
    assert_eq!(ignored, ["claude", "spawn.permission-mode", "limits.max-agents", "on.done"]);
}

#[test]
fn a_file_that_was_changed_by_its_user_stays_trusted() {
    let world = World::new();
    world.run(&["config", "set", "--project", "limits.max-agents", "300"]).succeeds();
    assert_eq!(setting(&world, "limits.max-agents"), ("project".into(), 300.into()));
    world.run(&["config", "set", "--project", "spawn.permission-mode", "acceptEdits"]).succeeds();
    assert_eq!(setting(&world, "spawn.permission-mode"), ("project".into(), "acceptEdits".into()));
    world.file(".agent-cli.toml", "[limits]\nmax-agents = 400\n");
    let said = world.run(&["config", "set", "--project", "spawn.model", "x"]);
    said.succeeds();
    assert!(said.stderr.contains("you have not trusted the rest of that file"), "{said}");
    assert_eq!(setting(&world, "limits.max-agents"), ("default".into(), 256.into()));
    world.run(&["config", "set", "--project", "on.done", "x"]).exits_with(2);
}

#[test]
fn what_is_wrong_stops_new_chains_and_no_other() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.file(".agent-cli.toml", "[spawn]\nmodle = 'x'\ntimeout = 7\n");
    let refused = world.run(&["spawn", "root.md"]);
    refused.exits_with(2);
    assert!(refused.stderr.contains("unknown key `spawn.modle`: did you mean `spawn.model`?"), "{refused}");
    assert_eq!(world.starts(), 1);
    world.answer("now");
    let resumed = world.run(&["resume", &id]);
    resumed.prints("now");
    assert!(resumed.stderr.contains("did you mean `spawn.model`?"), "{resumed}");
    insta::assert_snapshot!(world.run(&["config", "get", "spawn.model"]), @r#"
    --- stderr
    warning: [PROJECT]/.agent-cli.toml: unknown key `spawn.modle`: did you mean `spawn.model`?
    warning: [PROJECT]/.agent-cli.toml: `spawn.timeout` is not a duration in quotes, such as "30m"
    error: spawn.model is not set
    hint: agent-cli config set spawn.model VALUE sets it
    --- exit status: 1
    "#);
    world.file(".agent-cli.toml", "[spawn\n");
    let refused = world.run(&["spawn", "root.md"]);
    refused.exits_with(2);
    assert!(refused.stderr.contains("is not TOML: line 1"), "{refused}");
}

#[test]
fn a_key_is_changed_and_the_rest_stays() {
    let world = World::new();
    let path = write_config(&world, "# mine\n[spawn]\nmodel = 'a' # cheap\n");
    world.run(&["config", "set", "spawn.model", "b"]).succeeds();
    world.run(&["config", "set", "spawn.claude-args", "--", "--max-turns=5", "--verbose"]).succeeds();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# mine\n[spawn]\nmodel = \"b\" # cheap\nclaude-args = [\"--max-turns=5\", \"--verbose\"]\n"
    );
    world.run(&["config", "unset", "spawn.claude-args"]).succeeds();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n[spawn]\nmodel = \"b\" # cheap\n");
    for (key, value) in [
        ("spawn.timeout", "soon"),
        ("limits.max-agents", "0"),
        ("limits.native-agents", "none"),
        ("spawn.worktree", "yes"),
    ] {
        world.run(&["config", "set", key, value]).exits_with(2);
    }
    let refused = world.run(&["config", "set", "spawn.modle", "x"]);
    refused.exits_with(2);
    assert!(refused.stderr.contains("a similar value exists: 'spawn.model'"), "{refused}");
    world.run(&["config", "get", "spawn.timeout"]).exits_with(1);
    world.run(&["config", "path"]).prints(path.to_str().unwrap());
}

#[test]
fn a_state_directory_can_be_configured() {
    let world = World::new().without("AGENT_CLI_STATE_DIR");
    let elsewhere = world.home().join("chains");
    write_config(&world, "state-dir = '~/chains'\n");
    world.file("root.md", "reply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    assert!(elsewhere.join("agent-cli.db").exists());
    assert_eq!(world.run(&["ls", "--all", "--json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_changes_no_settings_and_has_no_files() {
    let world = World::new();
    write_config(&world, "[limits]\nmax-agents = 7\n");
    for command in
        ["config trust", "config set spawn.model x", "config unset spawn.model", "config untrust", "config edit"]
    {
        world.file("root.md", format!("run agent-cli {command} 2>&1; echo $?\nreply {{result}}\n"));
        let said = world.run(&["spawn", "root.md"]);
        said.succeeds();
        assert!(said.stdout.contains("agents cannot change settings"), "{command}: {said}");
    }
    world.file("root.md", "run agent-cli config get limits.max-agents\nreply {result}\n");
    world.run(&["spawn", "root.md"]).prints("256");
}

#[test]
fn a_value_that_is_ignored_is_named_beside_the_one_that_counts() {
    let world = World::new();
    world.file(".agent-cli.toml", "[spawn]\npermission-mode = 'bypassPermissions'\n[limits]\nmax-agents = 300\n");
    insta::assert_snapshot!(world.run(&["config", "get", "limits.max-agents"]), @"
    256
    --- stderr
    warning: `limits.max-agents` in [PROJECT]/.agent-cli.toml is ignored: you have not trusted the file
    hint: read the file, then run agent-cli config trust
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["config", "get", "spawn.permission-mode"]), @"
    --- stderr
    warning: `spawn.permission-mode` in [PROJECT]/.agent-cli.toml is ignored: you have not trusted the file
    hint: read the file, then run agent-cli config trust
    error: spawn.permission-mode is not set
    --- exit status: 1
    ");
    let found = world.run(&["config", "get", "limits.max-agents", "--json"]).json();
    assert_eq!((&found["value"], &found["ignored"]["value"]), (&256.into(), &300.into()), "{found}");
    world.run(&["config", "trust", "--yes"]).succeeds();
    let found = world.run(&["config", "get", "limits.max-agents"]);
    found.prints("300");
    assert_eq!(found.stderr, "");
}

#[test]
fn a_value_that_something_else_takes_precedence_over_is_set_with_a_warning() {
    let world = World::new().with("AGENT_CLI_LINGER", "5s");
    let file = world.file(".agent-cli.toml", "[limits]\nmax-agents = 3\n");
    let said = |words: &[&str]| world.run(words).succeeds().stderr.clone();
    let over = |what: &str, key: &str| format!("warning: here, {what} sets {key}, and takes precedence\n");
    let linger = said(&["config", "set", "linger", "10s"]);
    assert!(linger.ends_with(&over("$AGENT_CLI_LINGER", "linger")), "{linger}");
    let most = said(&["config", "set", "limits.max-agents", "5"]);
    assert!(most.ends_with(&over(file.to_str().unwrap(), "limits.max-agents")), "{most}");
    for words in [&["config", "set", "limits.max-agents", "2"], &["config", "set", "spawn.model", "sonnet"]] {
        assert!(!said(words).contains("precedence"), "{}", said(words));
    }
}

#[test]
fn unsetting_what_is_not_set_succeeds() {
    let world = World::new();
    let path = write_config(&world, "[spawn]\nmodel = 'a'\n");
    let unset = || world.run(&["config", "unset", "spawn.model"]).succeeds().stderr.clone();
    assert_eq!(unset(), format!("removed spawn.model from {}\n", path.display()));
    assert_eq!(unset(), format!("spawn.model is not set in {}\n", path.display()));
    let project = world.run(&["config", "unset", "--project", "spawn.model"]);
    insta::assert_snapshot!(project, @"
    --- stderr
    spawn.model is not set in [PROJECT]/.agent-cli.toml
    --- exit status: 0
    ");
    assert!(!world.project().join(".agent-cli.toml").exists());
}

#[test]
fn editing_needs_an_editor_or_a_terminal() {
    let world = World::new().without("VISUAL").without("EDITOR");
    insta::assert_snapshot!(world.run(&["config", "edit"]), @"
    --- stderr
    error: cannot edit [HOME]/.config/agent-cli/config.toml: vi needs a terminal, and VISUAL and EDITOR name no other editor
    hint: agent-cli config set KEY VALUE changes a setting without an editor
    --- exit status: 2
    ");
    assert!(!world.home().join(".config/agent-cli").exists());
    let world = world.with("EDITOR", "no-such-editor");
    let refused = world.run(&["config", "edit", "--project"]);
    let path = world.project().join(".agent-cli.toml");
    let expected = format!("error: the editor (no-such-editor) was not found, so {} was not checked\n", path.display());
    assert!(refused.exits_with(1).stderr.contains(&expected), "{refused}");
    world.with("EDITOR", "echo \"color = 'never'\" >").run(&["config", "edit"]).succeeds();
}

#[test]
fn a_broken_file_is_reported_once() {
    let (with_state_dir, without) = (World::new(), World::new().without("AGENT_CLI_STATE_DIR"));
    for world in [with_state_dir, without] {
        world.file("root.md", "reply done\n");
        write_config(&world, "[spawn\n");
        for command in [
            "config", "config get spawn.model", "config set color never", "config trust", "config edit", "ls",
            "doctor", "spawn root.md", "resume --all", "notifications --test done", "gc --dry-run",
        ] {
            let said = world.run(&command.split(' ').collect::<Vec<_>>());
            let times = format!("{}{}", said.stdout, said.stderr).matches("is not TOML").count();
            assert_eq!(times, 1, "{command}: {said}");
        }
    }
}

#[test]
fn the_list_fits_a_terminal_and_stays_toml() {
    let world = World::new();
    let listed = world.command(["config"]).on_terminal(50).stdout;
    assert!(listed.starts_with("# $AGENT_CLI_CLAUDE\nclaude = "), "{listed}");
    assert!(listed.contains("# store is not set: the PostgreSQL server that\n#   records"), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 50 || line.contains(" = \"/")), "{listed}");
    listed.replace("\r\n", "\n").parse::<toml::Table>().expect("TOML");
    assert!(world.run(&["config"]).stdout.lines().any(|line| line.len() > 80), "unless it is not a terminal");
}

#[test]
fn a_person_sees_what_the_project_sets_before_it_is_trusted() {
    let world = World::new();
    let write = |most: u32| drop(world.file(".agent-cli.toml", format!("[limits]\nmax-agents = {most}\n")));
    write(300);
    insta::assert_snapshot!(world.run(&["config", "trust"]), @"
    --- stderr
    error: cannot ask whether to trust [PROJECT]/.agent-cli.toml: standard input is not a terminal
    hint: read the file; agent-cli config trust --yes trusts it without asking
    --- exit status: 2
    ");
    let limit = || setting(&world, "limits.max-agents").1;
    for (answer, shown, written, expected) in [("n\n", 300, 300, 256), ("y\n", 300, 400, 256), ("y\n", 400, 400, 400)] {
        let (trust, screen) = world.command(["config", "trust"]).start_on_screen(200, 24);
        shows(&screen, "[y/N]");
        assert!(screen.text().contains(&format!("limits.max-agents = {shown}")), "{}", screen.text());
        write(written);
        trust.types(answer);
        trust.ends();
        assert_eq!(limit(), expected, "{answer:?} to {shown}, then {written}");
    }
    write(300);
    assert_eq!(limit(), 256, "another content was trusted since");
}

#[test]
fn what_is_trusted_is_listed_even_if_a_variable_hides_it() {
    let world = World::new();
    world.file(".agent-cli.toml", "claude = '/tmp/other'\nlinger = '1s'\n");
    let world = world.with("AGENT_CLI_LINGER", "2s");
    let trusted = world.run(&["config", "trust", "--yes"]);
    assert!(trusted.stderr.contains("claude = \"/tmp/other\"\nlinger = \"1s\"\n"), "{trusted}");
}

#[test]
fn a_person_may_name_no_file() {
    let world = World::new().with("AGENT_CLI_CONFIG", "/dev/null");
    world.file("root.md", "reply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    let refused = world.run(&["config", "set", "limits.max-agents", "3"]);
    assert!(refused.exits_with(1).stderr.contains("/dev/null was not changed"), "{refused}");
    assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
}

#[test]
fn a_setting_that_no_command_could_use_is_refused_and_can_be_taken_back() {
    let world = World::new();
    let config = write_config(&world, "");
    for (setting, value, why) in [
        ("store", "garbage", "the address of the database is not valid"),
        ("labels", "x!y", "\"x!y\" is not a list of labels"),
        ("shared-directories", "relative", "\"relative\" is not a list of absolute paths"),
    ] {
        let refused = world.run(&["config", "set", setting, value]);
        assert!(refused.exits_with(2).stderr.starts_with(&format!("error: {why}")), "{refused}");
    }
    world.run(&["config", "set", "labels", "big,gpu"]).succeeds();
    world.run(&["config", "get", "labels"]).prints("big gpu");
    let written = "labels = [\"big\", \"gpu\"]\n";
    assert_eq!(fs::read_to_string(&config).expect("it is there"), written);
    world.run(&["config", "set", "labels", "[\"big\", 'gpu']"]).succeeds();
    assert_eq!(fs::read_to_string(&config).expect("it is there"), written);
    let address = "postgres://ann:secret@127.0.0.1:1/chains";
    let set = world.run(&["config", "set", "store", address]);
    assert!(set.succeeds().stderr.contains("set store to postgres://ann@127.0.0.1:1/chains in "), "{set}");
    let refused = world.run(&["ls"]);
    assert!(refused.exits_with(1).stderr.contains("agent-cli config unset store"), "{refused}");
    world.run(&["config", "path"]).succeeds();
    world.run(&["config"]).succeeds();
    world.run(&["config", "unset", "store"]).succeeds();
    world.run(&["ls"]).succeeds();
}

#[test]
fn every_command_warns_of_what_is_ignored_in_the_config_file() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let config = write_config(&world, "bogus = 1\n[on]\nquesiton = 'x'\n");
    for line in [
        &["ls"][..],
        &["questions"],
        &["resume", "--all"],
        &["resume", &id],
        &["show", &id],
        &["stop", &id, "--no-wait"],
        &["notifications"],
    ] {
        let told = world.run(line);
        for what in ["unknown key `bogus`", "unknown key `quesiton` in [on]"] {
            let warning = format!("warning: {}: {what}", config.display());
            assert_eq!(told.stderr.matches(&warning).count(), 1, "{line:?}: {told}");
        }
    }
}
