//! Calls that linger, and everything that ends this.

use std::fs::File;

use rustix::process::Signal;
use serde_json::json;

use crate::gate::{Gate, wait_until};
use crate::inbox;
use crate::world::World;

/// A parent whose call lingers while its child holds a gate.
fn with_a_child_that_works() -> (World, Gate) {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "50s");
    let gate = world.gate("gate");
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "hold gate\nreply 42\n");
    (world, gate)
}

fn root(world: &World) -> String {
    world.session(0)
}

#[test]
fn the_result_returns_without_another_start() {
    let (world, gate) = with_a_child_that_works();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    assert!(world.log().starts[0].is_alive(), "it lingers");
    gate.open_for_one();
    spawn.ends().prints("root: 42");
    assert_eq!(world.starts(), 2);
    let shown = world.run(&["show", &root(&world), "--json"]).json();
    assert_eq!(shown["sessions"][0]["lingered"], 1);
    world.run(&["fsck"]).succeeds();
}

#[test]
fn the_replies_of_a_group_and_of_a_handoff_return_without_another_start() {
    for (call, reply) in [("spawn a.md b.md", "2 agents: all done"), ("spawn first.md", "b")] {
        let world = World::with_hooks().with("AGENT_CLI_LINGER", "50s");
        world.file("root.md", format!("{call}\nreply {{result}}\n"));
        world.file("first.md", "run agent-cli spawn --handoff b.md\n");
        world.file("a.md", "reply a\n");
        world.file("b.md", "reply b\n");
        let said = world.run(&["spawn", "root.md"]);
        said.succeeds();
        assert!(said.stdout.starts_with(reply), "{said}");
        assert_eq!(world.starts(), 3, "{call}");
    }
}

#[test]
fn it_parks_when_the_process_that_runs_the_chain_has_died() {
    let (world, gate) = with_a_child_that_works();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.kill();
    wait_until("the call is suspended", || !world.log().starts[0].is_alive());
    gate.open_for_one();
    wait_until("the child has ended its turn", || !world.log().starts[1].is_alive());
    world.run(&["resume", &root(&world)]).prints("root: 42");
    assert_eq!(world.starts(), 3);
}

#[test]
fn it_parks_when_the_chain_is_interrupted() {
    let (world, gate) = with_a_child_that_works();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    wait_until("the call is suspended", || !world.log().starts[0].is_alive());
    gate.open_for_one();
    spawn.ends().exits_with(130);
    world.run(&["resume", &root(&world)]).prints("root: 42");
}

#[test]
fn a_child_that_was_stopped_fails_the_call() {
    let (world, gate) = with_a_child_that_works();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    let stop = world.command(["stop", &child, "--reason", "wrong branch"]).start();
    let told = world.state().join("frames").join(&child).join("stop");
    wait_until("the child is told to stop", || told.exists());
    gate.open_for_one();
    stop.ends().succeeds();
    let outcome = spawn.ends();
    assert!(outcome.stdout.contains("wrong branch"), "{outcome}");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_call_that_a_users_hook_may_deny_does_not_linger() {
    let (world, gate) = with_a_child_that_works();
    world.user_settings(&json!({"hooks": {"PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]},
    ]}}));
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    assert!(!world.log().starts[0].is_alive(), "its call was suspended before the child began");
    gate.open_for_one();
    spawn.ends().prints("root: 42");
    assert_eq!(world.starts(), 3);
}

#[test]
fn no_call_lingers_while_all_places_are_taken() {
    let (world, gate) = with_a_child_that_works();
    let asked = world.file("first.md", "ask When?\nspawn child.md\nreply root: {result}\n");
    let paused = world.spawn_paused(&asked.display().to_string());
    world.answer("now");
    let all = world.command(["resume", "--all", "--max-parallel-total", "1"]).start();
    gate.reached_by(1);
    gate.open_for_one();
    all.ends().succeeds();
    world.run(&["resume", &paused]).prints("root: 42");
}

#[test]
fn agents_do_not_say_how_long_their_children_linger() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli spawn child.md --linger 5s\nreply {result}\n");
    world.file("child.md", "reply 42\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.stdout.contains("agents cannot use --linger"), "{outcome}");
}

#[test]
fn a_script_does_not_take_over_the_request_of_another_call() {
    let world = World::with_hooks();
    world.file("ask.sh", "agent-cli ask 'When?'\n");
    world.file("root.md", "ask When? ++ run sh ask.sh\nreply {results}\n");
    world.spawn_paused("root.md");
    assert_eq!(world.questions().len(), 2);
}

/// What any process holds that shows questions to a person.
fn somebody_is_there(world: &World) -> File {
    let lock = File::create(world.state().join("attending.lock")).unwrap();
    lock.try_lock_shared().unwrap();
    lock
}

#[test]
fn several_questions_of_one_call_linger_until_all_are_answered() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "50s");
    let questions = r#"[{"question": "When?"}, {"question": "Where?"}]"#;
    let native = r#"{"questions": [{"question": "When?", "header": "t", "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}], "multiSelect": false},
        {"question": "Where?", "header": "p", "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}], "multiSelect": false}]}"#.replace('\n', " ");
    world.file("questions.json", questions);
    world.file("batch.md", "run agent-cli ask --questions questions.json\nreply {result}\n");
    world.file("native.md", format!("call AskUserQuestion {native}\nreply over\n"));
    world.run(&["ls"]);
    let attending = somebody_is_there(&world);
    for (starts, file) in ["batch.md", "native.md"].into_iter().enumerate() {
        let spawn = world.command(["spawn", file]).start();
        wait_until("it has asked", || world.questions().len() == 2);
        world.answer_to("When?", "Jan 1st");
        world.answer_to("Where?", "Rome");
        let outcome = spawn.ends();
        outcome.succeeds();
        assert!(
            file == "native.md" || outcome.stdout.contains("Jan 1st") && outcome.stdout.contains("Rome"),
            "{outcome}"
        );
        assert_eq!(world.starts(), starts + 1, "{file}: it is not started again");
        let shown = world.run(&["show", &world.session(starts), "--json"]).json();
        assert_eq!(shown["sessions"][0]["lingered"], 1);
    }
    drop(attending);
    world.run(&["fsck"]).succeeds();
}

#[test]
fn a_question_lingers_while_somebody_is_at_an_inbox() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "50s");
    inbox::asking(&world, "Where?");
    world.file("root.md", "ask When?\nreply {result}\n");
    let (inbox, screen) = inbox::opened(&world, &[], 80, 24);
    inbox::shows(&screen, "help\n>");
    let spawn = world.command(["spawn", "root.md"]).start();
    wait_until("it has asked", || world.questions().len() == 2);
    let states = || world.run(&["ls", "--json"]).json();
    wait_until("it needs a person", || states().as_array().unwrap().iter().all(|chain| chain["state"] == "asks"));
    world.answer_to("When?", "Jan 1st");
    spawn.ends().prints("Jan 1st");
    assert_eq!(world.starts(), 2, "one of each chain");
    inbox.kill();
}
