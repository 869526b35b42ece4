//! `--json`: the output for other programs.

use std::path::Path;

use serde_json::{Value, json};

use crate::help::listed_commands;
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
      "type": "chain",
      "version": 1,
      "id": "[ID1]",
      "status": "started",
      "reply": null,
      "waiting_on": [
        {
          "agent": "[ID1]",
          "since": "[TIME]",
          "for": "question",
          "id": "[ID2]",
          "question": "When?",
          "context": null,
          "options": [],
          "multiple": false,
          "free_text": true,
          "default": null,
          "expires_at": null
        }
      ],
      "running_elsewhere": [],
      "errors": [],
      "denied": [],
      "usage": {
        "input_tokens": 3000,
        "output_tokens": 60,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0
      },
      "cost_usd": 0.03,
      "estimated": false,
      "requests": 3,
      "seconds": [SECONDS]
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
    // Every response of the stand-in's model costs a cent: three each before the pause, one each after it.
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
    {"type":"chain","version":1,"id":"[ID1]","status":"failed","reply":null,"waiting_on":[],"running_elsewhere":[],"errors":[{"agent":"[ID1]","kind":"error","message":"boom"}],"denied":[],"usage":{"input_tokens":1000,"output_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"cost_usd":0.01,"estimated":false,"requests":1,"seconds":[SECONDS]}
    --- stderr
    error: boom ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    "#);
}

#[test]
fn lists_in_json() {
    let (world, id) = paused();
    insta::assert_snapshot!(lines(&world, &world.run(&["ls", "-ap", "--json"])), @r#"
    [
      {
        "id": "[ID1]",
        "name": null,
        "status": "waiting",
        "state": "asks",
        "abandoned": false,
        "error": null,
        "can_continue": false,
        "task": "root.md",
        "cwd": "[PROJECT]",
        "since": "[TIME]",
        "created": "[TIME]",
        "agents": 2,
        "open_questions": 1,
        "waiting_on": [
          {
            "agent": "[ID2]",
            "since": "[TIME]",
            "for": "question",
            "id": "[ID3]",
            "question": "When?",
            "context": null,
            "options": [],
            "multiple": false,
            "free_text": true,
            "default": null,
            "expires_at": null
          }
        ],
        "over_budget": false,
        "usage": {
          "input_tokens": 6000,
          "output_tokens": 120,
          "cache_creation_input_tokens": 0,
          "cache_read_input_tokens": 0
        },
        "cost_usd": 0.06,
        "estimated": false,
        "requests": 6,
        "seconds": [SECONDS]
      }
    ]
    "#);
    insta::assert_snapshot!(lines(&world, &world.run(&["tree", &id, "--json"])), @r#"
    [
      {
        "id": "[ID1]",
        "parent": null,
        "task": "root.md",
        "status": "waiting",
        "state": "waits",
        "abandoned": false,
        "since": "[TIME]",
        "error": null,
        "waiting_on": [],
        "usage": {
          "input_tokens": 3000,
          "output_tokens": 60,
          "cache_creation_input_tokens": 0,
          "cache_read_input_tokens": 0
        },
        "cost_usd": 0.03,
        "estimated": false,
        "requests": 3,
        "seconds": [SECONDS]
      },
      {
        "id": "[ID2]",
        "parent": "[ID1]",
        "task": "child.md",
        "status": "waiting",
        "state": "asks",
        "abandoned": false,
        "since": "[TIME]",
        "error": null,
        "waiting_on": [
          {
            "agent": "[ID2]",
            "since": "[TIME]",
            "for": "question",
            "id": "[ID3]",
            "question": "When?",
            "context": null,
            "options": [],
            "multiple": false,
            "free_text": true,
            "default": null,
            "expires_at": null
          }
        ],
        "usage": {
          "input_tokens": 3000,
          "output_tokens": 60,
          "cache_creation_input_tokens": 0,
          "cache_read_input_tokens": 0
        },
        "cost_usd": 0.03,
        "estimated": false,
        "requests": 3,
        "seconds": [SECONDS]
      }
    ]
    "#);
    assert_eq!(world.run(&["tree", "--json"]).json(), world.run(&["tree", &id, "--json"]).json());
    insta::assert_snapshot!(lines(&world, &world.run(&["questions", "--json"])), @r#"
    [
      {
        "id": "[ID3]",
        "kind": "question",
        "question": "When?",
        "context": null,
        "options": [],
        "multiple": false,
        "free_text": true,
        "default": null,
        "expires_at": null,
        "agent": "[ID2]",
        "chain": "[ID1]",
        "task": "child.md",
        "asked_together": null,
        "asked": "[TIME]",
        "answered": null,
        "answer": null,
        "expired": null,
        "answered_by": null
      }
    ]
    "#);
    let answered = world.run(&["answer", &world.question(), "now", "--json"]);
    insta::assert_snapshot!(lines(&world, &answered), @r#"
    {
      "question": "[ID3]",
      "chain": "[ID1]",
      "next": "agent-cli resume [ID1]",
      "can_continue": true,
      "running_elsewhere": false,
      "continued_by": null
    }
    "#);
    let mut listed = world.run(&["questions", "--all", "--json"]).json();
    assert_eq!(
        keys(&listed[0]["answered_by"].take()),
        "uid user process terminal agent claude_session",
        "a test of its own has the values"
    );
    insta::assert_snapshot!(world.named(&serde_json::to_string_pretty(&listed).expect("it is JSON")), @r#"
    [
      {
        "id": "[ID3]",
        "kind": "question",
        "question": "When?",
        "context": null,
        "options": [],
        "multiple": false,
        "free_text": true,
        "default": null,
        "expires_at": null,
        "agent": "[ID2]",
        "chain": "[ID1]",
        "task": "child.md",
        "asked_together": null,
        "asked": "[TIME]",
        "answered": "[TIME]",
        "answer": "now",
        "expired": null,
        "answered_by": null
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
    insta::assert_snapshot!(keys(&frame), @"id parent chain depth detached_by task cwd status state abandoned error since created waiting_on waiting_below handed_off_to reply report trouble children launch limits checkpoint baseline session summary starts_afresh afresh_advice sessions output open denied usage cost_usd estimated requests seconds with_descendants next_request messages events");
    assert_eq!(frame["reply"], "now");
    assert_eq!(frame["launch"]["model"], "claude-opus-4-8");
    assert_eq!(frame["children"].as_array().map(Vec::len), Some(1));

    let sessions = frame["sessions"].as_array().expect("a list of sessions");
    let [first, second] = sessions.as_slice() else { panic!("two sessions: {frame}") };
    insta::assert_snapshot!(keys(first), @"id attempt resumed began ended outcome message kept transcript usage cost_usd estimated requests seconds model lingered");
    assert_eq!((&first["id"], &first["resumed"]), (&json!(id), &json!(null)));
    assert_eq!((&second["resumed"], &second["kept"]), (&json!(id), &json!(true)));
    assert_eq!((&frame["checkpoint"], &second["id"]), (&second["attempt"], &first["id"]));
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

/// Whatever goes wrong, a program that reads JSON gets one object, and nothing else.
#[test]
fn errors_in_json() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    for (arguments, status, kind) in [
        (&["spawn", "missing.md", "--json"][..], 2, "usage"),
        (&["spawn", "root.md", "--claude", "/nowhere", "--json"], 4, "claude"),
        (&["spawn", "--json"], 2, "usage"),
        (&["spawn", "root.md", "--jsno", "--json"], 2, "usage"),
        (&["resume", "--json", "ffffffff"], 3, "not_found"),
        (&["show", "ffffffff", "--json"], 3, "not_found"),
        (&["tree", "ffffffff", "--json"], 3, "not_found"),
        (&["answer", "ffffffff", "x", "--json"], 3, "not_found"),
        (&["import", "missing", "--json"], 2, "usage"),
        (&["gc", "--older-than", "soon", "--json"], 2, "usage"),
        (&["no-command", "--json"], 2, "usage"),
        (&["--json"], 2, "usage"),
    ] {
        let outcome = world.run(arguments);
        outcome.exits_with(status);
        assert_eq!(outcome.stdout.lines().count(), 1, "{arguments:?}: {outcome}");
        let error = &outcome.json()["error"];
        assert_eq!((&error["exit_status"], &error["kind"]), (&status.into(), &kind.into()), "{arguments:?}: {outcome}");
        let message = error["message"].as_str().expect("a text").lines().next().expect("a line");
        assert!(!message.is_empty() && outcome.stderr.contains(message), "{arguments:?}: {outcome}");
    }
    insta::assert_snapshot!(world.run(&["spawn", "missing.md", "--json"]), @r#"
    {"type":"error","error":{"kind":"usage","message":"cannot read missing.md: No such file or directory (os error 2)","hints":["give the path of a file with instructions"],"exit_status":2}}
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
    hint: give the path of a file with instructions
    --- exit status: 2
    "#);
    for arguments in [&["spawn", "missing.md"][..], &["spawn", "missing.md", "--", "--json"]] {
        assert_eq!(world.run(arguments).stdout, "", "{arguments:?}");
    }
}

/// The part of the documentation in which every command has its row.
fn documented_commands() -> String {
    let page = include_str!("../../docs/protocol.md");
    let (_, section) = page.split_once("\n### JSON\n").expect("the section is there");
    section.split("\n### ").next().expect("a section").to_owned()
}

#[test]
fn every_command_has_a_row_about_its_json_and_exit_statuses() {
    let (world, section) = (World::new(), documented_commands());
    let names = listed_commands(&world);
    let first_cells: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    for name in names {
        let has_row = |cell: &&str| cell.split('`').any(|word| word.split(' ').next() == Some(&name));
        assert!(first_cells.iter().any(has_row), "docs/protocol.md has no row for {name}");
    }
}

#[test]
fn every_schema_is_named() {
    let section = documented_commands();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    for file in std::fs::read_dir(folder).expect("the schemas are there") {
        let name = file.expect("a file").file_name().into_string().expect("a name");
        assert!(section.contains(&format!("(schema/{name})")), "docs/protocol.md does not name {name}");
    }
}
