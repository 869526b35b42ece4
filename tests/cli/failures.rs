//! Failing agents: who is told, and how to continue.

use crate::world::World;

#[test]
fn a_parent_is_told_that_its_child_failed_and_why() {
    let world = World::new();
    world.file("parent.md", "spawn child.md\nreply I was told: {result}\n");
    world.file("child.md", "fail API Error: 400 boom\n");
    world.run(&["spawn", "parent.md"]).prints("I was told: failed: API Error: 400 boom");
    let log = world.log();
    insta::assert_snapshot!(world.named(&log.starts[2].prompt), @r"
    SGN_RESUME

    result of `agent-cli spawn [PROJECT]/child.md` ([ID1:8]), which failed:
    API Error: 400 boom
    ");
}

#[test]
fn a_root_that_fails_can_be_tried_again() {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nonce fail API Error: 400 boom\nreply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: API Error: 400 boom ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");

    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn a_failure_in_the_middle_is_tried_again_as_long_as_nobody_was_told() {
    let world = World::new();
    world.file("top.md", "spawn middle.md\nreply top: {result}\n");
    world.file("middle.md", "once fail boom\nreply fine\n");
    world.run(&["spawn", "top.md"]).prints("top: failed: boom");
}

#[test]
fn an_agent_that_is_killed_carries_on_where_it_stopped() {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nonce die 9\nreply ok\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    let log = world.log();
    assert_eq!(log.starts.len(), 2);
    insta::assert_snapshot!(world.named(&log.starts[1].prompt), @r"
    SGN_RESUME

    Your last turn was cut short: claude was killed by signal 9. Carry on where you stopped.
    ");
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn an_agent_that_always_dies_is_not_started_again_and_again() {
    let world = World::new();
    world.file("root.md", "run true\ndie 9\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: claude was killed by signal 9 before the agent had finished ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    assert_eq!(world.starts(), 1, "one command tries once");
}

#[test]
fn an_agent_that_dies_before_it_works_has_lost_nothing() {
    let world = World::new();
    world.file("root.md", "once die 9\nreply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: claude was killed by signal 9 before the agent had finished ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
}

#[test]
fn an_agent_that_fails_in_a_later_turn_prints_no_earlier_reply() {
    let world = World::new();
    world.file("ins.md", "reply fine\nfail boom\n");
    world.run(&["spawn", "ins.md"]).prints("fine");
    let id = world.log().starts[0].session()[..8].to_owned();
    let failed = world.run(&["resume", &id, "--prompt", "next"]);
    failed.exits_with(1);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("boom"), "{failed}");
    let json = world.run(&["resume", &id, "--json"]).json();
    assert!(json["status"] == "failed" && json["reply"].is_null() && json["errors"][0]["message"] != "", "{json:#}");
}

#[test]
fn a_refused_resume_keeps_the_answer() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    // As if claude had been logged out in the meantime: the same program, without the instructions.
    let outcome = world.command(["resume", &id]).with("STAND_IN_REFUSES", "Not logged in · Please run /login").run();
    outcome.exits_with(4);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: Not logged in · Please run /login ([ID1:8])
    hint: run claude and log in with /login, or set ANTHROPIC_API_KEY; then agent-cli resume [ID1:8]
    --- exit status: 4
    ");
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn a_failed_branch_costs_nothing_while_another_waits() {
    let world = World::new();
    world.file("root.md", "spawn asks.md &\nspawn fails.md\nreply {results}\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.file("fails.md", "unless fixed fail boom\nreply fine\n");
    let outcome = world.run(&["spawn", "root.md"]);
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID2:8] waits for an answer to [ID3:8]: When?
    hint: agent-cli answer [ID3:8] ANSWER, then agent-cli resume [ID1:8]
    error: boom ([ID4:8])
    hint: agent-cli resume [ID4:8] retries it
    --- exit status: 0
    ");
    let starts = world.starts();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), starts, "a poll costs nothing");

    world.file("fixed", "");
    let frames = world.run(&["tree", &id, "--json"]).json();
    let failed = frames.as_array().unwrap().iter().find(|frame| frame["status"] == "failed").unwrap();
    world.run(&["resume", failed["id"].as_str().unwrap()]).prints("fine");
    world.answer("now");
    world.run(&["resume", &id]).prints("now; fine");
}

#[test]
fn an_agent_that_does_not_know_what_to_do_has_failed() {
    let world = World::new();
    world.file("root.md", "end SGN_UNHANDLED\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: the agent ended with SGN_UNHANDLED ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
}

#[test]
fn a_failure_that_the_parent_was_told_of_is_the_parents_to_handle() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nask What now?\nreply {result}\n");
    world.file("child.md", "fail API Error: 400 boom\n");
    let paused = world.run(&["spawn", "root.md"]);
    let id = paused.started();
    assert!(!paused.stderr.contains("boom"), "{paused}");
    world.answer("nothing");
    world.run(&["resume", &id]).prints("nothing");
}
