//! An account that is over its usage limit.

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
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for its usage limit, until [TIME]
    --- exit status: 0
    ");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for its usage limit, until [TIME]
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
fn work_that_was_done_before_the_limit_is_not_repeated() {
    let world = World::new();
    let soon = (Timestamp::now() + 2.seconds()).as_second();
    world.file("root.md", format!("run echo worked >> marks\nonce limit {soon}\nreply ok\n"));
    let id = world.spawn_paused("root.md");
    wait_until("the limit is lifted", || world.run(&["resume", &id]).succeeds().stdout == "ok\n");
    assert_eq!(std::fs::read_to_string(world.project().join("marks")).expect("a mark"), "worked\n");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_limit_without_a_time_is_a_refusal() {
    let world = World::new();
    world.file("root.md", "once refuse API Error: Request rejected (429) · rate limit\nreply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(4);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: API Error: Request rejected (429) · rate limit ([ID1:8])
    hint: agent-cli resume [ID1] carries on; nothing is lost
    --- exit status: 4
    ");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
}
