//! A wait that only the agent can judge: asking costs one start of the waiting agent, and leaves no trace.

use std::fs;

use crate::world::{World, files_below};

/// Three agents deep: the last one waits for a file that is recorded nowhere.
fn chain() -> World {
    let world = World::new();
    world.file("top.md", "spawn middle.md\nreply {result}\n");
    world.file("middle.md", "spawn leaf.md\nreply {result}\n");
    world.file("leaf.md", "decide sign\nreply {result}\n");
    world
}

#[test]
fn only_the_agent_that_waits_is_asked() {
    let world = chain();
    let id = world.spawn_paused("top.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let log = world.log();
    assert_eq!(log.order(), ["top.md", "middle.md", "leaf.md", "SGN_RESUME", "SGN_RESUME"]);
    let leaf = log.starts[2].session();
    let copy = world.kept(leaf).display().to_string();
    assert!(log.starts[3..].iter().all(|poll| poll.value_of("--resume") == Some(&copy)), "each poll forks the same");
    assert!(log.starts[3..].iter().all(|poll| poll.session() == leaf));
    assert!(log.starts[3..].iter().all(|poll| poll.prompt == "SGN_RESUME"));
}

#[test]
fn a_poll_leaves_nothing_behind() {
    let world = chain();
    let id = world.spawn_paused("top.md");
    let contents = || {
        let files = world.transcripts().into_iter().chain(files_below(&world.state().join("frames")));
        let transcripts = files.filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
        transcripts.map(|file| (fs::read(&file).expect("readable"), file)).collect::<Vec<_>>()
    };
    let before = contents();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(contents(), before);
}

#[test]
fn when_the_agent_sees_that_its_wait_is_over_the_chain_carries_on() {
    let world = chain();
    let id = world.spawn_paused("top.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("sign", "here it is\n");
    world.run(&["resume", &id]).prints("here it is");
    assert_eq!(world.starts(), 3 + 1 + 3);
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn a_new_wait_of_the_agent_is_reported() {
    let world = World::new();
    world.file("two.md", "decide first\ndecide second\nreply {result}\n");
    let id = world.spawn_paused("two.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("first", "1");
    assert_eq!(world.run(&["resume", &id]).started(), id, "it waits for something new, under the same id");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("second", "2");
    world.run(&["resume", &id]).prints("2");
}

#[test]
fn an_agent_that_does_not_know_why_it_was_resumed_waits_on() {
    let world = World::new();
    world.file("odd.md", "end SGN_PEND_STARTED\nonce end SGN_UNHANDLED\nreply done\n");
    let id = world.spawn_paused("odd.md");
    let outcome = world.run(&["resume", &id]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: the agent ended with SGN_UNHANDLED ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    world.run(&["resume", &id]).prints("done");
}

#[test]
fn a_signal_may_have_something_around_it() {
    for words in ["SGN_PEND_STARTED.", "SGN_PEND_STARTED (waiting for question.md)", "**SGN_PEND_STARTED**"] {
        let world = World::new();
        world.file("odd.md", format!("end {words}\nreply done\n"));
        let id = world.run(&["spawn", "odd.md"]).started();
        world.run(&["resume", &id]).prints("done");
    }
}

#[test]
fn a_signal_inside_a_sentence_counts_and_is_reported() {
    let world = World::new();
    // The instructions must not have the word.
    world.file("word", "SGN_PEND_STARTED");
    world.file(
        "odd.md",
        "run echo \"I created question.md. Replying $(cat word) to the caller.\"\nreply {result}\nreply done\n",
    );
    let outcome = world.run(&["spawn", "odd.md"]);
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] wrote SGN_PEND_STARTED inside a sentence, which counts as a signal
    [ID1:8] waits for something that only the agent can judge
    --- exit status: 0
    ");
    world.run(&["resume", &outcome.started()]).prints("done");
}

#[test]
fn a_word_that_an_agent_was_given_is_a_mention() {
    let world = World::new();
    let said = "the file says SGN_PEND_STARTED twice";
    world.file("reader.md", format!("end {said}\n"));
    world.run(&["spawn", "reader.md"]).prints(said);
    world.file("parent.md", "spawn reader.md\nreply it said: {result}\n");
    world.run(&["spawn", "parent.md"]).prints(&format!("it said: {said}"));
}

#[test]
fn a_signal_in_a_code_block_is_a_reply() {
    let world = World::new();
    world.file("protocol", "An agent says:\n```\nSGN_PEND_STARTED\n```\n");
    world.file("quote.md", "run cat protocol\nreply {result}\n");
    world.run(&["spawn", "quote.md"]).prints("An agent says:\n```\nSGN_PEND_STARTED\n```");
}

#[test]
fn an_agent_that_pauses_again_and_again_with_nothing_open_is_reported() {
    let world = World::new();
    world.file("again.md", "end SGN_PEND_STARTED\n".repeat(4) + "reply done\n");
    let id = world.spawn_paused("again.md");
    assert!(!world.run(&["resume", &id]).stderr.contains("in a row"));
    let outcome = world.run(&["resume", &id]);
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] ended its turn with SGN_PEND_STARTED 3 times in a row without an open request
    hint: each resume wakes it again; waiting with agent-cli ask or agent-cli wait costs nothing
    [ID1:8] waits for something that only the agent can judge
    --- exit status: 0
    ");
    assert!(world.run(&["resume", &id]).stderr.contains("4 times in a row"));
    world.run(&["resume", &id]).prints("done");
}
