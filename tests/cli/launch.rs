//! How `claude` is started: the same way every time.

use uuid::Uuid;

use crate::world::World;

#[test]
fn the_model_that_a_session_began_with_is_named_ever_after() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md", "--model", "opus"]).started();
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let log = world.log();
    let models: Vec<_> = log.starts.iter().map(|start| start.value_of("--model")).collect();
    assert_eq!(models, [Some("opus"), Some("claude-opus-4-8")]);
}

#[test]
fn a_model_that_nobody_named_is_named_too() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let log = world.log();
    let models: Vec<_> = log.starts.iter().map(|start| start.value_of("--model")).collect();
    assert_eq!(models, [None, Some("claude-opus-4-8")]);
}

#[test]
fn options_hold_for_every_attempt_and_every_child() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nask When?\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let options = ["--permission-mode", "acceptEdits", "--", "--max-turns", "9"];
    let id = world.command(["spawn", "root.md"].iter().chain(&options)).run().started();
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let log = world.log();
    assert_eq!(log.starts.len(), 4);
    assert!(log.starts.iter().all(|start| start.value_of("--permission-mode") == Some("acceptEdits")));
    // Each agent has its own, and a pause gives nothing back.
    let turns: Vec<_> = log.starts.iter().map(|start| start.value_of("--max-turns")).collect();
    assert_eq!(turns, [Some("9"), Some("9"), Some("6"), Some("4")]);
}

#[test]
fn a_child_of_an_agent_in_plan_mode_is_in_plan_mode() {
    for world in [World::new(), World::with_hooks()] {
        world.file("root.md", "mode plan\nspawn child.md\nask When?\nspawn child.md\nreply {mode} {results}\n");
        world.file("child.md", "reply {mode}\n");
        let id = world.run(&["spawn", "root.md", "--permission-mode", "acceptEdits"]).started();
        world.answer("now");
        let reply = world.run(&["resume", &id]).succeeds().stdout.clone();
        assert_eq!(reply.matches("plan").count(), 3, "{reply}");
    }
}

#[test]
fn an_agent_in_plan_mode_starts_none_in_a_wider_mode() {
    let world = World::with_hooks();
    world.file("root.md", "mode plan\nrun agent-cli spawn child.md --permission-mode acceptEdits\nreply {result}\n");
    world.file("child.md", "reply {mode}\n");
    let reply = world.run(&["spawn", "root.md", "--permission-mode", "acceptEdits"]).succeeds().stdout.clone();
    assert!(reply.contains("--permission-mode acceptEdits"), "{reply}");
    assert_eq!(world.log().starts.len(), 1);
}

