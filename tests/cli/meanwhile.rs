//! What wakes an agent while others of its chain are working, and commands that run at the same time.

use std::fs;

use rustix::process::Signal;

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::world::World;

/// A process that drives an agent which is held at a gate, and another one that has paused with these steps.
fn beside_one_that_works<'a>(world: &'a World, waits: &str) -> (Gate, Running<'a>) {
    let gate = world.gate("gate");
    world.file("works.md", "hold gate\nreply works\n");
    world.file("waits.md", format!("{waits}\nrun echo went on >> marks\nreply done\n"));
    let spawn = world.command(["spawn", "works.md", "waits.md"]).start();
    gate.reached_by(1);
    wait_until("the other agent waits", || members(world, "waiting") == 1);
    (gate, spawn)
}

/// How many agents of a group have this status.
fn members(world: &World, status: &str) -> i64 {
    let sql = "SELECT count(*) FROM frames WHERE parent IS NOT NULL AND status = ?1";
    world.database().query_row(sql, [status], |row| row.get(0)).expect("it can be read")
}

/// The waiting agent continues although the other one is still working.
fn goes_on(world: &World, gate: &Gate, spawn: Running<'_>) {
    wait_until("the other agent goes on", || world.marks() == "went on\n");
    assert!(members(world, "running") >= 1);
    gate.open_for_one();
    spawn.ends().succeeds();
}

#[test]
fn a_time_comes() {
    let world = World::new();
    let (gate, spawn) = beside_one_that_works(&world, "wait --for 1s");
    goes_on(&world, &gate, spawn);
}

#[test]
fn a_file_appears_and_begins_to_match() {
    let world = World::new();
    let (gate, spawn) =
        beside_one_that_works(&world, "wait --file sub/status\nwait --file sub/status --matches '^done'");
    fs::create_dir(world.project().join("sub")).expect("it can be made");
    world.file("sub/status", "yet to come");
    wait_until("it waits for what is in the file", || members(&world, "waiting") == 1 && world.starts() == 3);
    // Of the same length, within the same second.
    world.file("sub/status", "done at...\n");
    goes_on(&world, &gate, spawn);
}

#[test]
fn a_question_expires() {
    let world = World::new();
    let (gate, spawn) = beside_one_that_works(&world, "run agent-cli ask 'When?' --default never --expires 2s");
    goes_on(&world, &gate, spawn);
}

#[test]
fn an_answer_stands_in_a_file() {
    let world = World::with_hooks();
    world.file("q.md", "When?\n\nA: \n");
    let (gate, spawn) = beside_one_that_works(&world, "run agent-cli ask --file q.md");
    world.file("q.md", "When?\n\nA: now\n---\n");
    goes_on(&world, &gate, spawn);
}

#[test]
fn a_backoff_ends() {
    let world = World::new();
    let (gate, spawn) = beside_one_that_works(&world, "once api 529 Overloaded");
    world.time_passes(30);
    goes_on(&world, &gate, spawn);
}

