//! `init` and `uninit`, and warnings about instructions that agents would not understand.

use std::fs;

use serde_json::json;

use crate::inbox::shows;
use crate::programs;
use crate::world::World;

fn claude_md(world: &World) -> Option<String> {
    fs::read_to_string(world.project().join("CLAUDE.md")).ok()
}

#[test]
fn a_newcomer_sets_up_a_project_and_takes_it_back() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["init"]), @"
    --- stderr
    error: cannot ask whether to change [PROJECT]/CLAUDE.md: standard input is not a terminal
    hint: agent-cli init --yes changes it without asking, --dry-run shows how
    --- exit status: 2
    ");
    assert_eq!(claude_md(&world), None);
    insta::assert_snapshot!(world.run(&["init", "--yes"]), @"
    wrote [PROJECT]/CLAUDE.md
    wrote [PROJECT]/hello.md
    --- stderr
    hint: agent-cli spawn hello.md starts an agent that asks you a question
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["init"]), @"
    unchanged [PROJECT]/CLAUDE.md
    --- exit status: 0
    ");
    let printed = world.run(&["init", "--print"]).succeeds().stdout.clone();
    assert!(claude_md(&world).expect("it was written").contains(&printed));
    insta::assert_snapshot!(world.run(&["uninit"]), @"
    --- stderr
    error: cannot ask whether to change [PROJECT]/CLAUDE.md: standard input is not a terminal
    hint: agent-cli uninit --yes changes it without asking, --dry-run shows how
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["uninit", "--yes"]), @"
    removed [PROJECT]/CLAUDE.md
    removed [PROJECT]/hello.md
    --- exit status: 0
    ");
    assert_eq!(fs::read_dir(world.project()).expect("a folder").count(), 0);
    insta::assert_snapshot!(world.run(&["uninit"]), @"
    unchanged [PROJECT]/CLAUDE.md
    --- exit status: 0
    ");
    assert!(!world.state().exists());
}

#[test]
fn the_first_task_asks_what_can_be_answered() {
    let world = World::with_hooks();
    world.run(&["init", "--yes"]).succeeds();
    let task = fs::read_to_string(world.project().join("hello.md")).expect("it was written");
    let asks = task.lines().find_map(|line| line.strip_prefix("1. _ask_ ")).expect("it asks").replace('`', "");
    world.file("root.md", format!("run agent-cli ask {}\nreply {{result}}\n", asks.trim_end_matches('.')));
    let id = world.spawn_paused("root.md");
    let asked = world.run(&["questions", "--json"]).json();
    assert_eq!(asked[0]["options"].as_array().expect("a list").len(), 2, "{asked}");
    world.answer("1");
    world.run(&["resume", &id]).prints("red");
}

#[test]
fn a_person_sees_the_change_and_is_asked() {
    let world = World::new();
    world.file("CLAUDE.md", "# Mine\n");
    for answer in ["\n", "n\n", "perhaps\n"] {
        let (init, screen) = world.command(["init"]).start_on_screen(100, 60);
        shows(&screen, "[y/N]");
        let text = screen.text();
        assert!(text.contains(" \u{2502} +| action | do |") && text.contains("hello.md"), "{text}");
        init.types(answer);
        let outcome = init.ends();
        outcome.exits_with(2);
        assert!(outcome.stdout.contains("nothing was changed"), "{outcome}");
    }
    assert_eq!(claude_md(&world).as_deref(), Some("# Mine\n"));
    for (command, answer) in [("init", "y\n"), ("uninit", "y\n")] {
        let (running, screen) = world.command([command]).start_on_screen(40, 20);
        shows(&screen, "[y/N]");
        running.types(answer);
        running.ends().succeeds();
    }
    assert_eq!(claude_md(&world).as_deref(), Some("# Mine\n"));
}

