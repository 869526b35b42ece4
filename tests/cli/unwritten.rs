//! `claude` dies before it has written a part of its conversation, which has all that came before. Whatever is missing is given or
//! said again.

use serde_json::json;

use crate::gate::wait_until;
use crate::invocation::Invocation;
use crate::log::Start;
use crate::programs;
use crate::world::World;

const WORKS_AND_DIES: &str = "once run echo worked >> marks\nonce die 9\n";

/// What the agent was given at each start.
fn prompts(world: &World) -> Vec<String> {
    world.log().starts.iter().map(Start::beside_the_result).collect()
}

/// Runs a command with a `claude` that writes all but its last lines.
fn without_its_end(world: &World, lines: &str, arguments: &[&str]) {
    world.command(arguments.iter().copied()).with("STAND_IN_HOLDS_LINES", lines).run().exits_with(1);
}

/// Runs a command with a `claude` that is killed when it has printed its end, and has not written its last lines.
fn killed_at_its_end<'a>(world: &'a World, lines: &str, arguments: &[&'a str]) -> Invocation<'a> {
    world.command(arguments.iter().copied()).with("STAND_IN_HOLDS_LINES", lines).with("STAND_IN_DIES_AT_ITS_END", "1")
}

/// A `claude` whose hook is killed when it has taken a message, unlike the process that runs the chain.
fn whose_hook_dies(world: &World) -> String {
    let script = format!("#!/bin/sh\nAGENT_CLI_CRASH=tell.after exec '{}' \"$@\"\n", programs::stand_in().display());
    world.executable("claude-whose-hook-dies", script).display().to_string()
}

#[test]
fn the_task_of_a_fork_is_given_again() {
    let world = World::new();
    world.file("base.md", "run true\nreply base\n");
    world.file("child.md", format!("{WORKS_AND_DIES}reply did the task\n"));
    world.run(&["spawn", "base.md"]).prints("base");
    let base = world.session(0);
    // Its prompt, the call that reads the task, and the call that works, each with its result.
    without_its_end(&world, "5", &["spawn", "child.md", "--fork-from", &base]);
    world.run(&["resume", "last"]).prints("did the task");
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("child.md") && last.contains("echo worked"), "{last}");
}

#[test]
fn what_was_said_about_the_turn_before_is_said_again() {
    let world = World::new();
    let twice = format!("once run echo first >> marks\nonce die 9\n{WORKS_AND_DIES}reply ok\n");
    world.file("root.md", twice);
    without_its_end(&world, "1", &["spawn", "root.md"]);
    without_its_end(&world, "3", &["resume", "last"]);
    world.run(&["resume", "last"]).prints("ok");
    let told = prompts(&world).pop().expect("it was started");
    assert!(told.contains("echo first") && told.contains("echo worked"), "{told}");
}

#[test]
fn a_correction_that_the_agent_has_not_kept_is_no_correction() {
    let world = World::new();
    world.file("schema.json", r#"{"type": "object"}"#);
    world.file("root.md", format!("end no\n{WORKS_AND_DIES}end {{}}\n"));
    without_its_end(&world, "3", &["spawn", "root.md", "--schema", "schema.json"]);
    world.run(&["resume", "last"]).succeeds();
    let prompts = prompts(&world);
    assert_eq!(prompts.iter().filter(|prompt| prompt.contains("does not fit")).count(), 2, "{prompts:#?}");
}

#[test]
fn that_its_background_was_ended_is_said_again() {
    for lines in ["3", "1000"] {
        let world = World::new().with("AGENT_CLI_BACKGROUND_GRACE", "100ms");
        world.file("root.md", format!("beside command\nreply long\n{WORKS_AND_DIES}reply final\n"));
        without_its_end(&world, lines, &["spawn", "root.md"]);
        world.run(&["resume", "last"]).prints("final");
        let prompts = prompts(&world);
        assert_eq!(prompts.len(), 3, "{lines}: {prompts:#?}");
        assert!(prompts[1..].iter().all(|prompt| prompt.contains("Its time is up")), "{lines}: {prompts:#?}");
    }
}

#[test]
fn a_scheduled_prompt_comes_again_although_an_earlier_one_had_the_same_words() {
    const WAKEUP: &str = r#"call ScheduleWakeup {"delaySeconds": 1200, "reason": "a build", "prompt": "Look again."}"#;
    let world = World::with_hooks();
    world.file("root.md", format!("{WAKEUP}\n{WAKEUP}\n{WORKS_AND_DIES}reply over\n"));
    let id = world.spawn_paused("root.md");
    let time_passes = || {
        let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.scheduled.at', '2026-01-01T00:00:00Z')";
        world.database().execute(sql, []).expect("it can be written");
    };
    time_passes();
    world.run(&["resume", &id]).started();
    time_passes();
    without_its_end(&world, "3", &["resume", &id]);
    world.run(&["resume", &id]).prints("over");
    let given = prompts(&world).iter().filter(|prompt| prompt.contains("Look again.")).count();
    assert_eq!(given, 3, "{:#?}", prompts(&world));
}

#[test]
fn what_was_looked_up_is_given_again_if_its_call_is_not_written() {
    // Another call may have returned the same words.
    for before in ["", "run echo January was cold\n"] {
        let world = World::new();
        let gate = world.gate("gate");
        let rest = "ask When? &\nhold gate &\nrun agent-cli resume {id} &\nask Where? &\nreply {results}\n";
        world.file("root.md", format!("{before}{rest}"));
        let spawn = killed_at_its_end(&world, "5", &["spawn", "root.md"]).start();
        gate.reached_by(1);
        world.answer("January");
        gate.open_for_one();
        spawn.ends();
        world.answer("Paris");
        world.run(&["resume", "last"]).succeeds();
        let last = prompts(&world).pop().expect("it was started");
        assert!(last.contains("\"When?\"") && last.contains("Paris"), "{before}: {last}");
    }
}

#[test]
fn a_call_that_was_printed_and_not_written_may_have_taken_effect() {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nask When?\nreply {results}\n");
    killed_at_its_end(&world, "5", &["spawn", "root.md"]).run();
    world.answer("now");
    world.run(&["resume", "last"]).succeeds();
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("echo worked"), "{last}");
}

