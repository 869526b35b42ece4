//! The meaning of an agent's last words.

use crate::world::World;

#[track_caller]
fn is_a_reply(text: &str) {
    let world = World::new();
    world.file("root.md", format!("end {text}\n"));
    world.run(&["spawn", "root.md"]).prints(text);
}

#[test]
fn a_reply_that_mentions_a_signal_is_a_reply() {
    is_a_reply("The child answered SGN_PEND_STARTED.");
    is_a_reply("> SGN_PEND_ONGOING");
    is_a_reply("SGN_PEND_STARTED means that it waits.");
    is_a_reply("SGN_RESUME");
}

#[test]
fn a_decorated_signal_is_a_signal() {
    for words in ["`SGN_PEND_STARTED`", "**SGN_PEND_STARTED**", "SGN_PEND_STARTED (abcd1234)", "SGN_PEND_ONGOING"] {
        let world = World::new();
        world.file("root.md", format!("end {words}\n"));
        world.run(&["spawn", "root.md"]).started();
    }
}

#[test]
fn a_reply_that_mentions_a_signal_reaches_the_parent_whole() {
    let world = World::new();
    world.file("parent.md", "spawn child.md\nreply [{result}]\n");
    world.file("child.md", "end It says SGN_PEND_STARTED (1234abcd) and waits.\n");
    world.run(&["spawn", "parent.md"]).prints("[It says SGN_PEND_STARTED (1234abcd) and waits.]");
}

#[test]
fn a_reply_may_be_large() {
    let world = World::new();
    world.file("parent.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "bigreply 1000000\n");
    let outcome = world.run(&["spawn", "parent.md"]);
    assert_eq!(outcome.succeeds().stdout.len(), 1_000_001);
}

#[test]
fn an_empty_reply_is_a_reply() {
    is_a_reply("");
}

#[test]
fn what_the_program_tells_people_is_not_on_standard_output() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.started();
    insta::assert_snapshot!(outcome, @r"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["resume", &outcome.started()]), @r"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
}

#[test]
fn a_pause_can_be_recognised_by_the_exit_code() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md", "--exit-code"]);
    outcome.exits_with(75);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id, "--exit-code"]).exits_with(75);
    world.answer("now");
    world.run(&["resume", &id, "--exit-code"]).prints("now");
}