#[test]
fn a_permission_mode_can_come_from_the_environment() {
    let world = World::new().with("AGENT_CLI_PERMISSION_MODE", "acceptEdits");
    world.file("root.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
    world.run(&["spawn", "root.md", "--permission-mode", "plan"]).prints("ok");
    let log = world.log();
    let modes: Vec<_> = log.starts.iter().map(|start| start.value_of("--permission-mode")).collect();
    assert_eq!(modes, [Some("acceptEdits"), Some("plan")]);
}

#[test]
fn an_agent_cannot_widen_its_childs_rights_through_the_environment() {
    let world = World::new();
    world.file("root.md", "run AGENT_CLI_PERMISSION_MODE=bypassPermissions agent-cli spawn child.md\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).succeeds();
    let log = world.log();
    assert!(log.starts.iter().all(|start| start.value_of("--permission-mode").is_none_or(|mode| mode == "default")));
}

#[test]
fn arguments_that_the_program_decides_about_are_refused() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let refused = |argument: &str| {
        let outcome = world.run(&["spawn", "root.md", "--", argument]);
        outcome.exits_with(2);
        outcome.to_string()
    };
    insta::assert_snapshot!(refused("--resume"), @"
    --- stderr
    error: agent-cli sets --resume itself
    hint: leave it out
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("--session-id=x"), @"
    --- stderr
    error: agent-cli sets --session-id itself
    hint: leave it out
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("--model=opus"), @r"
    --- stderr
    error: --model is an option of agent-cli too: give it before the --
    hint: agent-cli spawn --model VALUE FILE
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
}

#[test]
fn an_agent_cannot_give_more_rights_than_it_has() {
    let world = World::new();
    world.file("root.md", "spawn child.md --permission-mode bypassPermissions\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(outcome, @"
    Exit code 2
    error: an agent cannot start another with wider permissions than its own (--permission-mode bypassPermissions)
    hint: leave it out
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 1);
}

#[test]
fn an_agent_knows_its_frame_and_no_other_session() {
    let world = World::new().with("CLAUDECODE", "1").with("CLAUDE_CODE_SESSION_ID", "of somebody else");
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    for start in &world.log().starts {
        assert_eq!(start.env("AGENT_CLI_AGENT_ID"), Some(id.as_str()));
        let attempt = start.env("AGENT_CLI_ATTEMPT").expect("an attempt has an id");
        assert!(attempt.parse::<Uuid>().is_ok() && attempt != start.session(), "{attempt}");
        assert_eq!(start.env("CLAUDECODE"), None);
        assert_eq!(start.env("CLAUDE_CODE_SESSION_ID"), None);
    }
}

#[test]
fn an_agent_inherits_of_claude_codes_variables_those_on_the_list() {
    let inherited = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_OAUTH_TOKEN"];
    let dropped = ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_OF_NEXT_YEAR"];
    let names = inherited.into_iter().chain(dropped);
    let world = names.fold(World::new(), |world, name| world.with(name, "x"));
    world.file("root.md", "reply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    for start in &world.log().starts {
        assert_eq!(inherited.map(|name| start.env(name)), [Some("x"); 2]);
        assert_eq!(dropped.map(|name| start.env(name)), [None; 2]);
    }
}

#[test]
fn a_poll_needs_no_environment() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let world = world.without("PATH").without("HOME").without("AGENT_CLI_CLAUDE");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn agents_find_the_same_programs_under_cron() {
    let world = World::new();
    world.file("root.md", "ask When?\nrun helper\nreply {result}\n");
    world.executable("bin/helper", "#!/bin/sh\necho helped\n");
    let path = format!("{}:/usr/bin:/bin", world.project().join("bin").display());
    let id = world.command(["spawn", "root.md"]).with("PATH", &path).run().started();
    world.answer("now");
    world.command(["resume", &id]).with("PATH", "/usr/bin:/bin").run().prints("helped");
}

#[test]
fn who_is_asked_about_approvals_is_a_matter_of_the_root() {
    let world = World::new();
    world.file("root.md", "run agent-cli spawn child.md --on-permission ask\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: an agent cannot start another with wider permissions than its own (--on-permission ask)
    hint: leave it out
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--on-permission", "ask", "--no-hooks"]), @"
    --- stderr
    error: --on-permission ask does not work with --no-hooks or --permission-prompt-tool
    hint: leave one of them out
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--on-permission", "maybe"]), @"
    --- stderr
    error: invalid value 'maybe' for '--on-permission <WHAT>'
      [possible values: deny, ask]

    For more information, try '--help'.
    --- exit status: 2
    ");
    world.run(&["spawn", "child.md", "--on-permission", "ask"]).prints("ok");
}

/// What an agent without any permission tries for its child.
fn asked_by_an_agent(call: &str) -> (World, String) {
    let world = World::new();
    world.file("root.md", format!("{call}\nreply {{result}}\n"));
    world.file("child.md", "reply ok\n");
    let said = world.run(&["spawn", "root.md"]).to_string();
    (world, said)
}

#[test]
fn no_option_of_a_child_is_hidden_in_the_value_of_another() {
    for smuggled in [
        "--disallowedTools '--settings={\"permissions\":{\"allow\":[\"Bash\"]}}' --disallowedTools=Foo",
        "--append-system-prompt --dangerously-skip-permissions",
        "--append-system-prompt=--bare",
        "--disallowed-tools -- --settings=x",
        "--effort -d",
    ] {
        let (world, said) = asked_by_an_agent(&format!("spawn child.md -- {smuggled}"));
        assert!(said.contains("begins with a dash"), "{smuggled}: {said}");
        assert_eq!(world.starts(), 1);
    }
}

#[test]
fn a_child_works_outside_only_where_its_parent_could() {
    for (mode, starts) in [("default", 1), ("bypassPermissions", 3)] {
        let world = World::new();
        let child = world.file("child.md", "reply ok\n");
        world.file("root.md", format!("spawn {} --cwd /\nreply {{result}}\n", child.display()));
        let said = world.run(&["spawn", "root.md", "--permission-mode", mode]).to_string();
        assert_eq!(said.contains("cannot start one outside it"), starts == 1, "{said}");
        assert_eq!(world.starts(), starts);
    }
    let (world, said) = asked_by_an_agent("spawn --prompt x --cwd / --permission-mode plan");
    assert!(said.contains("cannot start one outside it"), "{said}");
    assert_eq!(world.starts(), 1);
}

#[test]
fn the_rules_of_an_agent_are_entries_of_its_settings() {
    let world = World::new();
    let folder = "{a,b} [c] (d) *";
    let path = world.file(format!("{folder}/a.md) Bash(*"), "reply ok\n");
    world.run(&["spawn", &path.to_string_lossy()]).prints("ok");
    let log = world.log();
    let [.., rule] = log.starts[0].allowed.as_slice() else { panic!("no rules") };
    assert_eq!(log.starts[0].allowed.len(), 12, "{:?}", log.starts[0].allowed);
    assert!(rule.ends_with(r"/\\{a,b\\} \\[c\\] \(d\) \\*/a.md\) Bash\(\\*)"), "{rule}");
    assert!(log.starts[0].argv.iter().all(|arg| !arg.contains("Bash")), "{:?}", log.starts[0].argv);
}

#[test]
fn instructions_that_no_rule_is_for_are_refused_unless_no_rule_is_needed() {
    let world = World::new();
    world.file("what?.md", "reply ok\n");
    world.file("inner/kept", "");
    let named = ["spawn", "../what?.md", "--cwd", "."];
    let within = |more: &[&str]| world.command([&named, more].concat()).within(&world.project().join("inner")).run();
    insta::assert_snapshot!(within(&[]), @r"
    --- stderr
    error: an agent would need an approval to read [PROJECT]/what?.md
    hint: rename it: Claude Code cannot allow a path that contains ?, or a name that ends in a space, a dot or \
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
    within(&["--permission-mode", "bypassPermissions"]).prints("ok");
    world.run(&["spawn", "what?.md"]).prints("ok");
    world.file("blank /a.md", "reply ok\n");
    world.run(&["spawn", "blank /a.md"]).exits_with(2);
}

#[test]
fn a_word_behind_the_dashes_that_is_no_option_is_refused() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    world.file("second.md", "reply ok\n");
    let refused = |arguments: &[&str]| {
        let outcome = world.run(&[["spawn", "root.md", "--"].as_slice(), arguments].concat());
        outcome.exits_with(2);
        outcome.to_string()
    };
    insta::assert_snapshot!(refused(&["second.md"]), @"
    --- stderr
    error: second.md is not an option of claude
    hint: to start a second agent, give its file before the --
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--allowedTools", "Bash", "second.md"]), @"
    --- stderr
    error: second.md is neither an option of claude nor a value of --allowedTools
    hint: to start a second agent, give its file before the --; to give --allowedTools another value, repeat it: --allowedTools=VALUE
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--verbose", "second.md"]), @"
    --- stderr
    error: second.md is not an option of claude
    hint: to start a second agent, give its file before the --
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--of-next-year", "second.md"]), @"
    --- stderr
    error: agent-cli does not know --of-next-year, and cannot tell whether second.md is its value
    hint: if it is, write --of-next-year=second.md; to start a second agent, give its file before the --
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--", "second.md"]), @"
    --- stderr
    error: -- is not an option of claude
    hint: give -- only once
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--max-turns"]), @"
    --- stderr
    error: --max-turns needs a value
    hint: write --max-turns=VALUE
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--max-turns", "nope"]), @"
    --- stderr
    error: --max-turns takes a number, not nope
    hint: write --max-turns=NUMBER, with a number above 0
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&["--worktree"]), @"
    --- stderr
    error: --worktree is an option of agent-cli too: give it before the --
    hint: agent-cli spawn --worktree FILE
    --- exit status: 2
    ");
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), serde_json::json!([]));
    let (world, said) = asked_by_an_agent("spawn child.md -- --max-turns 3 second.md");
    assert!(said.contains("second.md is not an option of claude"), "{said}");
    assert_eq!(world.starts(), 1);
}

#[test]
fn the_command_that_is_hinted_after_a_limit_keeps_all_other_options() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let deny = "--disallowedTools=Bash(touch:*)";
    let id = world.run(&["spawn", "root.md", "--", "--max-turns=1", deny]).started();
    world.answer("now");
    let limited = world.run(&["resume", &id]);
    let hint = limited.stderr.lines().find_map(|line| line.strip_prefix("hint: agent-cli "));
    let hint = hint.unwrap_or_else(|| panic!("{limited}"));
    let command = hint.split(" continues").next().unwrap();
    let line = format!("\"$0\" {command}");
    let program = crate::programs::agent_cli().display().to_string();
    world.program("sh", ["-c", &line, &program]).run().prints("now");
    let args = world.run(&["show", &id, "--json"]).json()["launch"]["args"].clone();
    assert_eq!(args, serde_json::json!(["--max-turns=2", deny]), "{hint}");
}