#[test]
fn an_agent_whose_reply_was_not_written_continues_from_where_it_was_before() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply got {results}\nreply second\n");
    let id = world.spawn_paused("root.md");
    world.answer("January");
    let replied = killed_at_its_end(&world, "100", &["resume", &id]).run();
    assert!(replied.stdout.contains("January"), "{replied}");
    world.run(&["resume", &id, "--prompt", "Say more."]).succeeds();
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("January") && last.contains("Say more."), "{last}");
}

#[test]
fn an_instruction_that_has_a_reply_does_not_come_again() {
    let world = World::new();
    world.file("root.md", "run true\nreply one\nreply two\nreply three\n");
    world.run(&["spawn", "root.md"]).prints("one");
    killed_at_its_end(&world, "100", &["resume", "last", "--prompt", "Reply again."]).run();
    world.run(&["resume", "last", "--prompt", "And once more."]).succeeds();
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("And once more.") && !last.contains("Reply again."), "{last}");
}

#[test]
fn what_was_looked_up_in_a_call_that_was_interrupted_is_given_again() {
    let world = World::new().with("AGENT_CLI_STOP_GRACE", "1s");
    let gate = world.gate("gate");
    let looks = "once run agent-cli resume {id}; echo read >> marks; sleep 50 &";
    world.file("root.md", format!("ask When? &\nhold gate &\n{looks}\nreply {{results}}\n"));
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    world.answer("January");
    gate.open_for_one();
    wait_until("it has looked", || world.marks() == "read\n");
    world.run(&["pause", "last"]).succeeds();
    spawn.ends();
    world.run(&["resume", "last"]).succeeds();
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("January"), "{last}");
}

#[test]
fn questions_that_were_asked_together_are_found_by_their_common_result() {
    let world = World::new();
    world.file("questions.json", r#"[{"question": "When?"}, {"question": "Where?"}]"#);
    world.file("root.md", format!("run agent-cli ask --questions questions.json\n{WORKS_AND_DIES}reply {{results}}\n"));
    let id = world.spawn_paused("root.md");
    for ((_, question), answer) in world.questions().iter().zip(["now", "at home"]) {
        world.run(&["answer", question, answer]).succeeds();
    }
    world.run(&["resume", &id]).exits_with(1);
    world.run(&["resume", &id]).succeeds();
    let last = prompts(&world).pop().expect("it was started");
    assert!(last.contains("Carry on where you stopped") && !last.contains("at home"), "{last}");
}

#[test]
fn a_message_before_a_handoff_reaches_its_agent() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.switch_hooks_off();
    world.file("child.md", "reply child reply\n");
    world.file("root.md", "hold gate &\nspawn --handoff child.md\nreply root goes on: {results}\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    world.run(&["tell", "last", "not so fast"]).succeeds();
    gate.open_for_one();
    let ended = spawn.ends();
    assert!(ended.stdout.contains("root goes on"), "{ended}");
    let given = prompts(&world).iter().filter(|prompt| prompt.contains("not so fast")).count();
    assert_eq!(given, 1, "{:#?}", prompts(&world));
}

#[test]
fn a_message_whose_hook_died_is_given_again_before_the_agent_is_done() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\nreply was told\n");
    let spawn = world.command(["spawn", "root.md"]).with("AGENT_CLI_CLAUDE", &whose_hook_dies(&world)).start();
    gate.reached_by(1);
    world.run(&["tell", "last", "not so fast"]).succeeds();
    gate.open_for_one();
    spawn.ends().prints("was told");
    let given = prompts(&world).iter().filter(|prompt| prompt.contains("not so fast")).count();
    assert_eq!(given, 1, "{:#?}", prompts(&world));
    let shown = world.run(&["show", "last", "--json"]).json();
    assert_eq!(shown["messages"].as_array().map(Vec::len), Some(1), "{shown}");
    assert_ne!(shown["messages"][0]["delivered"], json!(null), "{shown}");
}

#[test]
fn a_message_that_may_not_have_been_read_is_not_delivered() {
    for before in ["", "ask When?\n"] {
        let world = World::with_hooks();
        let gate = world.gate("gate");
        world.file("root.md", format!("{before}hold gate\nreply done\n"));
        let spawn = if before.is_empty() {
            killed_at_its_end(&world, "100", &["spawn", "root.md"])
        } else {
            world.spawn_paused("root.md");
            world.answer("now");
            killed_at_its_end(&world, "100", &["resume", "last"])
        };
        let spawn = spawn.with("AGENT_CLI_CLAUDE", &whose_hook_dies(&world)).start();
        gate.reached_by(1);
        world.run(&["tell", "last", "not so fast"]).succeeds();
        gate.open_for_one();
        spawn.ends().prints("done");
        let shown = world.run(&["show", "last", "--json"]).json();
        assert_eq!(shown["messages"][0]["text"], "not so fast", "{shown}");
        assert_ne!(shown["messages"][0]["delivered"], json!(true), "{shown}");
    }
}
