//! A person, or an agent above, stops or pauses agents that another process runs.

use std::fs;

use rustix::process::Signal;

use crate::gate::{Gate, wait_until};
use crate::world::World;

/// A parent whose child holds a tool at a gate.
fn with_a_running_child() -> (World, Gate) {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md\nreply {results}\n");
    world.file("child.md", "run echo worked >> marks\nhold gate\nrun echo after >> marks\nreply ok\n");
    (world, gate)
}

fn is_told_to_stop(world: &World, id: &str) {
    wait_until("the agent is told to stop", || {
        fs::read_to_string(world.state().join("frames").join(id).join("stop")).is_ok_and(|text| text == "noticed")
    });
}

#[test]
fn the_tool_of_a_child_finishes_and_its_parent_hears_what_was_done() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    let stop = world.command(["stop", &child[..8], "--reason", "wrong branch"]).start();
    is_told_to_stop(&world, &child);
    gate.open_for_one();
    insta::assert_snapshot!(stop.ends(), @r"
    stopped [ID1:8]
    --- stderr
    the running tool of [ID1:8] may finish; --now does not wait for it
    hint: agent-cli resume [ID1:8] --prompt TEXT continues it with a new instruction
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.named(&spawn.ends().stdout), @r#"
    Exit code 1
    stopped by a person: wrong branch

    The tool calls that it made:
    - Read: {"file_path":"[PROJECT]/child.md"}
    - Bash: echo worked >> marks
    - Bash: echo held >> gate.held; read go < gate
    "#);
    assert_eq!(world.marks(), "worked\n");
    insta::assert_snapshot!(world.run(&["stop", &child]), @r"
    [ID1:8] was stopped already
    --- exit status: 0
    ");
}

#[test]
fn now_means_that_the_tool_does_not_finish() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    let stop = world.command(["stop", &child]).start();
    is_told_to_stop(&world, &child);
    world.run(&["stop", &child, "--now", "--json"]).succeeds();
    stop.ends().succeeds();
    let outcome = spawn.ends();
    outcome.succeeds();
    assert!(outcome.stdout.contains("stopped by a person"), "{outcome}");
}

#[test]
fn everything_below_is_stopped_and_siblings_go_on() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn a.md b.md\nreply {results}\n");
    world.file("a.md", "spawn deep.md\nreply {results}\n");
    world.file("b.md", "hold gate\nreply B\n");
    world.file("deep.md", "hold gate\nreply deep\n");
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(2);
    let a = world.log().starts.iter().find(|start| start.prompt.contains("/a.md")).unwrap().session().to_owned();
    world.run(&["stop", &a, "--now"]).succeeds();
    let show = world.run(&["show", &a, "--json"]).json();
    assert_eq!(show["status"], "failed");
    gate.open_for_one();
    gate.open_for_one();
    let outcome = spawn.ends();
    outcome.succeeds();
    assert!(outcome.stdout.contains("stopped by a person") && outcome.stdout.contains("\nB"), "{outcome}");
    assert!(!outcome.stdout.contains("deep\n"), "{outcome}");
}

#[test]
fn a_waiting_agent_is_over_at_once_and_its_question_is_withdrawn() {
    let world = World::with_hooks();
    world.file("parent.md", "spawn child.md\nreply {results}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "parent.md"]).succeeds();
    let question = world.question();
    let [root, child] = [0, 1].map(|start| world.session(start));
    insta::assert_snapshot!(world.run(&["stop", &child, "--reason", "not now"]), @r"
    stopped [ID2:8]
    --- stderr
    hint: agent-cli resume [ID2:8] --prompt TEXT continues it with a new instruction
    hint: agent-cli resume [ID1:8] continues the chain without it
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["answer", &question, "now"]), @r"
    --- stderr
    error: question [ID3:8] was withdrawn: its agent no longer waits for an answer
    hint: agent-cli questions lists open questions
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["resume", &root]), @r#"
    Exit code 1
    stopped by a person: not now

    The tool calls that it made:
    - Read: {"file_path":"[PROJECT]/child.md"}
    - Bash: agent-cli ask 'When?'
    --- exit status: 0
    "#);
}

#[test]
fn a_stopped_chain_stays_stopped() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "root.md"]).succeeds();
    let root = world.session(0);
    world.run(&["stop", &root]).succeeds();
    insta::assert_snapshot!(world.run(&["resume", &root]), @r"
    --- stderr
    error: stopped by a person ([ID1:8])
    hint: agent-cli resume [ID1:8] --prompt TEXT continues it with a new instruction
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["pause", &root]), @r"
    [ID1:8] was stopped already
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 1);
}

