//! Questions that agents post as files, and answers in files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::gate::wait_until;
use crate::invocation::Invocation;
use crate::world::World;

/// A chain whose agent writes a question into a folder, says so, and replies.
fn posting(question: &str) -> (World, String) {
    let world = World::new();
    let id = spawn_posting(&world, question).run().started();
    (world, id)
}

fn spawn_posting<'world>(world: &'world World, question: &str) -> Invocation<'world> {
    world.file("question.json", question);
    world.file(
        "root.md",
        "run mkdir -p q/pending && cp question.json q/pending/q1.json\nend QUESTION_POSTED:q1\nreply over\n",
    );
    fs::create_dir(world.project().join("q")).expect("it can be made");
    world.command(["spawn", "root.md", "--questions-dir", "q"])
}

const WHEN: &str = r#"{"id": "q1", "question": "When?", "options": [{"key": "mon", "label": "Monday"}, "tue"],
    "context": "It rains.", "asked_by": "planner", "created_at": "2026-01-01T00:00:00Z", "timeout": null}"#;

fn file(world: &World, name: &str) -> PathBuf {
    world.project().join("q").join(name)
}

/// The answer that the agent was last told.
fn delivered(world: &World) -> String {
    let log = world.log();
    let prompt = &log.starts.last().expect("it was started").prompt;
    let (_, told) = prompt.split_once("result of `QUESTION_POSTED:").expect("it was told an answer");
    told.split_once(":\n").expect("a heading").1.trim_end().to_owned()
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
    assert_eq!(delivered(&world), "mon");
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
    assert!(outcome.stderr.contains("/answered/q1.json is not JSON: EOF while parsing a string"), "{outcome}");
    fs::write(file(&world, "answered/q1.json"), r#"{"answer": "tue"}"#).expect("it can be written");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains(" done: over"));
    assert_eq!(delivered(&world), "tue");
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
        outcome.stderr.contains("/answered/d.json has an answer from before the end of its agent's turn"),
        "{outcome}"
    );
    let prepared = file(&world, "answered/d.json");
    fs::set_permissions(&prepared, fs::Permissions::from_mode(0o600)).expect("it is theirs");
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    let listed = world.run(&["questions"]);
    assert!(listed.stdout.contains("/answered/d.json has an answer from before"), "{listed}");
    world.answer("no");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.contains(" done: over"));
    assert_eq!(delivered(&world), "no");
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
    assert_eq!(delivered(&world), "now");
}