#[test]
fn what_was_written_while_a_person_was_asked_stays() {
    let world = World::new();
    let (init, screen) = world.command(["init"]).start_on_screen(200, 24);
    shows(&screen, "[y/N]");
    world.file("CLAUDE.md", "# Mine\n");
    init.types("y\n");
    let outcome = init.ends();
    outcome.exits_with(1);
    assert!(outcome.stdout.contains("was changed in the meantime: nothing was written"), "{outcome}");
    assert_eq!(claude_md(&world).as_deref(), Some("# Mine\n"));
}

#[test]
fn a_dry_run_and_json_say_what_changes() {
    let world = World::new();
    let dry = world.run(&["init", "--dry-run"]);
    let text = world.named(&dry.succeeds().stdout);
    assert!(
        text.starts_with("[PROJECT]/CLAUDE.md\n   1 \u{2502} +<!-- begin agent-cli: agent-cli init wrote this, "),
        "{text}"
    );
    assert!(text.ends_with("\nwould write [PROJECT]/CLAUDE.md\nwould write [PROJECT]/hello.md\n"), "{text}");
    let [file, task] = ["CLAUDE.md", "hello.md"].map(|name| world.project().join(name));
    let of = |change: &str, task: Option<&std::path::Path>, dry_run: bool| json!({"file": file, "change": change, "defined_in": null, "task": task, "dry_run": dry_run});
    assert_eq!(world.run(&["init", "--dry-run", "--json"]).json(), of("added", Some(&task), true));
    assert_eq!(claude_md(&world), None);
    assert_eq!(world.run(&["init", "--yes", "--json"]).json(), of("added", Some(&task), false));
    assert_eq!(world.run(&["init", "--json"]).json(), of("unchanged", None, false));
    world.file("CLAUDE.md", claude_md(&world).expect("it was written").replace("action", "deed"));
    assert_eq!(world.run(&["init", "--yes", "--json"]).json(), of("updated", None, false));
    assert_eq!(world.run(&["uninit", "--dry-run", "--json"]).json(), of("deleted", Some(&task), true));
    world.run(&["uninit", "--json"]).exits_with(2);
    assert_eq!(world.run(&["uninit", "--yes", "--json"]).json(), of("deleted", Some(&task), false));
    let home = world.home().join(".claude/CLAUDE.md");
    let user = world.run(&["init", "--user", "--yes", "--json"]).json();
    assert_eq!((&user["file"], &user["task"]), (&json!(home), &json!(null)));
    let here = world.run(&["init", "--json"]).json();
    assert_eq!((&here["change"], &here["defined_in"]), (&json!("unchanged"), &json!(home)));
    insta::assert_snapshot!(world.run(&["init"]), @"
    unchanged [PROJECT]/CLAUDE.md
    --- stderr
    agents here are already told by [HOME]/.claude/CLAUDE.md
    hint: agent-cli init --print prints the text, if this project should have its own
    --- exit status: 0
    ");
    assert_eq!(world.run(&["uninit", "--user", "--yes", "--json"]).json()["change"], "deleted");
    assert!(!home.exists());
}

#[test]
fn files_that_cannot_be_changed_are_named_with_what_helps() {
    let world = World::new();
    world.file("CLAUDE.md", "a\n<!-- end agent-cli -->\n");
    insta::assert_snapshot!(world.run(&["init", "--yes"]), @"
    --- stderr
    error: [PROJECT]/CLAUDE.md: line 2 ends a section of agent-cli that does not begin
    hint: remove the lines that begin with `<!-- begin agent-cli` or `<!-- end agent-cli`, and what belongs to them
    --- exit status: 2
    ");
    world.file("CLAUDE.md", "_spawn_ means `agent-cli spawn`\n");
    insta::assert_snapshot!(world.run(&["init", "--yes"]), @"
    unchanged [PROJECT]/CLAUDE.md
    --- stderr
    warning: [PROJECT]/CLAUDE.md defines some words of instruction files, but not `_ask_` and `_wait_`
    hint: remove that text, then run agent-cli init; agent-cli init --print shows all of it
    --- exit status: 0
    ");
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let world = World::new();
    world.file("CLAUDE.md", "# Mine\n");
    let limited = format!("ulimit -f 0; exec {} init --yes", programs::agent_cli().display());
    let outcome = world.program("/bin/sh", ["-c", limited.as_str()]).run();
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    assert!(outcome.stderr.contains("CLAUDE.md was not changed: File too large"), "{outcome}");
    assert_eq!(claude_md(&world).as_deref(), Some("# Mine\n"));
    assert_eq!(fs::read_dir(world.project()).expect("a folder").count(), 1, "nothing else is left");
}

#[test]
fn agents_do_not_change_what_agents_are_told() {
    let world = World::new();
    for command in ["init --yes", "init --print", "uninit --yes"] {
        world.file("root.md", format!("run agent-cli {command} 2>&1\nreply {{result}}\n"));
        let said = world.run(&["spawn", "root.md"]);
        assert!(said.succeeds().stdout.contains("agents cannot change what all agents are told"), "{command}: {said}");
    }
    assert_eq!(claude_md(&world), None);
}

#[test]
fn a_word_that_nothing_defines_is_a_warning_for_people_alone() {
    let world = World::new();
    world.file("ins1.md", "end _spawn_ `ins2.md`.\n");
    let outcome = world.run(&["spawn", "ins1.md"]);
    insta::assert_snapshot!(outcome, @"
    _spawn_ `ins2.md`.
    --- stderr
    warning: CLAUDE.md does not define `_spawn_`, which ins1.md uses
    hint: agent-cli init writes it
    --- exit status: 0
    ");
    let estimated = world.run(&["spawn", "ins1.md", "--estimate"]);
    assert!(estimated.stderr.contains("does not define `_spawn_`"), "{estimated}");
    world.file("sub/x", "");
    let elsewhere = world.run(&["spawn", "ins1.md", "--cwd", "sub"]).stderr.clone();
    let elsewhere = world.named(&elsewhere);
    assert!(elsewhere.contains("hint: agent-cli init writes it: run it in [PROJECT]/sub\n"), "{elsewhere}");
    world.file("top.md", "spawn ins1.md 2>&1\nreply {result}\n");
    assert!(!world.run(&["spawn", "top.md"]).stderr.contains("warning"), "an agent's request is not checked");
    world.run(&["init", "--yes"]).succeeds();
    assert_eq!(world.run(&["spawn", "ins1.md"]).stderr, "");
    assert_eq!(world.run(&["spawn", "ins1.md", "--cwd", "sub"]).stderr, "", "instructions above apply, too");
}

#[test]
fn settings_that_claude_code_ignores_are_a_warning() {
    let world = World::new();
    world.file(".claude/settings.json", "{\"permissions\": {\"deny\": [\"Bash\"],}}");
    world.file("root.md", "reply done\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    done
    --- stderr
    warning: [PROJECT]/.claude/settings.json is not JSON (line 1, column 35): Claude Code silently ignores the whole file
    hint: fix [PROJECT]/.claude/settings.json
    --- exit status: 0
    ");
}

#[test]
fn settings_that_are_no_files_hold_up_nothing() {
    let world = World::with_hooks();
    world.file("root.md", "reply done\n");
    for (made, name) in [
        ("mkfifo", ".claude/settings.json"),
        ("mkfifo", ".claude/settings.local.json"),
        ("mkfifo", ".mcp.json"),
        ("ln -s /dev/zero", ".claude/settings.json"),
    ] {
        world.file(name, "");
        let made = world.program("sh", ["-c", &format!("rm {name} && {made} {name}")]).run();
        made.succeeds();
        world.run(&["spawn", "root.md"]).prints("done");
        world.run(&["resume", "--all"]).succeeds();
        let checked = world.run(&["doctor"]);
        assert!(name == ".mcp.json" || checked.stdout.contains("it is not a regular file"), "{name}: {checked}");
        fs::remove_file(world.project().join(name)).expect("it was made");
    }
}

#[test]
fn a_folder_of_questions_is_made() {
    let world = World::new();
    world.file("root.md", "reply done\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "root.md", "--questions-dir", "new/q", "--estimate"]).succeeds();
    assert!(!world.project().join("new").exists());
    world.run(&["spawn", "root.md", "--questions-dir", "new/q"]).succeeds();
    assert!(world.project().join("new/q").is_dir());
    let id = world.spawn_paused("asks.md");
    world.run(&["resume", &id, "--questions-dir", "later"]).succeeds();
    assert!(world.project().join("later").is_dir());
    world.file("agent.md", "run agent-cli spawn root.md --questions-dir of-an-agent 2>&1\nreply {result}\n");
    world.run(&["spawn", "agent.md"]);
    assert!(!world.project().join("of-an-agent").exists());
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--questions-dir", "root.md"]), @"
    --- stderr
    error: --questions-dir is [PROJECT]/root.md, but it is not a directory
    --- exit status: 2
    ");
}

/// A stand-in for `claude plugin`, which logs its arguments.
fn with_plugins(world: World) -> World {
    let text = "#!/bin/sh\n[ \"$1\" = plugin ] && echo \"$@\" >> \"$HOME/plugins\" && exit $(cat \"$HOME/code\" 2>/dev/null || echo 0)\n\
                echo '2.1.330 (Claude Code)'\n";
    let claude = world.executable("claude", text);
    world.with("AGENT_CLI_CLAUDE", claude.display().to_string())
}

#[test]
fn the_plugin_is_registered_by_claude_itself() {
    let world = with_plugins(World::new());
    let plugins = || fs::read_to_string(world.home().join("plugins")).unwrap_or_default();
    let dry = world.run(&["init", "--plugin", "--dry-run"]);
    insta::assert_snapshot!(dry, @"
    would write [STATE]/plugin
    would run [PROJECT]/claude plugin marketplace add [STATE]/plugin
    would run [PROJECT]/claude plugin install agent-cli@agent-cli
    --- exit status: 0
    ");
    assert!(!world.state().exists() && plugins().is_empty());
    world.run(&["init", "--plugin"]).exits_with(2);
    let (init, screen) = world.command(["init", "--plugin"]).start_on_screen(100, 20);
    shows(&screen, "[y/N]");
    init.types("n\n");
    assert!(init.ends().exits_with(2).stdout.contains("nothing was changed"));
    assert!(!world.state().exists() && plugins().is_empty());

    assert!(world.run(&["init", "--plugin", "--yes"]).succeeds().stdout.contains("the plugin is installed"));
    let folder = world.state().join("plugin");
    let manifest = folder.join("plugins/agent-cli/.claude-plugin/plugin.json");
    assert!(manifest.exists() && folder.join(".claude-plugin/marketplace.json").exists());
    let add = format!("plugin marketplace add {}\nplugin install agent-cli@agent-cli\n", folder.display());
    assert_eq!(plugins(), add);
    // An update writes the files again.
    fs::write(&manifest, "{}").expect("writable");
    world.run(&["init", "--plugin", "--yes"]).succeeds();
    assert!(fs::read_to_string(&manifest).expect("it is there").contains("version"));
    world.run(&["fsck"]).succeeds();

    fs::remove_file(world.home().join("plugins")).expect("it is there");
    assert!(world.run(&["uninit", "--plugin", "--yes"]).succeeds().stdout.contains("the plugin was removed"));
    assert_eq!(plugins(), "plugin uninstall agent-cli@agent-cli\nplugin marketplace remove agent-cli\n");
    assert!(!folder.exists());

    world.run(&["init", "--plugin", "--yes"]).succeeds();
    fs::write(world.home().join("code"), "1").expect("writable");
    let failed = world.run(&["uninit", "--plugin", "--yes"]);
    assert!(failed.exits_with(1).stderr.contains("but claude plugin uninstall agent-cli@agent-cli failed"), "{failed}");
    assert!(!folder.exists());
    let failed = world.run(&["init", "--plugin", "--yes"]);
    assert!(failed.exits_with(1).stderr.contains("claude plugin marketplace add"), "{failed}");
}