#[test]
fn what_is_paused_by_its_id_is_continued_by_its_id() {
    let world = World::with_hooks();
    world.file("parent.md", "spawn child.md\nreply {results}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "parent.md"]).succeeds();
    let [root, child] = [0, 1].map(|start| world.session(start));
    insta::assert_snapshot!(world.run(&["pause", &child, "--reason", "lunch"]), @r"
    paused [ID2:8]
    --- stderr
    hint: agent-cli resume [ID2:8] continues it
    --- exit status: 0
    ");
    world.answer("now");
    insta::assert_snapshot!(world.run(&["resume", &root]), @r"
    SGN_PEND_ONGOING
    --- stderr
    [ID2:8] waits for a person to continue it: paused by a person: lunch
    hint: agent-cli resume [ID2:8] continues it
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 2);
    world.run(&["resume", &child]).prints("now");
    world.run(&["resume", &root]).succeeds();
    assert_eq!(world.starts(), 4);
}

#[test]
fn a_paused_chain_is_continued_with_its_id() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let [root, child] = [0, 1].map(|start| world.session(start));
    let pause = world.command(["pause", &root]).start();
    is_told_to_stop(&world, &child);
    gate.open_for_one();
    insta::assert_snapshot!(pause.ends(), @r"
    paused [ID1:8] and 1 agent below it
    --- stderr
    hint: agent-cli resume [ID1:8] continues it
    --- exit status: 0
    ");
    let outcome = spawn.ends();
    outcome.prints("SGN_PEND_ONGOING").succeeds();
    let said = "and 1 other wait for a person to continue it: paused by a person\nhint: agent-cli resume";
    assert!(outcome.stderr.contains(said), "{outcome}");
    world.run(&["resume", &root]).succeeds();
    assert_eq!(world.marks(), "worked\nafter\n");
    let prompt = &world.log().starts[2].prompt;
    assert_eq!(prompt, "SGN_RESUME\n\nYour last turn was cut short: paused by a person. Carry on where you stopped.");
}

#[test]
fn an_agent_without_a_runner_is_stopped_all_the_same() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    spawn.kill();
    spawn.ends();
    let [root, child] = [0, 1].map(|start| world.session(start));
    world.run(&["stop", &child, "--now"]).succeeds();
    assert!(!world.log().starts[1].is_alive());
    world.run(&["resume", &root]).succeeds();
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn an_agent_stops_its_own_descendants_and_nobody_else() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("other.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "other.md"]).succeeds();
    let other = world.session(0);
    world.file("root.md", format!("run agent-cli stop {other} || true\nhold gate\nreply {{result}}\n"));
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    gate.open_for_one();
    spawn.ends().succeeds();
    assert_eq!(world.run(&["show", &other, "--json"]).json()["status"], "waiting");
    world.run(&["stop", "ffffffff"]).exits_with(3);
}

#[test]
fn an_agent_with_a_new_instruction_has_its_timeout_again() {
    let world = World::with_hooks();
    world.file("root.md", "once run sleep 2\nreply continued\n");
    let spawn = world.run(&["spawn", "root.md", "--timeout", "1s"]);
    assert!(spawn.stderr.contains("stopped after its timeout of 1 s"), "{spawn}");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id, "--prompt", "Go on."]).prints("continued");
}

#[test]
fn an_agent_is_stopped_when_it_has_run_for_its_timeout() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md --timeout 1s\nreply {results}\n");
    world.file("child.md", "hold gate\nrun echo after >> marks\nreply ok\n");
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    is_told_to_stop(&world, &child);
    gate.open_for_one();
    let outcome = spawn.ends();
    outcome.succeeds();
    assert!(outcome.stdout.contains("stopped after its timeout of 1 s"), "{outcome}");
    assert_eq!(world.marks(), "");
    world.run(&["spawn", "parent.md", "--timeout", "0s"]).exits_with(2);
}

