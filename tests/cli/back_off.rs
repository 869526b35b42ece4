//! Chains whose agents cannot be started, or fail: they are retried after growing pauses, and a person is notified once.

use crate::outcome::Outcome;
use crate::world::{World, write_config};

/// A chain that could continue. Its person is notified of failures, a line each in `told`.
fn answered(program: &str) -> (World, String) {
    let world = World::new();
    write_config(&world, "[on]\nfailed = 'echo \"$AGENT_CLI_MESSAGE\" >> \"$HOME/told\"'\n");
    world.file("root.md", program);
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    (world, id)
}

fn notified(world: &World) -> String {
    std::fs::read_to_string(world.home().join("told")).unwrap_or_default()
}

fn without_claude(world: &World, args: &[&str]) -> Outcome {
    world.command(args).with("AGENT_CLI_CLAUDE", "/nonexistent/claude").run()
}

/// Ends the pause of every agent.
fn pause_is_over(world: &World) {
    let database = world.database();
    database.execute("UPDATE frames SET since = since - 7200000", []).expect("it can be written");
}

#[test]
fn a_chain_that_cannot_be_started_backs_off_and_everybody_says_so() {
    let (world, id) = answered("ask When?\nreply {result}\n");
    let all = without_claude(&world, &["resume", "--all"]);
    all.exits_with(4);
    let waits = format!("{} retry at ", &id[..8]);
    assert!(all.stdout.starts_with(&waits) && all.stdout.contains("(1 failed so far): there is no program"), "{all}");
    assert!(all.stderr.contains("error: there is no program at /nonexistent/claude"), "{all}");
    assert!(all.stderr.contains("hint: install Claude Code"), "{all}");
    let listed = world.run(&["ls"]).succeeds().stdout.clone();
    assert!(listed.contains("  retry at ") && listed.contains("  for a retry at "), "{listed}");
    assert!(!listed.contains("can continue"), "{listed}");
    let again = without_claude(&world, &["resume", "--all"]);
    assert_eq!((again.succeeds().stdout.as_str(), again.stderr.as_str()), ("", ""), "it is not tried every minute");
    pause_is_over(&world);
    let later = without_claude(&world, &["resume", "--all", "--json"]);
    later.exits_with(4);
    assert_eq!((&later.json()["status"], &later.json()["waiting_on"][0]["tries"]), (&"ongoing".into(), &2.into()));
    assert_eq!(notified(&world), "there is no program at /nonexistent/claude\n");
    // The person has fixed it.
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn so_does_one_whose_directory_is_gone() {
    let world = World::new();
    write_config(&world, "[on]\nfailed = 'echo \"$AGENT_CLI_MESSAGE\" >> \"$HOME/told\"'\n");
    world.file("sub/there", "");
    world.file("root.md", "spawn --cwd sub child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let sub = world.project().join("sub");
    std::fs::rename(&sub, world.project().join("away")).expect("it is there");
    for exit in [1, 0, 0] {
        world.run(&["resume", "--all"]).exits_with(exit);
    }
    assert!(notified(&world).starts_with("the working directory does not exist: "), "{}", notified(&world));
    assert_eq!(notified(&world).lines().count(), 1);
    std::fs::rename(world.project().join("away"), &sub).expect("it is away");
    pause_is_over(&world);
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, format!("{} done: Jan 1st\n", &id[..8]));
}

#[test]
fn an_agent_that_refuses_after_its_question_expired_is_started_once() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli ask 'When?' --expires 3d\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let database = world.database();
    let sql = "UPDATE requests SET detail = json_replace(detail, '$.ask.expires_at', '2026-01-01T00:00:00Z')";
    database.execute(sql, []).expect("it can be written");
    let refused =
        |args: &[&str]| world.command(args).with("STAND_IN_REFUSES", "Not logged in · Please run /login").run();
    let all = refused(&["resume", "--all"]);
    all.exits_with(4);
    assert_eq!((world.starts(), all.stderr.matches("error: ").count()), (2, 1), "{all}");
    refused(&["resume", "--all"]).succeeds();
    assert_eq!(world.starts(), 2);
    // A person who asks for it is obeyed.
    refused(&["resume", &id]).exits_with(4);
    assert_eq!(world.starts(), 3);
}

#[test]
fn an_agent_that_dies_twice_in_a_row_backs_off() {
    let (world, id) = answered("ask When?\nrun true\nunless fixed die 9\nreply fixed\n");
    world.run(&["resume", "--all"]).exits_with(1);
    assert_eq!(notified(&world), "", "once may be chance");
    assert!(world.run(&["ls"]).succeeds().stdout.contains("can continue"));
    world.run(&["resume", "--all"]).exits_with(1);
    assert_eq!(notified(&world), "claude was killed by signal 9\n");
    world.run(&["resume", "--all"]).succeeds();
    let starts = world.starts();
    pause_is_over(&world);
    world.run(&["resume", "--all"]).exits_with(1);
    assert_eq!(world.starts(), starts + 1);
    world.file("fixed", "");
    // A person who asks for it is obeyed.
    world.run(&["resume", &id]).prints("fixed");
}
