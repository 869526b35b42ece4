//! A person stops `agent-cli`: the agent is stopped with it, and can be resumed.

use rustix::process::Signal;

use crate::gate::Gate;
use crate::programs;
use crate::world::World;

fn stopped_at_the_gate(signal: Signal) -> (World, Gate, String) {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "run echo worked >> marks\nhold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(signal);
    let outcome = spawn.ends();
    outcome.exits_with(130);
    assert_eq!(outcome.stdout, "", "{outcome}");
    let id = world.log().starts[0].session().to_owned();
    (world, gate, id)
}

#[test]
fn ctrl_c_stops_the_agent_and_resume_carries_on() {
    let (world, gate, id) = stopped_at_the_gate(Signal::INT);
    assert!(world.log().starts.iter().all(|start| !start.is_alive()));
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.starts(), 2);
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn what_the_system_ends_continues_without_a_hand() {
    let (world, gate, _) = stopped_at_the_gate(Signal::TERM);
    gate.open_for_one();
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.ends_with(" done: done\n"));
    assert_eq!(world.marks(), "worked\n");
    let (world, _gate, _) = stopped_at_the_gate(Signal::INT);
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "", "a person stopped it");
}

#[test]
fn so_does_sigterm() {
    let (world, gate, id) = stopped_at_the_gate(Signal::TERM);
    assert!(world.log().starts.iter().all(|start| !start.is_alive()));
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.starts(), 2);
}

#[test]
fn the_person_is_told_how_to_continue() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    insta::assert_snapshot!(spawn.ends(), @r"
    --- stderr
    error: interrupted
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 130
    ");
}

#[test]
fn the_agent_is_told_that_it_was_stopped() {
    let (world, gate, id) = stopped_at_the_gate(Signal::INT);
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r"
    SGN_RESUME

    Your last turn was cut short: a person stopped it. Carry on where you stopped. This tool call was made then and may have taken effect, even if the conversation says that it was rejected, so check before you repeat it:
    - Bash: echo held >> gate.held; read go < gate
    ");
}

#[test]
fn an_agent_behind_a_wrapper_is_stopped_too() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    // As the npm package has one: a program that starts the real one and waits for it.
    let wrapper =
        world.executable("wrapper", format!("#!/bin/sh\n'{}' \"$@\"\nexit $?\n", programs::stand_in().display()));
    let wrapper = wrapper.to_string_lossy();
    let spawn = world.command(["spawn", "root.md", "--claude", &wrapper]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let start = world.log().starts.remove(0);
    assert!(!start.is_alive(), "the agent was stopped");
    gate.open_for_one();
    world.run(&["resume", start.session()]).prints("done");
}

#[test]
fn a_closed_terminal_is_an_interruption() {
    let (world, gate, id) = stopped_at_the_gate(Signal::HUP);
    assert!(world.log().starts.iter().all(|start| !start.is_alive()));
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
}

#[test]
fn an_agent_that_does_not_listen_is_killed() {
    let world = World::new().with("STAND_IN_IS_DEAF", "1");
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let start = world.log().starts.remove(0);
    assert!(!start.is_alive());
    gate.open_for_one();
    gate.open_for_one();
    world.run(&["resume", start.session()]).prints("done");
}

#[test]
fn all_branches_are_stopped() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md &\nspawn child.md\nreply {results}\n");
    world.file("child.md", "hold gate\nreply ok\n");
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(2);
    spawn.signal(Signal::TERM);
    spawn.ends().exits_with(130);
    let log = world.log();
    assert!(log.starts.iter().all(|start| !start.is_alive()));
    gate.open_for_one();
    gate.open_for_one();
    world.run(&["resume", log.starts[0].session()]).prints("ok; ok");
}

#[test]
fn a_chain_that_is_stopped_carries_on_at_its_end() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("top.md", "spawn leaf.md\nreply top: {result}\n");
    world.file("leaf.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "top.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let id = world.log().starts[0].session().to_owned();
    gate.open_for_one();
    world.run(&["resume", &id]).prints("top: done");
    assert_eq!(world.starts(), 4);
}

#[test]
fn no_other_agent_is_started_after_the_signal() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("held.md", "hold gate\nreply ok\n");
    world.file("next.md", "reply ok\n");
    let spawn = world.command(["spawn", "held.md", "next.md", "--max-parallel", "1"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    assert_eq!(world.starts(), 1);
}