#[test]
fn time_in_which_a_call_lingers_does_not_count() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "50s");
    let gate = world.gate("gate");
    world.file("root.md", "spawn child.md\nhold gate\nreply {result}\n");
    world.file("child.md", "run sleep 4\nreply 42\n");
    let spawn = world.command(["spawn", "root.md", "--timeout", "3s"]).start();
    gate.reached_by(1);
    assert_eq!(world.starts(), 2, "the call has returned in the same process");
    is_told_to_stop(&world, &world.session(0));
    gate.open_for_one();
    let outcome = spawn.ends();
    assert!(outcome.stderr.contains("stopped after its timeout of 3 s"), "{outcome}");
    assert!(world.run(&["show", "child.md", "--reply"]).stdout.starts_with("42"));
}

#[test]
fn time_in_which_an_agent_waits_does_not_count_and_a_killed_runner_changes_nothing() {
    let (world, gate) = with_a_running_child();
    world.file("root.md", "ask When?\nhold gate\nreply {result}\n");
    world.run(&["spawn", "root.md", "--timeout", "1s"]).succeeds();
    let root = world.session(0);
    world.answer("now");
    world.time_passes(10);
    let resume = world.command(["resume", &root]).start();
    gate.reached_by(1);
    is_told_to_stop(&world, &root);
    resume.kill();
    resume.ends();
    gate.open_for_one();
    wait_until("the agent ends", || !world.log().starts[1].is_alive());
    let outcome = world.run(&["resume", &root]);
    outcome.exits_with(1);
    assert!(outcome.stderr.contains("stopped after its timeout of 1 s"), "{outcome}");
    assert_eq!(world.starts(), 2);
}

#[test]
fn agents_pause_nobody_and_a_reason_is_short() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli pause 4f2c1a90 2>&1\nreply {result}\n");
    let paused = world.run(&["spawn", "root.md"]);
    assert!(paused.succeeds().stdout.contains("agents cannot pause agents"), "{paused}");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("asks.md");
    world.run(&["stop", &id, "--reason", &"x".repeat(1_001)]).exits_with(2);
    world.run(&["stop", &id, "--reason", &"x".repeat(1_000)]).succeeds();
}

#[test]
fn a_runner_that_is_suspended_is_not_waited_for_without_end() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    spawn.signal(Signal::STOP);
    insta::assert_snapshot!(world.run(&["stop", &child[..8], "--now"]), @"
    asked [ID1:8] to stop
    --- stderr
    waiting for process [PID], which runs [ID1:8] and has not responded
    process [PID], which runs [ID1:8], does not respond; it stops the agent as soon as it does
    hint: agent-cli show [ID1:8] shows whether it has ended
    --- exit status: 0
    ");
    spawn.signal(Signal::CONT);
    let ended = spawn.ends();
    assert!(ended.stdout.contains("stopped by a person"), "{ended}");
}

#[test]
fn an_agent_that_stops_before_its_runner_looks_is_paused_and_has_not_failed() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let [root, child] = [0, 1].map(|start| world.session(start));
    spawn.signal(Signal::STOP);
    world.run(&["pause", &root, "--no-wait"]).succeeds();
    gate.open_for_one();
    let printed = world.state().join("frames").join(&child).join("out.ndjson");
    let has_result = || fs::read_to_string(&printed).is_ok_and(|lines| lines.contains(r#""type":"result""#));
    wait_until("the agent ends", has_result);
    spawn.signal(Signal::CONT);
    spawn.ends().prints("SGN_PEND_ONGOING").succeeds();
    world.run(&["resume", &root]).succeeds();
    assert_eq!(world.marks(), "worked\nafter\n");
}

#[test]
fn of_two_stops_both_reasons_are_kept() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    world.run(&["stop", &child[..8], "--reason", "wrong branch", "--no-wait"]).succeeds();
    world.run(&["stop", &child[..8], "--reason", "too slow", "--no-wait"]).succeeds();
    gate.open_for_one();
    let ended = spawn.ends();
    assert!(ended.stdout.contains("stopped by a person: wrong branch; too slow"), "{ended}");
}

#[test]
fn an_agent_that_names_no_id_is_told_what_to_name() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli stop last || true\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.stdout.contains("`last` is not an id, and agents name other agents by their ids"), "{outcome}");
    assert!(outcome.stdout.contains("agent-cli ls lists the agents that you have started"), "{outcome}");
}

