//! The examples that come with the program.

use std::fs;

use crate::world::World;

/// The folder of `examples/waits`, and a `gh` that prints the content of the file `gh-says`, if it exists.
fn waits() -> World {
    let world = World::new();
    let path = std::env::join_paths([
        world.project().join("bin"),
        crate::programs::folder(),
        "/usr/bin".into(),
        "/bin".into(),
    ]);
    let world = world.with("PATH", path.expect("no colon in the target directory"));
    world.file("ci.md", include_str!("../../examples/waits/ci.md"));
    world.file("merge.md", include_str!("../../examples/waits/merge.md"));
    for (name, text) in [
        ("run-is-over.sh", include_str!("../../examples/waits/run-is-over.sh")),
        ("pull-request-is-over.sh", include_str!("../../examples/waits/pull-request-is-over.sh")),
        ("bin/gh", GH),
    ] {
        world.executable(name, text);
    }
    world
}

const GH: &str = r#"#!/bin/sh
case "$*" in
    "run list "*" --limit 1 --json databaseId --jq .[0].databaseId") echo 1234;;
    "run view 1234 --json status --jq .status") cat run-status;;
    "run view 1234 --json conclusion,url --jq "*) echo "failure: https://github.com/o/r/actions/runs/1234";;
    "pr view --json state --jq .state") cat pr-state;;
    *) echo "gh: unknown: $*" >&2; exit 2;;
esac
"#;

#[test]
fn an_agent_waits_for_a_ci_run() {
    let world = waits();
    world.file("run-status", "in_progress\n");
    let id = world.spawn_paused("ci.md");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    assert!(
        outcome.stderr.contains("tried every 2 min: ./run-is-over.sh (exit status 1: run 1234 is not over, "),
        "{outcome}"
    );
    world.file("run-status", "completed\n");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.last_try_was_earlier("2 minutes");
    world.run(&["resume", &id]).prints("failure: https://github.com/o/r/actions/runs/1234");
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_agent_waits_for_a_pull_request_to_be_merged() {
    let world = waits();
    world.file("pr-state", "OPEN\n");
    let id = world.spawn_paused("merge.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("pr-state", "MERGED\n");
    let database = world.database();
    database.execute("UPDATE requests SET looked = NULL", []).expect("it can be written");
    let outcome = world.run(&["resume", &id]);
    assert!(outcome.succeeds().stdout.contains("1 of 2 conditions is met:"), "{outcome}");
    assert!(outcome.stdout.trim_end().ends_with(": MERGED"), "{outcome}");
}

#[test]
fn an_agent_posts_a_question_as_a_file() {
    let world = World::new();
    world.file("review.md", include_str!("../../examples/question-files/review.md"));
    world.file("question.json", include_str!("../../examples/question-files/question.json"));
    fs::create_dir_all(world.project().join("questions/pending")).expect("it can be made");
    world.run(&["spawn", "review.md", "--questions-dir", "questions"]).succeeds();
    let asked = world.run(&["questions", "--json"]).json()[0].clone();
    assert_eq!(asked["options"][1]["key"], "production", "{asked}");
    assert_eq!(asked["context"], "All checks have passed.\n\nAsked by review.md, as the file says.");
    world.answer("1");
    world.run(&["resume", "--all"]).succeeds();
    assert!(world.log().starts[1].prompt.ends_with("staging\n") || world.log().starts[1].prompt.ends_with("staging"));
    assert!(world.project().join("questions/answered/deploy.json").is_file());
}

#[test]
fn every_form_of_asking_and_waiting_in_the_template_works() {
    let template = include_str!("../../CLAUDE.md.template");
    let (several, until) =
        (r#"{"name": "when", "question": "When?", "options": ["now", "later"]}"#, "--until 2030-01-31T09:00Z");
    assert!(template.contains(several) && template.contains(until));
    let world = World::with_hooks();
    world.file("notes.txt", "All tests pass.\n");
    world.file("several.json", format!("[{several}, {{\"question\": \"Why?\"}}]"));
    let asks = [
        "_ask_ \"Deploy?\" `--option now=\"at once\" --option later --default later --expires 2h --context @notes.txt`",
        "_ask_ \"Which?\" `--option a --option b --multiple --free-text --context \"the tests\"`",
        "_ask_ `several.json`",
        "_ask_ \"In a file?\" `--file q.md`",
    ];
    let waits = [format!("_wait_ `--file ready {until} --for 2h --any`"), "_wait_ `--file ready`".to_owned()];
    let steps = asks.map(str::to_owned).into_iter().chain(waits);
    let lines = steps.chain(["_terminate_ {the result}".to_owned()]).zip(1..);
    world.file("root.md", lines.map(|(step, number)| format!("{number}. {step}\n")).collect::<String>());
    let root = world.run(&["spawn", "root.md", "--permission-mode", "acceptEdits"]).started();
    let started = format!("SGN_PEND_STARTED ({root})");
    let asked = world.run(&["questions", "--json"]).json()[0].clone();
    let form = (&asked["options"][0]["description"], &asked["default"], &asked["context"], &asked["free_text"]);
    assert_eq!(form, (&"at once".into(), &"later".into(), &"All tests pass.\n".into(), &false.into()));
    world.answer("now");
    world.run(&["resume", &root]).prints(&started);
    world.answer("1,2");
    world.run(&["resume", &root]).prints(&started);
    world.answer_to("When?", "later");
    world.answer_to("Why?", "because");
    world.run(&["resume", &root]).prints(&started);
    fs::write(world.project().join("q.md"), "In a file?\n\nA: yes\n---\n").expect("it was created");
    world.run(&["resume", &root]).prints(&started);
    assert_eq!(world.questions(), []);
    world.file("ready", "");
    let done = world.run(&["resume", &root]);
    assert!(done.succeeds().stdout.contains("it exists: "), "{done}");
}
