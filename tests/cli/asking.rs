//! Questions with options, defaults and an expiry, and several at once.

use serde_json::{Value, json};

use crate::world::World;

/// An agent that asks so and replies with the result.
fn asking(arguments: &str) -> (World, String) {
    let world = World::with_hooks();
    world.file("root.md", format!("run agent-cli ask {arguments}\nreply {{result}}\n"));
    let root = world.spawn_paused("root.md");
    (world, root)
}

const DEPLOY: &str =
    "'Deploy?' --option now --option later='in the morning' --option 'not at all' --context 'All tests pass.'";

#[test]
fn only_an_option_is_an_answer() {
    let (world, root) = asking(DEPLOY);
    insta::assert_snapshot!(world.run(&["questions"]), @"
    QUESTION  ASKED  BY       CHAIN
    [ID2:8]  [AGE]    root.md  [ID1:8]  Deploy?
              agent-cli questions [ID2:8] shows 1 more line, 15 characters
                1. now
                2. later: in the morning
                3. not at all
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.command(["questions", &root]).on_terminal(40), @"
    [ID2:8] of root.md in the chain
    [ID1:8], [TIME] ([AGE] ago)
      │  Deploy?
    context:
      │  All tests pass.
      1. now
      2. later
      │  in the morning
      3. not at all
    hint: agent-cli answer [ID2:8] 1 (the
      number or key of an option)
    --- exit status: 0
    ");
    let question = world.question();
    insta::assert_snapshot!(world.run(&["answer", &question, "at once"]), @r#"
    --- stderr
    error: "at once" is not one of the options: choose one of 1. now, 2. later, 3. not at all
    hint: agent-cli answer [ID2:8] 1
    --- exit status: 2
    "#);
    for refused in ["4", "Now", "now, later"] {
        world.run(&["answer", &question, refused]).exits_with(2);
        world.run(&["answer", &question, "--text", refused]).exits_with(2);
    }
    world.run(&["answer", &question, "--text", "1"]).exits_with(2);
    world.run(&["answer", &question, "3"]).succeeds();
    world.run(&["answer", &question, "--replace", "tomorrow"]).exits_with(2);
    world.run(&["answer", &question, "--replace", " later\n"]).succeeds();
    world.run(&["resume", &root]).prints("later");
}

#[test]
fn several_options_and_free_text_are_answers_if_the_agent_says_so() {
    let (world, root) = asking("'Which?' --option unit --option browser --option '3' --multiple");
    world.run(&["answer", &world.question(), "unit,all"]).exits_with(2);
    world.answer("2, unit,2");
    world.run(&["resume", &root]).prints("browser, unit");

    let (world, root) = asking("'Which?' --option unit --option browser --free-text");
    insta::assert_snapshot!(world.run(&["questions"]), @"
    QUESTION  ASKED  BY       CHAIN
    [ID2:8]  [AGE]    root.md  [ID1:8]  Which?
                1. unit
                2. browser
                (choose one, or answer with any text)
    --- exit status: 0
    ");
    let hinted = world.run(&["resume", &root]).stderr.clone();
    assert!(hinted.contains(" 1 (the number or key of an option, or any text), then "), "{hinted}");
    world.run(&["answer", &world.question(), "7"]).exits_with(2);
    world.answer(" none of \"them\" ");
    assert_eq!(world.run(&["resume", &root]).stdout, " none of \"them\" \n");
}

#[test]
fn options_whose_keys_look_like_numbers_of_others_have_no_numbers() {
    let (world, root) = asking("'How many?' --option 2='two of them' --option 1 --option none");
    let question = world.question();
    insta::assert_snapshot!(world.run(&["questions", &question]), @"
    [ID2:8] of root.md in the chain [ID1:8], [TIME] ([AGE] ago)
      │  How many?
      - 2
      │  two of them
      - 1
      - none
    --- stderr
    hint: agent-cli answer [ID2:8] 2 (the key of an option)
    --- exit status: 0
    ");
    assert!(world.run(&["questions"]).stdout.contains("  - 2: two of them\n"));
    insta::assert_snapshot!(world.run(&["answer", &question, "3"]), @r#"
    --- stderr
    error: "3" is not one of the options: choose one of the keys 2, 1, none
    hint: agent-cli answer [ID2:8] 2
    --- exit status: 2
    "#);
    world.answer("1");
    world.run(&["resume", &root]).prints("1");
}

#[test]
fn the_whole_form_is_in_the_json() {
    let (world, root) = asking(&format!("{DEPLOY} --default later --expires 2100-01-01T01:00:00+01:00"));
    let form = json!({
        "question": "Deploy?", "context": "All tests pass.", "multiple": false, "free_text": false, "default": "later",
        "expires_at": "2100-01-01T00:00:00Z",
        "options": [{"key": "now", "description": ""}, {"key": "later", "description": "in the morning"},
            {"key": "not at all", "description": ""}],
    });
    let shown = world.run(&["show", &root, "--json"]).json();
    let listed = world.run(&["questions", "--json"]).json();
    let waiting = world.run(&["resume", &root, "--json"]).json();
    for found in [&listed[0], &shown["waiting_on"][0], &waiting["waiting_on"][0]] {
        for (key, value) in form.as_object().expect("an object") {
            assert_eq!(&found[key], value, "{key} of {found}");
        }
    }
    for command in [&["ls"][..], &["questions"], &["questions", &root], &["show", &root]] {
        let shown = world.run(command);
        assert!(shown.stdout.contains("expires 2100-01-01 00:00 (in "), "{shown}");
    }
    assert!(world.run(&["resume", &root]).stderr.contains("(expires 2100-01-01 00:00 (in "));
}

#[test]
fn an_expired_question_fails_and_takes_no_answer() {
    let (world, root) = asking("'When?' --expires 3d");
    let question = world.question();
    world.run(&["resume", &root]).prints("SGN_PEND_ONGOING");
    world.questions_expire();
    let resumed = world.run(&["resume", &root]);
    resumed.prints("Exit code 1\nthe question has expired: no answer until 2026-01-01T00:00:00Z");
    insta::assert_snapshot!(world.run(&["answer", &question, "Jan 1st"]), @"
    --- stderr
    error: question [ID2:8] expired at [TIME] ([AGE] ago) without an answer
    hint: agent-cli questions [ID2:8] shows it
    --- exit status: 2
    ");
    world.run(&["answer", &question, "--replace", "Jan 1st"]).exits_with(2);
    insta::assert_snapshot!(world.run(&["questions", "--all"]), @"
    QUESTION  ASKED  BY       CHAIN
    [ID2:8]  [AGE]    root.md  [ID1:8]  When?
              -> no answer in time
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions", &question]), @"
    [ID2:8] of root.md in the chain [ID1:8], [TIME] ([AGE] ago)
      │  When?
    no answer in time (expired 2026-01-01 00:00)
    --- exit status: 0
    ");
    let listed = world.run(&["questions", "--all", "--json"]).json();
    assert_eq!((&listed[0]["answer"], &listed[0]["answered"]), (&Value::Null, &Value::Null));
    assert!(listed[0]["expired"].is_string(), "{listed}");
    assert_eq!(world.events(&root, "expired").len(), 1);
    assert_eq!(world.events(&root, "answered").len(), 0);
}

#[test]
fn an_agent_whose_call_was_not_suspended_is_told_of_the_expiry_in_its_prompt() {
    let world = World::new();
    world.file("root.md", "run agent-cli ask 'When?' --expires 3d\nreply {results}\n");
    let root = world.command(["spawn", "root.md", "--no-hooks"]).run().started();
    world.questions_expire();
    world.run(&["resume", &root]).prints("expired: the question has expired: no answer until 2026-01-01T00:00:00Z");
    let prompt = world.log().starts[1].prompt.clone();
    assert!(
        prompt.contains("), which expired:\nthe question has expired: no answer until 2026-01-01T00:00:00Z"),
        "{prompt}"
    );
}

#[test]
fn a_default_counts_and_is_named_as_one() {
    let (world, root) = asking(&format!("{DEPLOY} --default later --expires 90m"));
    world.questions_expire();
    world.run(&["resume", "--all"]).succeeds();
    let said = "later\n\n(This is the default: no answer until 2026-01-01T00:00:00Z.)";
    world.run(&["resume", &root]).prints(said);
    insta::assert_snapshot!(world.run(&["questions", "--all"]), @"
    QUESTION  ASKED  BY       CHAIN
    [ID2:8]  [AGE]    root.md  [ID1:8]  Deploy?
              agent-cli questions [ID2:8] shows 1 more line, 15 characters
              -> no answer in time, so the default counts: later
    --- exit status: 0
    ");
    assert!(world.run(&["show", &root]).stdout.contains("which expired: later"));
}

#[test]
fn an_answer_before_anybody_notices_the_expiry_counts() {
    let (world, root) = asking("'When?' --default never --expires 3d");
    world.questions_expire();
    let listed = world.run(&["questions"]);
    assert!(listed.stdout.contains("expired 2026-01-01 00:00"), "{listed}");
    world.answer("now");
    world.run(&["resume", &root]).prints("now");
}

const QUESTIONS: &str = r#"[
    {"name": "when", "question": "When?", "options": ["now", {"key": "later", "description": "in the morning"}]},
    {"question": "Why?", "context": "Nobody knows.", "expires": "3d"},
    {"name": "who", "question": "Who?", "default": "nobody", "expires": "2100-01-01T00:00:00Z"}
]"#;

#[test]
fn several_questions_have_one_result() {
    for world in [World::with_hooks(), World::new()] {
        world.file("questions.json", QUESTIONS);
        world.file("root.md", "run agent-cli ask --questions questions.json\nreply {result}\n");
        let root = world.spawn_paused("root.md");
        assert_eq!(world.questions().len(), 3);
        world.answer_to("When?", "2");
        let open = world.run(&["questions", "--json"]).json();
        assert_eq!(
            [&open[0]["asked_together"], &open[1]["asked_together"]],
            [&json!({"number": 2, "of": 3}), &json!({"number": 3, "of": 3})]
        );
        for shown in [&["questions"][..], &["questions", &root]] {
            assert!(world.run(shown).stdout.contains("2 of 3 asked together"), "{shown:?}");
        }
        world.answer_to("Who?", "a \"b\"\nc");
        world.run(&["resume", &root]).prints("SGN_PEND_ONGOING");
        let only_one = world.question();
        world.questions_expire();
        let told = world.run(&["resume", &root]);
        let result: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        let expected = json!([
            {"name": "when", "question": "When?", "answer": "later", "expired": false},
            {"question": "Why?", "answer": null, "expired": true},
            {"name": "who", "question": "Who?", "answer": "a \"b\"\nc", "expired": false},
        ]);
        assert_eq!(result, expected);
        world.run(&["answer", &only_one, "too late"]).exits_with(2);
    }
}

#[test]
fn an_answer_to_one_of_several_is_replaced_until_it_is_delivered() {
    let world = World::with_hooks();
    world.file("questions.json", r#"[{"question": "A?"}, {"question": "B?"}]"#);
    world.file("root.md", "run agent-cli ask --questions questions.json\nreply {result}\n");
    let root = world.spawn_paused("root.md");
    let questions = world.questions();
    world.answer_to("A?", "1");
    world.answer_to("B?", "2");
    world.run(&["answer", &questions[0].1, "--replace", "3"]).succeeds();
    let result: Value = serde_json::from_str(&world.run(&["resume", &root]).stdout).expect("JSON");
    assert_eq!((&result[0]["answer"], &result[1]["answer"]), (&json!("3"), &json!("2")));
    world.run(&["answer", &questions[1].1, "--replace", "4"]).exits_with(2);
}

#[test]
fn a_bad_question_is_not_asked() {
    let world = World::with_hooks();
    world.file("questions.json", r#"[{"question": "A?", "name": "a"}, {"question": "B?", "optoins": []}]"#);
    world.file("twice.json", r#"[{"question": "A?", "name": "a"}, {"question": "B?", "name": "a"}]"#);
    std::fs::write(world.home().join("secret"), "hunter2").expect("writable");
    for (arguments, said) in [
        ("'' --option a", "the question is empty"),
        ("'Q?' --option a --option a", "two options have the key \"a\""),
        ("'Q?' --option '=x'", "the key of an option is empty"),
        (
            "'Q?' --option a --default b",
            "the default \"b\" is not an answer: \"b\" is not one of the options: choose one of 1. a",
        ),
        ("'Q?' --multiple", "several answers need options to choose from"),
        ("'Q?' --expires 2026-01-01T00:00:00Z", "the question would have expired at 2026-01-01T00:00:00Z"),
        ("'Q?' --expires soon", "\"soon\" is neither a duration"),
        ("'Q?' --context @missing.txt", "cannot read missing.txt: No such file"),
        ("'Q?' --context @../home/secret", "../home/secret is outside your directory"),
        ("--questions questions.json", "the questions cannot be read: unknown field `optoins`"),
        ("--questions twice.json", "two questions have the name a"),
        ("--questions questions.json 'Q?'", "cannot be used with"),
        ("'Q?' --colour red", "unexpected argument"),
    ] {
        world.file("root.md", format!("run agent-cli ask {arguments} 2>&1\nreply {{result}}\n"));
        world.file("plain.md", format!("run agent-cli ask {arguments}\nreply {{result}}\n"));
        for file in ["root.md", "plain.md"] {
            let replied = world.run(&["spawn", file]);
            assert!(replied.stdout.contains(said), "{arguments}: {replied}");
        }
    }
    assert_eq!(world.questions(), []);
}

/// Each question may run a command of a person.
#[test]
fn a_chain_asks_so_many_questions_and_no_more_until_a_person_answers() {
    let world = World::new().with("AGENT_CLI_QUESTIONS_PER_HOUR", "3");
    let all = "for i in 1 2 3 4 5; do agent-cli ask Q$i; done 2>&1 | grep -c 'has asked 3 questions within an hour'";
    world.file("root.md", format!("run {all} >refused\nreply over\n"));
    world.run(&["spawn", "root.md"]);
    assert_eq!(std::fs::read_to_string(world.project().join("refused")).expect("it ran").trim(), "2");
    assert_eq!(world.questions().len(), 3);
    let bad = World::new().with("AGENT_CLI_QUESTIONS_PER_HOUR", "many");
    bad.file("root.md", "reply over\n");
    bad.run(&["spawn", "root.md"]).exits_with(2);
}
