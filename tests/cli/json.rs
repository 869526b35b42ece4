//! `--json`: what other programs read.

use std::path::Path;

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

fn keys(value: &Value) -> String {
    let keys = value.as_object().expect("an object").keys();
    keys.map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn spawn_and_resume_print_the_same_object() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let spawned = world.run(&["spawn", "root.md", "--json"]);
    spawned.succeeds();
    insta::assert_snapshot!(lines(&world, &spawned), @r#"
    {
      "busy": [],
      "cost_usd": 0.03,
      "errors": [],
      "id": "[ID1]",
      "reply": null,
      "status": "started",
      "usage": {
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "input_tokens": 3000,
        "output_tokens": 60
      },
      "waiting_on": [
        {
          "for": "question",
          "frame": "[ID1]",
          "id": "[ID2]",
          "question": "When?",
          "since": "[TIME]"
        }
      ]
    }
    "#);

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
    insta::assert_snapshot!(outcome, @r#"
    {"id":"[ID1]","status":"failed","reply":null,"waiting_on":[],"busy":[],"errors":["boom"],"usage":{"input_tokens":1000,"output_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"cost_usd":0.01}
    --- stderr
    error: boom ([ID1:8])
    hint: agent-cli resume [ID1] carries on; nothing is lost
    --- exit status: 1
    "#);
}

#[test]
fn lists_in_json() {
    let (world, id) = paused();
    insta::assert_snapshot!(lines(&world, &world.run(&["ls", "--json"])), @r#"
    [
      {
        "agents": 2,
        "created": "[TIME]",
        "cwd": "[PROJECT]",
        "id": "[ID1]",
        "open_questions": 1,
        "over_budget": false,
        "since": "[TIME]",
        "status": "waiting",
        "task": "root.md"
      }
    ]
    "#);
    insta::assert_snapshot!(lines(&world, &world.run(&["tree", &id, "--json"])), @r#"
    [
      {
        "error": null,
        "id": "[ID1]",
        "parent": null,
        "since": "[TIME]",
        "status": "waiting",
        "task": "root.md",
        "waiting_on": []
      },
      {
        "error": null,
        "id": "[ID2]",
        "parent": "[ID1]",
        "since": "[TIME]",
        "status": "waiting",
        "task": "child.md",
        "waiting_on": [
          {
            "for": "question",
            "frame": "[ID2]",
            "id": "[ID3]",
            "question": "When?",
            "since": "[TIME]"
          }
        ]
      }
    ]
    "#);
    assert_eq!(world.run(&["tree", "--json"]).json(), world.run(&["tree", &id, "--json"]).json());
    insta::assert_snapshot!(lines(&world, &world.run(&["questions", "--json"])), @r#"
    [
      {
        "answer": null,
        "answered": null,
        "asked": "[TIME]",
        "frame": "[ID2]",
        "id": "[ID3]",
        "kind": "question",
        "question": "When?",
        "root": "[ID1]",
        "task": "child.md"
      }
    ]
    "#);
    let answered = world.run(&["answer", &world.question(), "now", "--json"]);
    insta::assert_snapshot!(lines(&world, &answered), @r#"
    {
      "next": "agent-cli resume [ID1]",
      "question": "[ID3]",
      "root": "[ID1]"
    }
    "#);
    insta::assert_snapshot!(lines(&world, &world.run(&["questions", "--all", "--json"])), @r#"
    [
      {
        "answer": "now",
        "answered": "[TIME]",
        "asked": "[TIME]",
        "frame": "[ID2]",
        "id": "[ID3]",
        "kind": "question",
        "question": "When?",
        "root": "[ID1]",
        "task": "child.md"
      }
    ]
    "#);
}

#[test]
fn a_frame_in_json() {
    let (world, id) = paused();
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let frame = world.run(&["show", &id, "--json"]).succeeds().json();
    insta::assert_snapshot!(keys(&frame), @"baseline checkpoint children cost_usd created cwd depth error events id launch limits output parent reply root sessions since status task trouble usage waiting_on");
    assert_eq!(frame["reply"], "now");
    assert_eq!(frame["launch"]["model"], "claude-opus-4-8");
    assert_eq!(frame["children"].as_array().map(Vec::len), Some(1));

    let sessions = frame["sessions"].as_array().expect("a list of sessions");
    let [first, second] = sessions.as_slice() else { panic!("two sessions: {frame}") };
    insta::assert_snapshot!(keys(first), @"began cost_usd ended id kept message outcome resumed transcript usage");
    assert_eq!((&first["id"], &first["resumed"]), (&json!(id), &json!(null)));
    assert_eq!((&second["resumed"], &second["kept"]), (&json!(id), &json!(true)));
    assert_eq!(frame["checkpoint"], second["id"]);
    for session in sessions {
        assert!(Path::new(session["transcript"].as_str().expect("a path")).is_file());
    }
}

#[test]
fn empty_lists_are_lists() {
    let world = World::new();
    for command in ["ls", "tree", "questions"] {
        assert_eq!(world.run(&[command, "--json"]).succeeds().json(), json!([]), "{command}");
    }
}
