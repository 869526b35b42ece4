//! Questions and answers.

use crate::gate::wait_until;
use crate::world::World;

fn asked() -> (World, String, String) {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When is your birthday?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let question = world.question();
    (world, id, question)
}

#[track_caller]
fn delivered(answer: &str) {
    let (world, id, question) = asked();
    world.command(["answer", &question]).reads(answer).run().succeeds();
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout == format!("{answer}\n"), "an answer of {} bytes was changed", answer.len());
}

#[test]
fn a_question_says_how_it_can_be_answered() {
    let (world, _, question) = asked();
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    QUESTION  ASKED  BY        CHAIN
    [ID3:8]  [AGE]    child.md  [ID1:8]  When is your birthday?
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["answer", &question[..8], "Jan 1st"]), @r"
    agent-cli resume [ID1]
    --- stderr
    the answer is recorded; this carries the chain on:
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    --- stderr
    no question waits for an answer
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions", "--all"]), @r"
    QUESTION  ASKED  BY        CHAIN
    [ID3:8]  [AGE]    child.md  [ID1:8]  When is your birthday? -> Jan 1st
    --- exit status: 0
    ");
}

#[test]
fn an_answer_starts_nothing() {
    let (world, _, question) = asked();
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_answer_is_delivered_exactly() {
    delivered("Jan 1st, \"quoted\" and `ticked`, $HOME \\n");
    delivered("two\n\nparagraphs\n\n  indented");
    delivered("ünï✓ \u{1f382}");
    delivered("result of `agent-cli ask \"When?\"` (00000000):\nsomething else");
}

#[test]
fn an_answer_may_be_large() {
    delivered(&"0123456789abcdef".repeat(1 << 16));
}

#[test]
fn an_answer_may_speak_of_signals() {
    delivered("When you see SGN_PEND_STARTED, wait.");
    delivered("SGN_RESUME");
}

#[test]
fn an_empty_answer_is_refused() {
    let (world, id, question) = asked();
    for outcome in [
        world.run(&["answer", &question, ""]),
        world.run(&["answer", &question, " \n"]),
        world.run(&["answer", &question]),
    ] {
        outcome.exits_with(2);
    }
    insta::assert_snapshot!(world.run(&["answer", &question, ""]), @r"
    --- stderr
    error: the answer is empty
    hint: agent-cli answer [ID3:8] TEXT
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn an_answer_that_is_no_text_is_refused() {
    let (world, id, question) = asked();
    let outcome = world.command(["answer", &question]).reads(b"\xff\xfe".as_slice()).run();
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: cannot read the answer from standard input: stream did not contain valid UTF-8
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn a_question_is_answered_once() {
    let (world, id, question) = asked();
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    let second = world.run(&["answer", &question, "Feb 2nd"]);
    second.exits_with(2);
    insta::assert_snapshot!(second, @r"
    --- stderr
    error: question [ID3] was answered at [TIME] already
    hint: agent-cli questions --all shows the answer
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("Jan 1st");
    world.run(&["answer", &question, "Mar 3rd"]).exits_with(2);
}

#[test]
fn a_question_cannot_command_the_terminal() {
    let world = World::new();
    world.file("root.md", "run agent-cli ask \"$(printf 'a\\033[2Jb\\nc')\"\nreply {result}\n");
    let spawned = world.run(&["spawn", "root.md"]);
    let id = spawned.started();
    for outcome in [spawned, world.run(&["questions"]), world.run(&["tree"]), world.run(&["show", &id])] {
        assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    }
    let (question, _) = world.questions().remove(0);
    assert_eq!(question, "a\u{1b}[2Jb\nc", "other programs get it as it is");
}

#[test]
fn a_question_of_a_discarded_attempt_is_withdrawn() {
    let world = World::new();
    world.file("root.md", "ask When? &\nonce end SGN_UNHANDLED\nreply {results}\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    let all = world.run(&["questions", "--all", "--json"]).json();
    assert_eq!(world.questions(), []);
    if let Some(question) = all[0]["id"].as_str() {
        assert_ne!(world.run(&["answer", question, "now"]).code(), Some(0), "nobody would hear it");
    }
    assert_eq!(world.run(&["resume", world.log().starts[0].session()]).started().len(), 36);
    assert_eq!(world.questions().len(), 1, "the agent has asked anew");
}

#[test]
fn a_question_of_an_agent_that_failed_can_be_answered() {
    let world = World::new();
    world.file("root.md", "ask When? &\nonce fail boom\nreply {results}\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    world.answer("now");
    world.run(&["resume", world.log().starts[0].session()]).prints("now");
}

#[test]
fn a_process_that_an_agent_left_behind_cannot_ask() {
    let world = World::new();
    let gate = world.gate("gate");
    let late = "(read go < gate; agent-cli ask Late? > late 2>&1; mv late too-late) > /dev/null 2>&1";
    world.file("root.md", format!("run {late} & true\nreply ok\n"));
    world.run(&["spawn", "root.md"]).prints("ok");
    gate.open_for_one();
    wait_until("it asks", || world.project().join("too-late").exists());
    let said = std::fs::read_to_string(world.project().join("too-late")).expect("readable");
    insta::assert_snapshot!(world.named(&said), @r"
    error: the turn in which this was called has ended
    hint: requests are made by an agent while it works
    ");
    assert_eq!(world.questions(), []);
}

#[test]
fn only_a_question_can_be_answered() {
    let (world, id, _) = asked();
    let unknown = world.run(&["answer", "00000000-0000-4000-8000-000000000000", "x"]);
    unknown.exits_with(3);
    insta::assert_snapshot!(unknown, @r"
    --- stderr
    error: nothing has an id that begins with [ID4]
    hint: agent-cli ls shows the chains, agent-cli questions the questions
    --- exit status: 3
    ");
    let root = world.run(&["answer", &id, "x"]);
    root.exits_with(3);
    insta::assert_snapshot!(root, @r"
    --- stderr
    error: [ID1:8] is a frame, not a question
    hint: agent-cli questions shows the questions
    --- exit status: 3
    ");
}

#[test]
fn questions_are_asked_by_agents_alone() {
    let world = World::new();
    let outcome = world.run(&["ask", "When?"]);
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: only an agent can ask: this shell was not started by agent-cli
    hint: agent-cli questions shows what agents have asked
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["wait", "--for", "1s"]).exits_with(2), @r"
    --- stderr
    error: only an agent can wait: this shell was not started by agent-cli
    --- exit status: 2
    ");
}

#[test]
fn an_agent_does_not_answer_for_the_person() {
    let world = World::new();
    world.file("root.md", "ask When? &\nrun agent-cli answer {id} now\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.questions().len(), 1);
}
