//! Questions: who may ask, and the states of a question.

use crate::gate::wait_until;
use crate::world::World;

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
    error: the turn that made this call has ended
    hint: an agent can make requests only during its turn
    ");
    assert_eq!(world.questions(), []);
}

#[test]
fn questions_are_asked_by_agents_alone() {
    let world = World::new();
    let outcome = world.run(&["ask", "When?"]);
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: only agents can ask: this shell was not started by agent-cli
    hint: agent-cli questions lists what agents have asked
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["wait", "--for", "1s"]).exits_with(2), @"
    --- stderr
    error: only agents can wait: this shell was not started by agent-cli
    hint: agent-cli spawn FILE starts an agent, which can
    --- exit status: 2
    ");
}