#[test]
fn what_ask_refuses_is_refused_here_too() {
    let (world, id) = posting(r#"{"question": "Which?", "options": ["a", "a"], "deadline": "2027-01-01"}"#);
    let asked = || world.run(&["questions", "--json"]).json()[0]["question"].as_str().expect("a text").to_owned();
    assert!(asked().contains("q/pending/q1.json has a time that cannot be read (\"2027-01-01\")"), "{}", asked());
    fs::write(file(&world, "pending/q1.json"), r#"{"question": "Which?", "options": ["a", "a"]}"#).expect("writable");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert!(asked().contains("cannot be asked like this: two options have the key \"a\""), "{}", asked());
    fs::write(file(&world, "pending/q1.json"), r#"{"question": "Which?", "options": ["a", "b"]}"#).expect("writable");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer_to("Which?", "b");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(delivered(&world), "b");
}

#[test]
fn the_file_of_an_expired_question_is_moved_too() {
    let (world, id) = posting(r#"{"question": "When?", "expires_at": "2100-01-01T00:00:00Z", "default": "never"}"#);
    world.questions_expire();
    world.run(&["resume", &id]).prints("over");
    let prompt = world.log().starts[1].prompt.clone();
    assert!(prompt.contains("), which expired, so its default is used:\nnever\n"), "{prompt}");
    assert!(!file(&world, "pending/q1.json").exists());
    let filed = read(&world, "answered/q1.json");
    assert_eq!(
        (&filed["status"], &filed["default"], &filed["answer"]),
        (&"expired".into(), &"never".into(), &Value::Null)
    );
}

fn is_answered(world: &World, with: &str) -> bool {
    let filed = fs::read(file(world, "answered/q1.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let is_there = filed.is_some_and(|filed: Value| filed["answer"] == with && filed["status"] == "answered");
    is_there && !file(world, "pending/q1.json").exists()
}

#[test]
fn a_folder_that_was_away_is_filed_into_once_it_is_back() {
    for command in [&["resume", "ID"][..], &["resume", "--all"], &["questions"], &["watch"]] {
        let (world, id) = posting(WHEN);
        let away = world.project().join("away");
        fs::rename(file(&world, ""), &away).expect("it can be moved");
        world.answer("tue");
        let outcome = world.run(&["resume", &id]);
        outcome.prints("over");
        let missing = format!(
            "{} does not exist; a later resume writes it",
            file(&world, "").display().to_string().trim_end_matches('/')
        );
        assert!(outcome.stderr.contains(&missing), "{outcome}");
        assert_eq!(world.run(&["resume", &id, "--json"]).json()["unwritten_answers"].as_array().map(Vec::len), Some(1));
        let running = (command == ["watch"]).then(|| world.command(["watch"]).start());
        fs::rename(&away, file(&world, "")).expect("it can be moved");
        match running {
            Some(watch) => {
                wait_until("it is filed", || is_answered(&world, "tue"));
                watch.signal(rustix::process::Signal::TERM);
                watch.ends().succeeds();
            }
            None => {
                let words: Vec<_> = command.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
                world.run(&words).succeeds();
            }
        }
        assert!(is_answered(&world, "tue"), "{command:?}");
        fs::remove_dir_all(file(&world, "answered")).expect("it can be removed");
        let outcome = world.run(&["resume", &id]);
        outcome.prints("over");
        assert!(
            !outcome.stderr.contains("answered") && !file(&world, "answered").exists(),
            "it is written once: {outcome}"
        );
    }
}

#[test]
fn an_earlier_question_of_the_same_name_is_left_alone() {
    let world = World::new();
    let post =
        |question: &str| format!("run mkdir -p q/pending && cp {question} q/pending/q1.json\nend QUESTION_POSTED:q1\n");
    world.file("one.json", r#"{"question": "One?"}"#);
    world.file("two.json", r#"{"question": "Two?"}"#);
    world.file("root.md", format!("{}{}reply over\n", post("one.json"), post("two.json")));
    fs::create_dir(world.project().join("q")).expect("it can be made");
    let id = world.run(&["spawn", "root.md", "--questions-dir", "q"]).started();
    fs::rename(file(&world, ""), world.project().join("away")).expect("it can be moved");
    world.answer("first");
    world.run(&["resume", &id]).succeeds();
    for _ in 0..2 {
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        assert!(file(&world, "pending/q1.json").exists() && !file(&world, "answered").exists());
    }
    // The answer to another question of this name, as it is filed.
    fs::create_dir(file(&world, "answered")).expect("it can be made");
    let filed = json!({"answer": "other", "status": "answered", "recorded_as": id});
    fs::write(file(&world, "answered/q1.json"), filed.to_string()).expect("it can be written");
    let outcome = world.run(&["resume", &id]);
    outcome.prints("SGN_PEND_ONGOING");
    let shown = world.run(&["questions", &id]);
    assert!(shown.stdout.contains("has the answer to an earlier question of this name"), "{shown}");
    world.answer("second");
    world.run(&["resume", &id]).prints("over");
    assert_eq!(delivered(&world), "second");
    assert!(is_answered(&world, "second"));
}

#[test]
fn it_is_said_everywhere_why_a_file_is_no_answer() {
    let (world, id) = posting(r#"{"question": "When?", "options": ["mon", "tue"], "free_text": false}"#);
    fs::create_dir(file(&world, "answered")).expect("it can be made");
    let path = file(&world, "answered/q1.json");
    let makes: [(&str, &dyn Fn()); 5] = [
        ("has an answer that does not count: \"wed\" is not one of the options", &|| {
            fs::write(&path, r#"{"answer": "wed"}"#).expect("it can be written");
        }),
        ("has no answer: a text under `answer`", &|| {
            fs::write(&path, r#"{"said": "mon"}"#).expect("it can be written");
        }),
        ("is not JSON: EOF", &|| fs::write(&path, r#"{"answer": "mo"#).expect("it can be written")),
        ("is a directory", &|| fs::create_dir(&path).expect("it can be made")),
        ("is larger than 1 MiB", &|| {
            fs::File::create(&path).and_then(|file| file.set_len(10 << 20)).expect("it can be made");
        }),
    ];
    for (why, make) in makes {
        let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
        make();
        let said = format!("{} {why}", path.display());
        let resumed = world.run(&["resume", &id]);
        resumed.prints("SGN_PEND_ONGOING");
        assert!(resumed.stderr.contains(&said), "{resumed}");
        assert!(
            resumed.stderr.contains(&format!("hint: correct {}, or:\nhint: agent-cli answer ", path.display())),
            "{resumed}"
        );
        for command in [&["questions"][..], &["questions", &id], &["show", &id]] {
            let shown = world.run(command);
            assert!(shown.stdout.contains(&said), "{shown}");
        }
        let listed = world.run(&["questions", "--json"]).json()[0].clone();
        let waiting = world.run(&["resume", &id, "--json"]).json()["waiting_on"][0].clone();
        let shown = world.run(&["show", &id, "--json"]).json()["waiting_on"][0].clone();
        for found in [listed, waiting, shown] {
            let seen = &found["answer_file"];
            assert_eq!((&seen["path"], &seen["state"]), (&json!(path), &json!("refused")), "{found}");
            assert!(seen["why"].as_str().is_some_and(|text| text.starts_with(why)), "{found}");
        }
    }
    fs::remove_file(&path).expect("it can be removed");
    fs::write(&path, r#"{"answer": "wed"}"#).expect("it can be written");
    world.answer("mon");
    world.run(&["resume", &id]).prints("over");
    assert!(is_answered(&world, "mon"));
    assert_eq!(read(&world, "answered/q1.json")["unused"], r#"{"answer": "wed"}"#, "nothing is lost");
}

#[test]
fn a_posted_question_expires_as_the_user_wants_if_it_does_not_say_itself() {
    for (question, expires) in [
        (r#"{"question": "When?"}"#, None),
        (r#"{"question": "Wh"#, None),
        (r#"{"question": "When?", "expires_at": "2100-01-01T00:00:00Z"}"#, Some("2100-01-01T00:00:00Z")),
    ] {
        let world = World::new();
        let id = spawn_posting(&world, question).with("AGENT_CLI_QUESTIONS_EXPIRE", "3d").run().started();
        fs::write(file(&world, "pending/q1.json"), question.replace("Wh\"", "When?\"}")).expect("it can be written");
        let asked = || world.run(&["questions", "--json"]).json()[0].clone();
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        match expires {
            Some(expires) => assert_eq!(asked()["expires_at"], expires),
            None => assert!(world.run(&["questions"]).stdout.contains("(in 3 d)"), "{}", asked()),
        }
        world.questions_expire();
        world.run(&["resume", &id]).prints("over");
        assert_eq!(delivered(&world), "the question has expired: no answer until 2026-01-01T00:00:00Z");
        assert_eq!(read(&world, "answered/q1.json")["status"], "expired");
    }
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
    assert_eq!(delivered(&world), "go on");
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
    assert_eq!(delivered(&world), "y");
}

#[test]
fn an_answer_that_comes_as_soon_as_the_question_is_listed_counts() {
    let world = World::new();
    let gate = world.gate("point");
    let place = world.project().join("point");
    let hold = format!("keep_copy.before {}", place.display());
    let spawned = spawn_posting(&world, WHEN).with("AGENT_CLI_HOLD", &hold).start();
    gate.reached_by(1);
    assert_eq!(world.run(&["questions", "--json"]).json()[0]["question"], "When?");
    fs::create_dir_all(file(&world, "answered")).expect("it can be made");
    fs::write(file(&world, "answered/q1.json"), r#"{"answer": "tue"}"#).expect("it can be written");
    gate.open_for_one();
    spawned.ends().prints("over");
    assert_eq!(delivered(&world), "tue");
}