#[test]
fn an_agent_that_another_process_ran_is_looked_at_again() {
    let world = World::new();
    let [works, ends, other] = ["works", "ends", "other"].map(|gate| world.gate(gate));
    for (name, steps) in [
        ("a.md", "hold works\nreply a\n"),
        ("b.md", "ask One?\nhold other\nask Two?\nrun echo went on >> marks\nreply b\n"),
        ("c.md", "hold ends\nreply c\n"),
    ] {
        world.file(name, steps);
    }
    let first = world.command(["spawn", "a.md", "b.md", "c.md"]).start();
    works.reached_by(1);
    ends.reached_by(1);
    wait_until("b asks", || members(&world, "waiting") == 1);
    // The other process is faster.
    first.signal(Signal::STOP);
    world.answer_to("One?", "one");
    let root: String = world.run(&["ls", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let second = world.command(["resume", &root]).start();
    other.reached_by(1);
    first.signal(Signal::CONT);
    ends.open_for_one();
    wait_until("the first process goes on", || members(&world, "done") == 1);
    other.open_for_one();
    second.ends().started();
    world.answer_to("Two?", "two");
    wait_until("b goes on", || world.marks() == "went on\n");
    works.open_for_one();
    assert!(!first.ends().succeeds().stderr.contains(" is running "), "no other process runs anything any more");
}

/// A command that is held at the gate `command`, and then ends like this.
fn held(then: &str) -> String {
    format!("wait --command 'echo try >> tries; echo held >> command.held; read go < command; {then}'")
}

fn tries(world: &World) -> usize {
    fs::read_to_string(world.project().join("tries")).unwrap_or_default().lines().count()
}

#[test]
fn a_command_that_takes_long_holds_nobody_up() {
    let world = World::new();
    let command = world.gate("command");
    world.file("waits.md", format!("{}\nreply waits\n", held("true")));
    world.file("asks.md", "ask When?\nrun echo went on >> marks\nreply asks\n");
    let spawn = world.command(["spawn", "waits.md", "asks.md", "--max-parallel", "1"]).start();
    command.reached_by(1);
    wait_until("the other agent asks", || !world.questions().is_empty());
    world.answer("now");
    wait_until("the other agent goes on", || world.marks() == "went on\n");
    command.open_for_one();
    spawn.ends().succeeds();
    assert_eq!(tries(&world), 1);
}

#[test]
fn what_was_met_while_a_command_runs_stays_met() {
    let world = World::new();
    let command = world.gate("command");
    world.file("ins.md", format!("{} --file sign --all\nreply over\n", held("test -e ok")));
    let spawn = world.command(["spawn", "ins.md"]).start();
    command.reached_by(1);
    let id = world.session(0);
    world.file("sign", "");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    fs::remove_file(world.project().join("sign")).expect("it is there");
    command.open_for_one();
    spawn.ends().started();
    world.file("ok", "");
    command.open_for_one();
    world.run(&["resume", &id]).prints("over");
    assert_eq!(tries(&world), 2);
}

#[test]
fn an_interval_holds_for_several_processes() {
    let world = World::new();
    let command = world.gate("command");
    world.file("ins.md", format!("{} --every 1h\nreply over\n", held("false")));
    let spawn = world.command(["spawn", "ins.md"]).start();
    command.reached_by(1);
    let id = world.session(0);
    for _ in 0..2 {
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    }
    // Its try counts, whether or not its end was observed.
    spawn.kill();
    spawn.ends();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(tries(&world), 1);
    command.open_for_one();
}

#[test]
fn what_a_killed_process_has_claimed_is_tried_by_the_next() {
    let world = World::new();
    let command = world.gate("command");
    world.file("ins.md", format!("{}\nreply over\n", held("true")));
    let spawn = world.command(["spawn", "ins.md"]).start();
    command.reached_by(1);
    let id = world.session(0);
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(tries(&world), 1, "it is being tried");
    spawn.kill();
    spawn.ends();
    command.open_for_one();
    command.open_for_one();
    world.run(&["resume", &id]).prints("over");
    assert_eq!(tries(&world), 2);
}

#[test]
fn a_chain_whose_command_runs_is_sound_and_can_be_exported() {
    let world = World::new();
    let command = world.gate("command");
    world.file("ins.md", format!("{}\nreply over\n", held("true")));
    let spawn = world.command(["spawn", "ins.md"]).start();
    command.reached_by(1);
    let fsck = world.run(&["fsck"]);
    assert!(fsck.succeeds().to_string().contains("no problems found"), "{fsck}");
    world.run(&["export", &world.session(0), "-o", "chain.tar"]).succeeds();
    world.run(&["gc", "--older-than", "0s", "--dry-run"]).succeeds();
    command.open_for_one();
    spawn.ends().prints("over");
    world.run(&["fsck"]).succeeds();
}
