//! `--json`: what other programs read.

use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::world::World;

fn paused() -> (World, String) {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    (world, id)
}

/// One line on standard output, in many lines.
fn lines(world: &World, outcome: &Outcome) -> String {
    assert_eq!(outcome.stdout.lines().count(), 1, "one object a line: {outcome}");
    world.named(&serde_json::to_string_pretty(&outcome.json()).expect("it is JSON"))
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().expect("an object").keys().collect()
}

#[test]
fn spawn_and_resume_print_the_same_object() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawned = world.run(&["spawn", "root.md", "--json"]);
    spawned.succeeds();
    insta::assert_snapshot!(lines(&world, &spawned), @"");

    let id = spawned.json()["id"].as_str().expect("an id").to_owned();
    let polled = world.run(&["resume", &id, "--json"]).json();
    assert_eq!(keys(&polled), keys(&spawned.json()));
    assert_eq!((&polled["status"], &polled["reply"]), (&json!("ongoing"), &json!(null)));
    assert_eq!(polled["waiting_on"], spawned.json()["waiting_on"]);

    world.answer("Jan 1st");
    let done = world.run(&["resume", &id, "--json"]).json();
    assert_eq!(keys(&done), keys(&spawned.json()));
    assert_eq!((&done["status"], &done["reply"]), (&json!("done"), &json!("Jan 1st")));
    assert_eq!(done["waiting_on"], json!([]));
    assert_eq!(world.run(&["resume", &id, "--json"]).json(), done);
}

#[test]
fn what_a_session_cost_before_it_was_resumed_is_counted_once() {
    let (world, id) = paused();
    let cost = |outcome: Outcome| outcome.json()["cost_usd"].as_f64().expect("a number");
    assert_eq!(format!("{:.2}", cost(world.run(&["resume", &id, "--json"]))), "0.06");
    world.answer("now");
    // Every answer of the stand-in's model costs a cent: three each before the pause, one each after it.
    assert_eq!(format!("{:.2}", cost(world.run(&["resume", &id, "--json"]))), "0.08");
}

#[test]
fn a_failure_in_json() {
    let world = World::new();
    world.file("root.md", "fail boom\n");
    let outcome = world.run(&["spawn", "root.md", "--json"]);
    outcome.exits_with(1);
    assert_eq!(outcome.json()["status"], "failed");
    insta::assert_snapshot!(outcome, @"");
}

#[test]
fn lists_in_json() {
    let (world, id) = paused();
    insta::assert_snapshot!(lines(&world, &world.run(&["ls", "--json"])), @"");
    insta::assert_snapshot!(lines(&world, &world.run(&["tree", &id, "--json"])), @"");
    assert_eq!(world.run(&["tree", "--json"]).json(), world.run(&["tree", &id, "--json"]).json());
    insta::assert_snapshot!(lines(&world, &world.run(&["questions", "--json"])), @"");
    let answered = world.run(&["answer", &world.question(), "now", "--json"]);
    insta::assert_snapshot!(lines(&world, &answered), @"");
    insta::assert_snapshot!(lines(&world, &world.run(&["questions", "--all", "--json"])), @"");
}

#[test]
fn a_frame_in_json() {
    let (world, id) = paused();
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    insta::assert_snapshot!(lines(&world, &world.run(&["show", &id, "--json"])), @"");
}

#[test]
fn empty_lists_are_lists() {
    let world = World::new();
    for command in ["ls", "tree", "questions"] {
        assert_eq!(world.run(&[command, "--json"]).succeeds().json(), json!([]), "{command}");
    }
}
