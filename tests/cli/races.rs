//! Several commands drive one chain: what one of them has checked is changed by another.

use crate::gate::Gate;
use crate::invocation::Running;
use crate::world::World;

/// Starts a command that stops at a point of its way until the gate is opened.
fn held<'a>(world: &'a World, gate: &Gate, point: &str, args: &[&str]) -> Running<'a> {
    let place = world.project().join("point");
    let command = world.command(args).with("AGENT_CLI_HOLD", &format!("{point} {}", place.display())).start();
    gate.reached_by(1);
    command
}

#[test]
fn an_agent_that_has_run_since_the_chain_was_looked_at_is_not_run_again() {
    let world = World::new();
    let gate = world.gate("point");
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let slow = held(&world, &gate, "lease.before", &["resume", &id]);
    world.run(&["resume", &id]).prints("Jan 1st");
    gate.open_for_one();
    slow.ends().prints("Jan 1st");
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_agent_that_another_command_has_tried_again_is_left_to_it() {
    let world = World::new();
    let gate = world.gate("point");
    world.file("root.md", "once refuse not logged in\nreply done\n");
    world.run(&["spawn", "root.md"]).exits_with(4);
    let id = world.log().starts[0].session().to_owned();
    let slow = held(&world, &gate, "try_again.before", &["resume", &id]);
    world.run(&["resume", &id]).prints("done");
    gate.open_for_one();
    slow.ends().prints("done");
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_agent_that_another_command_has_started_since_is_left_to_it() {
    let world = World::new();
    let (point, gate) = (world.gate("point"), world.gate("gate"));
    world.file("root.md", "ask When?\nhold gate\nreply done\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let slow = held(&world, &point, "lease.before", &["resume", &id]);
    let fast = world.command(["resume", &id]).start();
    gate.reached_by(1);
    point.open_for_one();
    let outcome = slow.ends();
    assert!(outcome.stdout.starts_with("SGN_PEND_ONGOING") && outcome.stderr.contains("another process"), "{outcome}");
    gate.open_for_one();
    fast.ends().prints("done");
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_attempt_that_another_command_has_concluded_since_is_not_concluded_again() {
    let world = World::new();
    let gate = world.gate("point");
    world.file("root.md", "reply done\n");
    world.command(["spawn", "root.md"]).with("AGENT_CLI_CRASH", "end_attempt.before").run();
    let id = world.log().starts[0].session().to_owned();
    let slow = held(&world, &gate, "lease.before", &["resume", &id]);
    world.run(&["resume", &id]).prints("done");
    gate.open_for_one();
    slow.ends().prints("done");
    assert_eq!(world.starts(), 1);
}

/// One command wakes a parent because its child has failed. Another one, as cron starts it, retries the child.
#[test]
fn a_failure_that_is_tried_again_is_not_delivered() {
    let world = World::new();
    let (point, gate) = (world.gate("point"), world.gate("gate"));
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "ask When?\nonce fail no disk\nhold gate\nreply done\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let slow = held(&world, &point, "begin.before:2", &["resume", &id]);
    let fast = world.command(["resume", &id]).start();
    gate.reached_by(1);
    point.open_for_one();
    let woken = slow.ends();
    assert!(!woken.stdout.contains("root: "), "{woken}");
    gate.open_for_one();
    fast.ends().prints("root: done");
    world.run(&["resume", &id]).prints("root: done");
}

#[test]
fn a_foreign_session_that_another_command_adopts_is_waited_for() {
    const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";
    let world = World::new();
    let (first, second) = (world.gate("point"), world.gate("second"));
    world.file("root.md", "decide sign\nreply {result}\n");
    world.foreign_session(SESSION, "root.md");
    world.file("sign", "now");
    let adopting = held(&world, &first, "keep_copy.before", &["resume", SESSION]);
    // It does not have the lease, and nothing is recorded yet: it checks again.
    let hold = format!("lease.before:3 {}", world.project().join("second").display());
    let other = world.command(["resume", SESSION]).with("AGENT_CLI_HOLD", &hold).start();
    second.reached_by(1);
    first.open_for_one();
    second.open_for_one();
    for command in [adopting, other] {
        assert_eq!(command.ends().stderr.lines().find(|line| line.contains("no frame")), None);
    }
    world.run(&["resume", SESSION]).prints("now");
}
