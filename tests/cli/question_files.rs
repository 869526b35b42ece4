//! Questions that agents post as files, and answers in files.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::gate::wait_until;
use crate::world::World;

/// A chain whose agent writes a question into a folder, says so, and replies what it is told.
fn posting(question: &str) -> (World, String) {
    let world = World::new();
    world.file("question.json", question);
    world.file(
        "root.md",
        "run mkdir -p q/pending && cp question.json q/pending/q1.json\nend QUESTION_POSTED:q1\nreply over\n",
    );
    fs::create_dir(world.project().join("q")).expect("it can be made");
    let outcome = world.run(&["spawn", "root.md", "--questions-dir", "q"]);
    let id = outcome.succeeds().stdout.trim().trim_start_matches("SGN_PEND_STARTED (").trim_end_matches(')').to_owned();
    (world, id)
}

const WHEN: &str = r#"{"id": "q1", "question": "When?", "options": [{"key": "mon", "label": "Monday"}, "tue"],
    "context": "It rains.", "asked_by": "planner", "created_at": "2026-01-01T00:00:00Z", "timeout": null}"#;

fn file(world: &World, name: &str) -> PathBuf {
    world.project().join("q").join(name)
}

/// The answer that the agent was last told.
fn told(world: &World) -> String {
    let log = world.log();
    let prompt = &log.starts.last().expect("it was started").prompt;
    let (_, told) = prompt.split_once("result of `QUESTION_POSTED:").expect("it was told an answer");
    told.split_once("):\n").expect("a heading").1.trim_end().to_owned()
}

fn read(world: &World, name: &str) -> Value {
    serde_json::from_slice(&fs::read(file(world, name)).expect("it is there")).expect("JSON")
}

#[test]
fn a_posted_question_is_answered_by_command_and_its_file_is_moved() {
    let (world, id) = posting(WHEN);
    let asked = world.run(&["questions", "--json"]).json();
    let asked = &asked[0];
    assert_eq!(
        (&asked["question"], &asked["options"][0]),
        (&json!("When?"), &json!({"key": "mon", "description": "Monday"}))
    );
    assert_eq!(asked["context"], "It rains.\n\nAsked by planner, as the file says.");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1);
    world.answer("1");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(told(&world), "mon");
    assert!(!file(&world, "pending/q1.json").exists());
    let answered = read(&world, "answered/q1.json");
    assert_eq!((&answered["answer"], &answered["status"]), (&json!("mon"), &json!("answered")));
    assert_eq!((&answered["asked_by"], &answered["question"]), (&json!("planner"), &json!("When?")));
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_posted_question_is_answered_by_a_file() {
    let (world, id) = posting(WHEN);
    fs::create_dir(file(&world, "answered")).expect("it can be made");
    fs::write(file(&world, "answered/q1.json"), r#"{"answer": "tu"#).expect("it can be written");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    assert!(outcome.stderr.contains("(answered/q1.json is not JSON: EOF while parsing a string"), "{outcome}");
    fs::write(file(&world, "answered/q1.json"), r#"{"answer": "tue"}"#).expect("it can be written");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains(" done: over"));
    assert_eq!(told(&world), "tue");
    assert!(!file(&world, "pending/q1.json").exists());
    assert_eq!(read(&world, "answered/q1.json"), json!({"answer": "tue"}), "it is theirs");
}

#[test]
fn watch_sees_the_file_of_an_answer() {
    let (world, id) = posting(WHEN);
    let watch = world.command(["watch"]).start();
    fs::create_dir(file(&world, "answered")).expect("it can be made");
    fs::write(file(&world, "answered/.new"), r#"{"answer": "tue"}"#).expect("it can be written");
    fs::rename(file(&world, "answered/.new"), file(&world, "answered/q1.json")).expect("it can be moved");
    wait_until("it is done", || world.run(&["show", &id, "--json"]).json()["status"] == "done");
    watch.signal(rustix::process::Signal::TERM);
    watch.ends().succeeds();
}

#[test]
fn an_agent_does_not_answer_its_own_question() {
    let world = World::new();
    world.file(
        "root.md",
        "run mkdir q/pending q/answered && echo '{\"question\": \"Deploy?\"}' > q/pending/d.json && \
         echo '{\"answer\": \"yes\"}' > q/answered/d.json\nend QUESTION_POSTED:d\nreply over\n",
    );
    fs::create_dir(world.project().join("q")).expect("it can be made");
    let outcome = world.run(&["spawn", "root.md", "--questions-dir", "q"]);
    assert!(
        outcome.stderr.contains("(answered/d.json was written while its agent still worked: save it once more)"),
        "{outcome}"
    );
    world.answer("no");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains(" done: over"));
    assert_eq!(told(&world), "no");
    assert_eq!(read(&world, "answered/d.json")["answer"], "no");
}

#[test]
fn a_question_that_cannot_be_read_is_one_for_a_person_until_it_can() {
    let (world, id) = posting(r#"{"question": "Wh"#);
    let asked = world.run(&["questions", "--json"]).json()[0]["question"].as_str().expect("a text").to_owned();
    assert!(asked.contains("q/pending/q1.json is not JSON: EOF"), "{asked}");
    fs::write(file(&world, "pending/q1.json"), r#"{"question": "When?"}"#).expect("it can be written");
    world.run(&["resume", "--all"]).succeeds();
    world.answer_to("When?", "now");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(told(&world), "now");
}

#[test]
fn the_file_of_an_expired_question_is_moved_too() {
    let (world, id) = posting(r#"{"question": "When?", "expires_at": "2100-01-01T00:00:00Z", "default": "never"}"#);
    world.questions_expire();
    world.run(&["resume", &id]).prints("over");
    assert!(!file(&world, "pending/q1.json").exists());
    let filed = read(&world, "answered/q1.json");
    assert_eq!(
        (&filed["status"], &filed["default"], &filed["answer"]),
        (&"expired".into(), &"never".into(), &Value::Null)
    );
}

#[test]
fn a_name_that_leads_elsewhere_is_no_file() {
    let world = World::new();
    world.file("secret.json", r#"{"question": "secret"}"#);
    world.file("root.md", "end QUESTION_POSTED:../../secret\nreply over\n");
    fs::create_dir(world.project().join("q")).expect("it can be made");
    let outcome = world.run(&["spawn", "root.md", "--questions-dir", "q"]);
    assert!(outcome.stderr.contains("its name may only have letters"), "{outcome}");
    world.answer("go on");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains(" done: over"));
    assert_eq!(told(&world), "go on");
}

#[test]
fn without_a_folder_it_is_a_reply_and_agents_name_none() {
    let world = World::new();
    world.file("root.md", "end QUESTION_POSTED:q1\n");
    world.run(&["spawn", "root.md"]).prints("QUESTION_POSTED:q1");
    world.file("other.md", "spawn root.md --questions-dir .\nreply {result}\n");
    let outcome = world.run(&["spawn", "other.md"]);
    assert!(outcome.succeeds().stdout.contains("agents cannot use --questions-dir"), "{outcome}");
}

#[test]
fn a_chain_that_exists_can_be_given_a_folder() {
    let world = World::new();
    world.file("root.md", "ask First?\nend QUESTION_POSTED:q1\nreply over\n");
    let id = world.spawn_paused("root.md");
    world.file("q/pending/q1.json", r#"{"question": "Second?"}"#);
    world.answer("x");
    world.run(&["resume", &id, "--questions-dir", "q"]).succeeds();
    world.answer_to("Second?", "y");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(told(&world), "y");
}
