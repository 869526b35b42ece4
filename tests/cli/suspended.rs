//! Requests whose tool call is suspended: the agent sees its call and the result, and no signal.

use crate::world::World;

/// Four agents deep: the last one asks for a birthday.
fn birthday_chain() -> World {
    let world = World::with_hooks();
    world.file("ins1.md", "spawn ins2.md\nreply {result}\n");
    world.file("ins2.md", "spawn ins3.md\nreply {result}\n");
    world.file("ins3.md", "spawn ins4.md\nreply {result}\n");
    world.file("ins4.md", "ask When is your birthday?\nreply {result}\n");
    world
}

/// How many responses the model has given in the tree: the stand-in counts a thousand tokens for each.
fn answers_of_the_model(world: &World, id: &str) -> u64 {
    let told = world.run(&["resume", id, "--json"]).json();
    told["usage"]["input_tokens"].as_u64().expect("a number of tokens") / 1000
}

#[test]
fn a_chain_pauses_inside_its_calls_and_goes_on_with_the_answer() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    assert_eq!(world.log().order(), ["ins1.md", "ins2.md", "ins3.md", "ins4.md"]);
    assert_eq!(answers_of_the_model(&world, &id), 8, "each has read its file and made its call");

    for _ in 0..3 {
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    }
    assert_eq!(world.starts(), 4, "waiting costs nothing");

    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!((world.starts(), answers_of_the_model(&world, &id)), (8, 12));
    let log = world.log();
    assert_eq!(log.most_alive(), 1);
    assert!(log.starts[4..].iter().all(|start| !start.is_prompted()), "nobody was told anything but the result");
}

#[test]
fn every_attempt_forks_what_was_kept_and_is_the_same_session() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    for (first, later) in log.starts[..4].iter().zip(log.starts[4..].iter().rev()) {
        assert!(later.value_of("--resume").expect("it continues").contains(&format!("/frames/{}/", first.session())));
        assert_eq!(later.session(), first.session());
        assert!(later.argv.contains(&"--fork-session".to_owned()));
        assert_eq!(later.env("AGENT_CLI_AGENT_ID"), first.env("AGENT_CLI_AGENT_ID"));
    }
}

#[test]
fn an_agent_asks_again_and_again() {
    let world = World::with_hooks();
    world.file("talk.md", "ask One?\nask Two {result}?\nask Three {result}?\nreply {results}\n");
    let id = world.spawn_paused("talk.md");
    for answer in ["1", "2"] {
        world.answer(answer);
        assert_eq!(world.run(&["resume", &id]).started(), id);
    }
    world.answer("3");
    world.run(&["resume", &id]).prints("1; 2; 3");
    assert_eq!(world.starts(), 4);
}

