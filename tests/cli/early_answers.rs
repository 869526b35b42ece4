//! A result is available before the `claude` of its agent has ended: the same run continues with it.

use std::fs;

use rustix::process::Signal;

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::world::World;

/// A world whose agents are held up between their suspended call and their end.
fn lingering() -> (World, Gate) {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    let path = world.project().join("gate");
    (world.with("STAND_IN_LINGERS", path), gate)
}

/// Starts `root.md`, and waits until its agent has made its requests but has not ended.
fn asked<'a>(world: &'a World, gate: &Gate) -> Running<'a> {
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn
}

#[test]
fn an_answer_is_delivered_by_the_same_run() {
    let (world, gate) = lingering();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    gate.open_for_one();
    let outcome = spawn.ends();
    outcome.prints("early");
    assert_eq!((outcome.stderr.as_str(), world.starts()), ("", 2));
}

#[test]
fn another_resume_leaves_it_to_that_run() {
    let (world, gate) = lingering();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    spawn.ends().prints("early");
}

#[test]
fn a_runner_that_was_halted_delivers_it_when_it_goes_on() {
    let (world, gate) = lingering();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawn = asked(&world, &gate);
    spawn.signal(Signal::STOP);
    gate.open_for_one();
    wait_until("the agent ends", || !world.log().starts[0].is_alive());
    world.answer("early");
    spawn.signal(Signal::CONT);
    spawn.ends().prints("early");
}

#[test]
fn so_does_the_run_that_finds_the_runner_dead() {
    let (world, gate) = lingering();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    spawn.kill();
    spawn.ends();
    gate.open_for_one();
    let start = world.log().starts.remove(0);
    wait_until("the agent ends", || !start.is_alive());
    // On a server, the process that guards it ends a moment later.
    wait_until("it continues", || world.run(&["resume", start.session()]).succeeds().stdout == "early\n");
    assert_eq!(world.starts(), 2);
}

#[test]
fn what_is_still_open_is_waited_for() {
    let (world, gate) = lingering();
    world.file("root.md", "ask First? ++ ask Second?\nreply {results}\n");
    let spawn = asked(&world, &gate);
    world.answer_to("First?", "one");
    gate.open_for_one();
    let id = spawn.ends().started();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1);
    world.answer("two");
    world.run(&["resume", &id]).prints("one; two");
}

#[test]
fn all_questions_of_a_message_may_be_answered_early() {
    let (world, gate) = lingering();
    world.file("root.md", "ask First? ++ ask Second?\nreply {results}\n");
    let spawn = asked(&world, &gate);
    world.answer_to("First?", "one");
    world.answer_to("Second?", "two");
    gate.open_for_one();
    spawn.ends().prints("one; two");
}

#[test]
fn a_file_may_be_there_by_then() {
    let (world, gate) = lingering();
    world.file("root.md", "wait --file sign\nreply {result}\n");
    let spawn = asked(&world, &gate);
    let sign = world.file("sign", "");
    let id = world.log().starts[0].session().to_owned();
    // This one sees the file.
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    spawn.ends().prints(&format!("it exists: {}", sign.display()));
}

#[test]
fn children_may_be_over_by_then() {
    for (children, replies) in [("spawn a.md", vec!["A"]), ("spawn a.md b.md", vec!["A", "B"])] {
        let (world, gate) = lingering();
        world.file("root.md", format!("{children}\nreply {{results}}\n"));
        world.file("a.md", "reply A\n");
        world.file("b.md", "reply B\n");
        let spawn = asked(&world, &gate);
        let listed = world.run(&["tree", "--json"]).json();
        let child = listed[1]["id"].as_str().expect("a child or a group").to_owned();
        world.run(&["resume", &child]).succeeds();
        gate.open_for_one();
        let outcome = spawn.ends();
        outcome.succeeds();
        assert!(replies.iter().all(|reply| outcome.stdout.contains(reply)), "{outcome}");
        assert!(!outcome.stdout.contains("SGN_"), "{outcome}");
    }
}

#[test]
fn an_agent_that_chats_after_it_asked_is_woken_with_an_early_answer() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask When? &\nhold gate &\nreply I asked, and I tell you so.\nreply {results}\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    gate.open_for_one();
    spawn.ends().prints("early");
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_agent_that_has_read_the_answer_itself_is_not_told_it_again() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask When? &\nhold gate &\nrun agent-cli resume {id} > seen &\nreply I have seen it.\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    gate.open_for_one();
    spawn.ends().prints("I have seen it.");
    assert_eq!(fs::read_to_string(world.project().join("seen")).expect("it was run"), "early\n");
    assert_eq!(world.starts(), 1);
}

#[test]
fn an_agent_that_died_after_it_read_the_answer_is_told_it_again() {
    let world = World::new();
    let gate = world.gate("gate");
    world
        .file("root.md", "ask When? &\nhold gate &\nrun agent-cli resume {id} > seen &\nonce die 9\nreply {results}\n");
    let spawn = asked(&world, &gate);
    world.answer("early");
    gate.open_for_one();
    spawn.ends().exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("early");
    assert!(world.log().starts[1].prompt.contains("\nearly"), "{:?}", world.log().starts[1].prompt);
}