/// A caller of two agents at once, both of which ask: the root, its group and its members.
fn with_a_group_that_asks() -> (World, [String; 4]) {
    let world = World::with_hooks();
    world.file("parent.md", "spawn a.md b.md\nreply {results}\n");
    world.file("a.md", "ask A?\nreply {result}\n");
    world.file("b.md", "ask B?\nreply {result}\n");
    let root = world.spawn_paused("parent.md");
    let agents = world.run(&["tree", &root, "--json"]).json();
    let id = |task: &str| {
        let mut agents = agents.as_array().expect("a list").iter();
        let agent = agents.find(|agent| agent["task"] == task).expect("it is there");
        agent["id"].as_str().expect("an id").to_owned()
    };
    let ids = ["parent.md", "a.md b.md", "a.md", "b.md"].map(id);
    (world, ids)
}

#[test]
fn stop_says_how_the_chain_continues() {
    let (world, [root, group, a, b]) = with_a_group_that_asks();
    insta::assert_snapshot!(world.run(&["stop", &a]), @"
    stopped [ID2:8]
    --- stderr
    hint: agent-cli resume [ID2:8] --prompt TEXT continues it with a new instruction
    hint: agent-cli tree [ID1:8] shows what the chain still waits for
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["resume", &a]), @"
    --- stderr
    error: stopped by a person ([ID2:8])
    hint: agent-cli resume [ID2:8] --prompt TEXT continues it with a new instruction
    hint: agent-cli tree [ID1:8] shows what the chain still waits for
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["stop", &b]), @"
    stopped [ID4:8]
    --- stderr
    hint: agent-cli resume [ID4:8] --prompt TEXT continues it with a new instruction
    hint: agent-cli resume [ID1:8] continues the chain without it
    --- exit status: 0
    ");
    let resumed = world.run(&["resume", &a, "--json"]);
    assert_eq!(resumed.json()["next"], format!("agent-cli resume {root}"));
    let of_group = world.run(&["resume", &group]);
    let hint = format!("hint: agent-cli resume {} continues the chain without them\n", &root[..8]);
    assert!(of_group.exits_with(1).stderr.ends_with(&hint), "{of_group}");
    world.run(&["resume", &root]).succeeds();
    assert!(!world.run(&["resume", &a]).stderr.contains("the chain"), "it has ended");
}

#[test]
fn what_a_stopped_agent_had_done_is_no_reply() {
    let (world, [_, group, a, _]) = with_a_group_that_asks();
    world.run(&["stop", &a]).succeeds();
    let shown = world.run(&["show", &a, "--json"]).json();
    assert_eq!((&shown["state"], &shown["reply"]), (&"stopped".into(), &serde_json::Value::Null));
    let report = shown["report"].as_str().expect("it has done something");
    assert!(report.starts_with("stopped by a person\n\nThe tool calls that it made:\n"), "{report}");
    let members = world.run(&["resume", &group, "--json"]).json()["members"].clone();
    assert_eq!((&members[0]["status"], &members[0]["reply"]), (&"failed".into(), &serde_json::Value::Null));
    world.run(&["show", &a, "--reply"]).exits_with(3);
    assert!(!world.run(&["logs", &a]).stdout.contains("\nreply:\n"));
}

#[test]
fn what_the_agents_of_a_group_have_done_survives_the_stop_of_their_caller() {
    let world = World::with_hooks();
    world.file("root.md", "spawn a.md b.md\nreply then: {result}\n");
    world.file("a.md", "reply fine\n");
    world.file("b.md", "run touch made\nask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.run(&["stop", &id, "--reason", "wrong branch"]).succeeds();
    let resumed = world.run(&["resume", &id, "--prompt", "Carry on."]);
    let said = resumed.succeeds().stdout.clone();
    assert!(said.contains("2 agents: 1 done, 1 failed"), "{resumed}");
    assert!(said.contains("fine") && said.contains("stopped by a person: wrong branch"), "{resumed}");
    assert!(said.contains("touch made"), "it says what the other one has done: {resumed}");
}

#[test]
fn a_pause_does_not_undo_a_stop() {
    let (world, gate) = with_a_running_child();
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(1);
    let child = world.session(1);
    world.run(&["stop", &child, "--no-wait"]).succeeds();
    is_told_to_stop(&world, &child);
    let pause = world.command(["pause", &child, "--json"]).start();
    gate.open_for_one();
    let paused = pause.ends().json();
    // It may come when the agent has ended.
    assert!(paused["outcome"] == "stopped" || paused["outcome"] == "nothing", "{paused}");
    assert_eq!(paused["status"], "failed", "{paused}");
    spawn.ends().succeeds();
}