#[test]
fn a_file_is_waited_for_inside_the_call() {
    let world = World::with_hooks();
    world.file("root.md", "wait --file sign\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let sign = world.file("sign", "");
    world.run(&["resume", &id]).prints(&format!("it exists: {}", sign.display()));
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_command_is_waited_for_with_a_signal() {
    let world = World::with_hooks();
    world.file("root.md", "wait --command 'test -e sign'\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.file("sign", "");
    world.run(&["resume", &id]).prints("the command succeeded");
    assert!(world.log().starts[1].prompt.starts_with("SGN_RESUME\n"));
}

#[test]
fn any_answer_is_the_result_to_the_byte() {
    for answer in [
        "two\n\nparagraphs\n\n  indented",
        "\"quoted\" 'and' `ticked`, $HOME \\n $(date) %s",
        "ünï✓ \u{1f382}",
        "'",
        "--help",
        "-- -n",
        "SGN_PEND_STARTED (4f2c1a90-0000-4000-8000-000000000000)!",
        "No deferred tool marker found",
        " blanks before and after \n",
        "the last line ends\n",
        &"0123456789abcde\n".repeat(65536),
        &"x".repeat(30_001),
        &"x".repeat(30_000),
    ] {
        let world = World::with_hooks();
        world.file("root.md", "ask When?\nreply <{result}>\n");
        let id = world.spawn_paused("root.md");
        world.command(["answer", &world.question()]).reads(format!("{answer}\n")).run().succeeds();
        let outcome = world.run(&["resume", &id]);
        outcome.succeeds();
        let shown: String = answer.chars().take(60).collect();
        assert!(outcome.stdout == format!("<{answer}>\n"), "{shown:?} of {} bytes was changed", answer.len());
        assert_eq!(world.starts(), 2);
    }
}

#[test]
fn an_answer_that_is_a_signal_can_be_passed_on() {
    for signal in ["SGN_PEND_STARTED", "SGN_PEND_ONGOING", "SGN_UNHANDLED", "SGN_RESUME"] {
        let world = World::with_hooks();
        world.file("root.md", "spawn child.md\nreply {result}\n");
        world.file("child.md", "ask When?\nreply {result}\n");
        let id = world.spawn_paused("root.md");
        world.answer(signal);
        world.run(&["resume", &id]).prints(signal);
        assert_eq!(world.starts(), 4);
    }
}

#[test]
fn a_child_may_say_nothing() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply <{result}>\n");
    world.file("child.md", "bigreply 0\n");
    world.run(&["spawn", "root.md"]).prints("<>");
}

#[test]
fn a_child_that_fails_fails_the_call() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply I was told: {result}\n");
    world.file("child.md", "fail the API is down\n");
    world.run(&["spawn", "root.md"]).prints("I was told: Exit code 1\nthe API is down");
    assert_eq!(world.starts(), 3);
}

#[test]
fn two_requests_of_one_message_come_back_together() {
    let world = World::with_hooks();
    world.file("root.md", "ask One? ++ ask Two?\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer_to("Two?", "2");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer_to("One?", "1");
    assert_eq!(world.starts(), 1);
    world.run(&["resume", &id]).prints("1; 2");
    assert_eq!(world.starts(), 2);
}

#[test]
fn children_of_one_message_run_side_by_side() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", "spawn a.md ++ spawn b.md ++ spawn a.md\nreply {results}\n");
    world.file("a.md", "hold gate\nreply A\n");
    world.file("b.md", "hold gate\nreply B\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(3);
    (0..3).for_each(|_| gate.open_for_one());
    spawn.ends().prints("A; B; A");
}

#[test]
fn calls_beside_a_request_are_run_once() {
    for message in ["run echo x >> marks ++ ask When?", "ask When? ++ run echo x >> marks"] {
        let world = World::with_hooks();
        world.file("root.md", format!("{message}\nreply {{results}}\n"));
        let id = world.spawn_paused("root.md");
        world.answer("now");
        world.run(&["resume", &id]).prints("now");
        assert_eq!(world.marks(), "x\n");
        assert_eq!(world.starts(), 2);
    }
}

#[test]
fn a_suspended_request_and_one_that_was_a_program_come_back_together() {
    let world = World::with_hooks();
    world.file("later.sh", "agent-cli ask One?\n");
    world.file("root.md", "run sh later.sh &\nask Two?\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer_to("One?", "1");
    world.answer_to("Two?", "2");
    world.run(&["resume", &id]).succeeds();
    let reply = world.run(&["resume", &id]).stdout;
    assert!(reply.contains('1') && reply.contains('2'), "{reply}");
    assert_eq!(world.starts(), 2);
}

#[test]
fn of_several_resumes_one_carries_the_chain_on() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    let running: Vec<_> = (0..8).map(|_| world.command(["resume", &id]).start()).collect();
    for resume in running {
        let outcome = resume.ends();
        outcome.succeeds();
        assert!(["Jan 1st\n", "SGN_PEND_ONGOING\n"].contains(&outcome.stdout.as_str()), "{outcome}");
    }
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!((world.starts(), world.log().most_alive()), (8, 1));
}

#[test]
fn another_process_is_named_to_those_who_cannot_resume() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", "ask When?\nhold gate\nreply done\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let first = world.command(["resume", &id]).start();
    gate.reached_by(1);
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    SGN_PEND_ONGOING
    --- stderr
    another process (process [PID]) is running [ID1:8]
    --- exit status: 0
    ");
    gate.open_for_one();
    first.ends().prints("done");
}

#[test]
fn what_an_older_version_cannot_suspend_pauses_with_a_signal() {
    let world = World::with_hooks().with("STAND_IN_VERSION", "2.1.88");
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert!(world.log().starts[1].prompt.starts_with("SGN_RESUME\n"));
    let allowed = &world.log().starts[0].allowed;
    assert!(allowed.iter().any(|rule| rule == "Bash(agent-cli ask:*)"), "{allowed:?}");
}
