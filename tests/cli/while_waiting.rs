//! Changes between the pause and the resume of a suspended call.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::executable::copy_executable;
use crate::gate::{Gate, wait_until};
use crate::outcome::Outcome;
use crate::programs;
use crate::world::World;

fn chain() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world
}

#[test]
fn hooks_may_be_switched_off() {
    let world = chain();
    let id = world.spawn_paused("root.md");
    world.switch_hooks_off();
    world.answer("now");
    // Hooks do not run: the calls run, and find that they have their results.
    world.run(&["resume", &id]).prints("now");
    assert_eq!((world.starts(), world.questions()), (4, Vec::new()));
}

#[test]
fn a_call_that_was_run_instead_of_asked_about_is_not_taken_for_the_next() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nask When?\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.switch_hooks_off();
    world.answer("now");
    world.run(&["resume", &id]).started();
    world.answer("then");
    world.run(&["resume", &id]).prints("now; then");
}

#[test]
fn a_call_that_failed_during_the_wait_fails_where_hooks_are_off() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply I was told: {result}\n");
    world.file("child.md", "ask When?\nfail the API is down\n");
    let id = world.spawn_paused("root.md");
    world.switch_hooks_off();
    world.answer("now");
    world.run(&["resume", &id]).prints("I was told: Exit code 1\nerror: the agent failed: the API is down");
    assert_eq!(world.starts(), 4);
}

#[test]
fn hooks_may_be_switched_on() {
    let world = chain();
    world.switch_hooks_off();
    let id = world.spawn_paused("root.md");
    world.user_settings(&json!({}));
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 4);
}

/// A copy of this program; its path.
fn copy(world: &World, folder: &str) -> PathBuf {
    let copy = world.project().join(folder).join("agent-cli");
    copy_executable(&programs::agent_cli(), &copy);
    copy
}

#[test]
fn the_program_may_be_replaced_by_one_at_another_path() {
    let world = chain();
    // No other program may be found instead.
    let world = world.with("PATH", "/usr/bin:/bin");
    let old = copy(&world, "old version");
    let id = world.program(&old, ["spawn", "root.md"]).run().started();
    fs::remove_dir_all(old.parent().expect("a folder")).expect("own folder");
    let new = copy(&world, "new");
    let question =
        world.program(&new, ["questions", "--json"]).run().json()[0]["id"].as_str().expect("an id").to_owned();
    world.program(&new, ["answer", &question, "now"]).run().succeeds();
    world.program(&new, ["resume", &id]).run().prints("now");
    assert_eq!(world.starts(), 4);
}

#[test]
fn the_state_directory_may_be_moved() {
    let world = chain();
    let id = world.spawn_paused("root.md");
    let moved = world.home().join("my state");
    fs::rename(world.state(), &moved).expect("own folder");
    let world = world.with("AGENT_CLI_STATE_DIR", &moved);
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 4);
    assert!(!world.state().exists(), "nothing is made where it was");
}

/// A hook of the user that holds each call with `agent-cli` in it at a gate, in addition to ours.
fn held(world: &World) -> Gate {
    let gate = world.gate("gate");
    let at = world.project().join("gate");
    let command = format!("echo held >> '{0}.held'; read go < '{0}'", at.display());
    let hook = json!({"type": "command", "command": command, "if": "Bash(*agent-cli*)"});
    world.user_settings(&json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}));
    gate
}

/// Resumes until no process drives the chain any more, not even one without a runner.
fn resumed(world: &World, id: &str) -> Outcome {
    let mut last = None;
    wait_until("claude ends", || {
        let outcome = world.run(&["resume", id]);
        let busy = outcome.succeeds().stderr.contains(" is running ");
        last = Some(outcome);
        !busy
    });
    last.expect("it was resumed")
}

fn ask_and_kill_the_runner() -> (World, Gate, String) {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let gate = held(&world);
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    wait_until("the request is recorded", || world.questions().len() == 1);
    spawn.signal(Signal::KILL);
    spawn.ends();
    let id = world.log().starts[0].session().to_owned();
    (world, gate, id)
}

#[test]
fn the_runner_may_be_killed_before_claude_has_deferred_the_call() {
    let (world, gate, id) = ask_and_kill_the_runner();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    world.user_settings(&json!({}));
    resumed(&world, &id);
    assert_eq!(world.starts(), 1, "its end is harvested");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 2);
    assert!(!world.log().starts[1].is_prompted(), "the call returned the answer");
}

#[test]
fn the_answer_may_come_before_claude_has_deferred_the_call() {
    let (world, gate, id) = ask_and_kill_the_runner();
    world.answer("now");
    gate.open_for_one();
    world.user_settings(&json!({}));
    resumed(&world, &id).prints("now");
    assert_eq!(world.starts(), 2);
}

#[test]
fn claude_may_be_killed_before_it_has_deferred_the_call() {
    let (world, _gate, id) = ask_and_kill_the_runner();
    let start = world.log().starts.remove(0);
    kill_process(Pid::from_raw(start.pid).expect("a process id"), Signal::KILL).expect("it runs");
    wait_until("it is gone", || !start.is_alive());
    world.user_settings(&json!({}));
    resumed(&world, &id);
    assert_eq!(world.starts(), 1, "it waits for what is recorded");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 2);
}

#[test]
fn the_runner_may_be_killed_while_the_call_returns() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let gate = held(&world);
    let resume = world.command(["resume", &id]).start();
    gate.reached_by(1);
    resume.signal(Signal::KILL);
    resume.ends();
    gate.open_for_one();
    resumed(&world, &id).prints("now");
    assert_eq!(world.starts(), 2);
}

#[test]
fn runner_and_claude_may_be_killed_while_the_call_returns() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let gate = held(&world);
    let resume = world.command(["resume", &id]).start();
    gate.reached_by(1);
    resume.signal(Signal::KILL);
    resume.ends();
    let start = world.log().starts.remove(1);
    kill_process(Pid::from_raw(start.pid).expect("a process id"), Signal::KILL).expect("it runs");
    wait_until("it is gone", || !start.is_alive());
    world.user_settings(&json!({}));
    resumed(&world, &id).prints("now");
    assert_eq!(world.starts(), 3);
}

#[test]
fn transcripts_may_be_deleted() {
    let world = chain();
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.transcripts().iter().for_each(|file| fs::remove_file(file).expect("own file"));
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 4);
    assert!(!world.transcripts().iter().any(|file| Path::new(file).extension().is_none()));
}
