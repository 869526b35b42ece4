//! The main job: a chain of agents, at the end of which one asks a person.

use crate::world::World;

/// Four agents deep: the last one asks for a birthday. The files are those that people are shown.
fn birthday_chain() -> World {
    let world = World::new();
    world.file("ins1.md", include_str!("../../examples/birthday/ins1.md"));
    world.file("ins2.md", include_str!("../../examples/birthday/ins2.md"));
    world.file("ins3.md", include_str!("../../examples/birthday/ins3.md"));
    world.file("ins4.md", include_str!("../../examples/birthday/ins4.md"));
    world
}

#[test]
fn a_chain_pauses_at_a_question_and_carries_on_with_the_answer() {
    let world = birthday_chain();
    let id = world.run(&["spawn", "ins1.md"]).started();
    assert_eq!(world.log().order(), ["ins1.md", "ins2.md", "ins3.md", "ins4.md"]);

    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.starts(), 8, "each agent was started once more");
}

#[test]
fn show_and_resume_say_how_the_chain_continues() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    let last = world.session(3);
    let shown = world.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["waiting_on"], serde_json::json!([]));
    let below = &shown["waiting_below"];
    assert_eq!((&below[0]["agent"], &below[0]["question"]), (&last.clone().into(), &"When is your birthday?".into()));
    let question = world.question();
    let shown = world.run(&["show", &id]);
    let asked = format!("{}, which waits for an answer to {}: When is your birthday?\n", &last[..8], &question[..8]);
    assert!(shown.stdout.contains(&asked), "{shown}");
    let hint = format!("hint: agent-cli answer {} ANSWER, then agent-cli resume {}\n", &question[..8], &id[..8]);
    assert_eq!(shown.stderr, hint);

    world.answer("Jan 1st");
    let resumed = world.run(&["resume", &last]);
    resumed.prints("Jan 1st");
    assert_eq!(resumed.stderr, format!("hint: agent-cli resume {} continues the chain\n", &id[..8]));
    assert_eq!(world.run(&["resume", &last, "--json"]).json()["next"], format!("agent-cli resume {id}"));
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.run(&["resume", &last]).stderr, "", "the chain has ended");
    insta::assert_snapshot!(world.run(&["questions", &id]), @"
    --- stderr
    no open questions
    hint: agent-cli questions [ID1] --all shows the closed ones
    --- exit status: 0
    ");
}

#[test]
fn waiting_costs_nothing() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    for _ in 0..3 {
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    }
    assert_eq!(world.starts(), 4);
}

#[test]
fn a_reply_is_printed_again_and_starts_nothing() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    for _ in 0..3 {
        world.run(&["resume", &id]).prints("Jan 1st");
    }
    assert_eq!(world.starts(), 8);
}

#[test]
fn a_chain_runs_one_agent_at_a_time() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn an_agent_is_told_what_it_asked_for_and_nothing_else() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    let prompts: Vec<String> = log.starts[4..].iter().map(|start| world.named(&start.prompt)).collect();
    insta::assert_snapshot!(prompts.join("\n---\n"), @r#"
    SGN_RESUME

    result of `agent-cli ask "When is your birthday?"` ([ID3:8]):
    Jan 1st
    ---
    SGN_RESUME

    result of `agent-cli spawn [PROJECT]/ins4.md` ([ID2:8]):
    Jan 1st
    ---
    SGN_RESUME

    result of `agent-cli spawn [PROJECT]/ins3.md` ([ID4:8]):
    Jan 1st
    ---
    SGN_RESUME

    result of `agent-cli spawn [PROJECT]/ins2.md` ([ID5:8]):
    Jan 1st
    "#);
}

#[test]
fn every_attempt_forks_what_was_kept_and_is_the_same_session() {
    let world = birthday_chain();
    let id = world.spawn_paused("ins1.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    assert_eq!(log.starts[0].session(), id, "a frame's id is its session");
    for (first, later) in log.starts[..4].iter().zip(log.starts[4..].iter().rev()) {
        assert_eq!(first.value_of("--resume"), None);
        assert!(later.value_of("--resume").expect("it continues").contains(&format!("/frames/{}/", first.session())));
        assert!(later.argv.contains(&"--fork-session".to_owned()));
        assert_eq!(later.session(), first.session());
        assert_eq!(later.cwd, first.cwd);
    }
    assert_eq!(world.transcripts().len(), 4, "one for each agent");
}

#[test]
fn an_agent_may_reply_at_once() {
    let world = World::new();
    world.file("hi.md", "reply hi\n");
    world.run(&["spawn", "hi.md"]).prints("hi");
}
