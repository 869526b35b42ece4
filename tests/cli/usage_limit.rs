//! An account that has reached its usage limit.

use jiff::{Timestamp, ToSpan};

use crate::gate::wait_until;
use crate::world::World;

const FAR: &str = "4102444800";

#[test]
fn a_limit_is_a_wait_that_costs_nothing() {
    let world = World::new();
    world.file("root.md", format!("limit {FAR}\n"));
    let outcome = world.run(&["spawn", "root.md"]);
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for the usage limit to reset at [TIME] (in [AGE])
    hint: after the limit has reset, agent-cli resume [ID1:8] continues it; agent-cli watch does so on its own
    hint: agent-cli resume [ID1:8] --now retries now
    --- exit status: 0
    ");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for the usage limit to reset at [TIME] (in [AGE])
    hint: after the limit has reset, agent-cli resume [ID1:8] continues it; agent-cli watch does so on its own
    hint: agent-cli resume [ID1:8] --now retries now
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 1);
    assert!(world.transcripts().is_empty(), "nothing was done that would be worth keeping");
}

#[test]
fn a_limit_that_is_lifted_is_over() {
    let world = World::new();
    world.file("root.md", "once limit 1\nreply ok\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("ok");
}

#[test]
fn one_that_is_lifted_at_once_is_met_once_in_a_run() {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nonce limit 1\nreply ok\n");
    let id = world.spawn_paused("root.md");
    assert_eq!(world.starts(), 1);
    world.run(&["resume", &id]).prints("ok");
}

#[test]
fn work_that_was_done_before_the_limit_is_not_repeated() {
    let world = World::new();
    let soon = (Timestamp::now() + 2.seconds()).as_second();
    world.file("root.md", format!("run echo worked >> marks\nonce limit {soon}\nreply ok\n"));
    let id = world.spawn_paused("root.md");
    wait_until("the limit is lifted", || world.run(&["resume", &id]).succeeds().stdout == "ok\n");
    assert_eq!(world.marks(), "worked\n");
    assert_eq!(world.starts(), 2);
}

#[test]
fn the_limit_of_the_account_blocks_the_whole_tree() {
    let world = World::new();
    world.file("root.md", "spawn limited.md &\nspawn other.md\nreply {results}\n");
    world.file("limited.md", format!("once limit {FAR}\nreply one\n"));
    world.file("other.md", "reply two\n");
    let outcome = world.run(&["spawn", "root.md", "--max-parallel", "1"]);
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID2:8] and 1 other wait for the usage limit to reset at [TIME] (in [AGE])
    hint: after the limit has reset, agent-cli resume [ID1:8] continues it; agent-cli watch does so on its own
    hint: agent-cli resume [ID1:8] --now retries now
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 2, "the other child uses the same account");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let tree = world.run(&["tree", &id]).stdout;
    assert_eq!(tree.matches("waits for the usage limit to reset").count(), 2, "{tree}");
    assert_eq!(world.starts(), 2);
    world.run(&["resume", &id, "--now"]).prints("one; two");
}

#[test]
fn a_chain_of_another_account_is_not_held() {
    let world = World::new();
    world.file("theirs.md", "ask When?\nreply {result}\n");
    let config = world.home().join("theirs");
    let spawned =
        world.command(["spawn", "theirs.md"]).with("CLAUDE_CONFIG_DIR", config.to_str().expect("UTF-8")).run();
    let theirs = spawned.started();
    world.file("root.md", format!("run agent-cli resume {theirs}\nspawn limited.md\nreply {{results}}\n"));
    world.file("limited.md", format!("once limit {FAR}\nreply one\n"));
    world.run(&["spawn", "root.md"]).started();
    world.answer("now");
    world.run(&["resume", &theirs]).prints("now");
}
