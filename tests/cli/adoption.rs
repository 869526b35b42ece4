//! Sessions that `agent-cli` did not start.

use crate::world::World;

const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";

#[test]
fn a_foreign_session_is_adopted_where_it_worked() {
    let world = World::new();
    world.file("root.md", "decide sign\nrun pwd\nreply {result}\n");
    world.foreign_session(SESSION, "root.md");
    let before = world.transcripts();
    world.file("sign", "now");

    world.command(["resume", SESSION]).within(&world.home()).run().prints(&world.project().display().to_string());
    let log = world.log();
    assert!(log.starts[1].value_of("--resume").is_some_and(|copy| copy.ends_with(&format!("{SESSION}.jsonl"))));
    assert_ne!(log.starts[1].session(), SESSION, "the agent has a session of its own");
    assert!(world.transcripts().contains(&before[0]), "the session itself is left as it is");
    world.run(&["resume", SESSION]).prints(&world.project().display().to_string());
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_foreign_session_waits_for_the_chain_that_it_started() {
    let world = World::new();
    world.file("top.md", "spawn child.md\nreply top: {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.foreign_session(SESSION, "top.md");
    assert_eq!(world.starts(), 2, "the session, and in its tool call the child");

    world.run(&["resume", SESSION]).succeeds();
    let starts = world.starts();
    world.run(&["resume", SESSION]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), starts, "what it waits for is known now, so asking costs nothing");
    world.answer("now");
    world.run(&["resume", SESSION]).prints("top: now");
}

#[test]
fn a_foreign_session_that_still_waits_goes_on_waiting() {
    let world = World::new();
    world.file("root.md", "decide sign\nreply {result}\n");
    world.foreign_session(SESSION, "root.md");
    world.run(&["resume", SESSION]).succeeds();
    world.file("sign", "now");
    world.run(&["resume", SESSION]).prints("now");
}

#[test]
fn a_person_says_how_a_foreign_session_is_started() {
    let world = World::new();
    world.file("root.md", "decide sign\nreply {result}\n");
    world.foreign_session(SESSION, "root.md");
    let options = ["--permission-mode", "acceptEdits", "--model", "opus", "--", "--max-turns=3"];
    world.command(["resume", SESSION].iter().chain(&options)).run().succeeds();
    world.run(&["resume", SESSION, "--permission-mode", "plan"]).succeeds();
    let log = world.log();
    let modes: Vec<_> = log.starts[1..].iter().map(|start| start.value_of("--permission-mode")).collect();
    assert_eq!(modes, [Some("acceptEdits"), Some("plan")]);
    assert_eq!(log.starts[1].value_of("--model"), Some("opus"));
    let turns: Vec<_> = log.starts[1..].iter().map(|start| start.value_of("--max-turns")).collect();
    assert_eq!(turns, [Some("3"), Some("2")], "it has used one");
}
