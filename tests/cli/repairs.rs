//! Chains that could never work: they are not recorded, can be repaired, and can be removed.

use serde_json::json;

use crate::world::World;

fn with_task() -> World {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    world
}

fn nothing_is_recorded(world: &World) {
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), json!([]));
}

#[test]
fn what_claude_would_refuse_is_not_recorded() {
    let world = with_task();
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--permission-mode", "yolo"]), @"
    --- stderr
    error: option '--permission-mode <mode>' argument 'yolo' is invalid. Allowed choices are plan, default.
    hint: nothing was recorded: give another --permission-mode, or none
    --- exit status: 4
    ");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--", "--no-such-option"]), @"
    --- stderr
    error: unknown option '--no-such-option'
    hint: nothing was recorded: give other arguments after --; claude --help lists them
    --- exit status: 4
    ");
    let asked = world.command(["spawn", "root.md"]).with("AGENT_CLI_PERMISSION_MODE", "yolo").run();
    asked.exits_with(4);
    assert_eq!(world.starts(), 0);
    nothing_is_recorded(&world);
    // An option of next year is for claude to judge.
    world.run(&["spawn", "root.md", "--", "--of-next-year=x"]).prints("ok");
}

#[test]
fn what_claude_refuses_before_any_work_does_not_stay_recorded() {
    let world = with_task().with("STAND_IN_REFUSES", "error: option '--effort <level>' argument 'x' is invalid.");
    world.file("other.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md", "other.md", "--", "--effort", "x"]);
    outcome.exits_with(4);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: option '--effort <level>' argument 'x' is invalid.
    hint: nothing was recorded: give other arguments after --; claude --help lists them
    --- exit status: 4
    ");
    nothing_is_recorded(&world);
    let world = with_task().with("STAND_IN_REFUSES", "Not logged in · Please run /login");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    --- stderr
    error: Not logged in · Please run /login ([ID1:8])
    hint: run claude and log in with /login, or set ANTHROPIC_API_KEY; then agent-cli resume [ID1:8]
    --- exit status: 4
    ");
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_program_that_is_not_claude_begins_nothing() {
    let world = with_task();
    let file = world.executable("claude", "#!/bin/sh\necho 'cat (GNU coreutils) 9.1'\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--claude", &file.to_string_lossy()]), @"
    --- stderr
    error: [PROJECT]/claude is not Claude Code: it answers --version with: cat (GNU coreutils) 9.1
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
    for program in ["/bin/true", "/bin/cat", "/bin", "/etc/passwd"] {
        world.run(&["spawn", "root.md", "--claude", program]).exits_with(4);
    }
    nothing_is_recorded(&world);
}

#[test]
fn a_chain_is_started_otherwise_from_now_on() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nask When?\nreply {result}\n");
    world.file("child.md", "ask What?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let options = ["--permission-mode", "plan", "--model", "claude-haiku-4-5", "--", "--max-turns", "5"];
    world.command(["resume", &id].iter().chain(&options)).run().succeeds();
    world.answer("this");
    world.run(&["resume", &id]).succeeds();
    let log = world.log();
    let start = log.starts.last().expect("agents were started");
    assert_eq!(start.value_of("--permission-mode"), Some("plan"));
    assert_eq!(start.value_of("--max-turns"), Some("5"));
    assert_eq!(start.value_of("--model"), Some("claude-haiku-4-5"));
    let child = world.run(&["tree", &id, "--json"]).json()[1]["id"].as_str().expect("a child").to_owned();
    world.command(["resume", &child, "--model", "opus"]).run().exits_with(2);
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    insta::assert_snapshot!(world.run(&["resume", &id, "--model", "opus"]), @"
    --- stderr
    error: [ID1:8] is done: it starts no more agents
    hint: agent-cli resume [ID1:8] --prompt TEXT continues it
    --- exit status: 2
    ");
    world.run(&["resume", &id, "--prompt", "Once more.", "--model", "opus", "--", "--max-turns", "9"]).succeeds();
    let log = world.log();
    let start = log.starts.last().expect("it was started");
    assert_eq!((start.value_of("--model"), start.value_of("--max-turns")), (Some("opus"), Some("9")));
}

#[test]
fn an_agent_does_not_change_how_it_is_started() {
    let world = World::new();
    world.file("root.md", "run agent-cli resume abcd --permission-mode bypassPermissions\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: agents cannot use --now or change how claude is started
    hint: leave it out
    --- exit status: 0
    ");
    world.file("root.md", "run agent-cli rm abcd --yes\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: agents cannot remove chains
    hint: ask a person to do it
    --- exit status: 0
    ");
}

#[test]
fn a_chain_is_removed_when_a_person_says_so() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let asked = world.run(&["rm", &id[..8]]);
    asked.exits_with(2);
    insta::assert_snapshot!(asked, @"
    --- stderr
    error: cannot ask whether to remove root.md ([ID1:8]; asks, agents: 1): standard input is not a terminal
    hint: agent-cli rm [ID1:8] --yes removes it without asking
    --- exit status: 2
    ");
    let removed = world.run(&["rm", &id[..8], "--yes", "--json"]).json();
    assert_eq!(removed["removed"]["id"], id.as_str());
    nothing_is_recorded(&world);
    world.run(&["rm", &id, "--yes"]).exits_with(3);
    assert!(!world.state().join("frames").join(&id).exists());
}

#[test]
fn an_option_of_claude_stands_behind_the_dashes() {
    let world = with_task();
    let outcome = world.run(&["spawn", "root.md", "--max-turns", "5"]);
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: --max-turns is an option of claude, not of agent-cli
    hint: options of claude go after --, as in agent-cli spawn FILE -- --max-turns
    --- exit status: 2
    ");
}
