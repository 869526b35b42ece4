//! A person stops `agent-cli` while an agent's tool is running: the tool finishes, unless the person does not want to wait.

use rustix::process::Signal;

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::world::World;

/// An agent whose second tool call waits at a gate.
fn with_a_running_tool(end_of_the_tool: &str) -> (World, Gate) {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    let hold = format!("run echo held >> gate.held; read go < gate; echo made >> marks; {end_of_the_tool}");
    world.file("root.md", format!("run echo worked >> marks\n{hold}\nrun echo after >> marks\nreply done\n"));
    (world, gate)
}

/// Starts it, and stops it once while its tool runs.
fn stopped<'a>(world: &'a World, gate: &Gate, signal: Signal) -> Running<'a> {
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(signal);
    is_told_to_stop(world, 1);
    spawn
}

const WAITS_FOR_THE_TOOL: &str = "stopping: waiting for the running tool of";

fn is_told_to_stop(world: &World, agents: usize) {
    wait_until("the agents are told to stop", || {
        let told = |id: &str| world.state().join("frames").join(id).join("stop").exists();
        world.log().starts.iter().filter(|start| told(start.session())).count() == agents
    });
}

#[test]
fn a_terminal_that_is_closed_hangs_up_several_times_and_the_tool_finishes() {
    let (world, gate) = with_a_running_tool("true");
    let spawn = stopped(&world, &gate, Signal::HUP);
    for _ in 0..3 {
        spawn.signal(Signal::HUP);
        world.run(&["tree"]).succeeds();
    }
    gate.open_for_one();
    spawn.ends().exits_with(130);
    assert_eq!(world.marks(), "worked\nmade\n");
}

#[test]
fn the_running_tool_finishes_and_its_result_is_kept() {
    let (world, gate) = with_a_running_tool("true");
    let spawn = stopped(&world, &gate, Signal::INT);
    assert!(world.log().starts[0].is_alive());
    spawn.says(WAITS_FOR_THE_TOOL, 1);
    gate.open_for_one();
    insta::assert_snapshot!(spawn.ends(), @r"
    --- stderr
    stopping: waiting for the running tool of [ID1:8] (Bash: echo held >> gate.held; read go < gate; echo made >> marks; true), Ctrl-C again to kill
    error: interrupted
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 130
    ");
    assert_eq!(world.marks(), "worked\nmade\n");
    let id = world.log().starts[0].session().to_owned();
    let frame = world.state().join("frames").join(&id);
    assert!(!frame.join("stop").exists());
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.marks(), "worked\nmade\nafter\n");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r"
    SGN_RESUME

    Your last turn was cut short: a person stopped it. Carry on where you stopped.
    ");
}

#[test]
fn so_it_is_with_other_signals_and_a_tool_that_fails() {
    for signal in [Signal::TERM, Signal::HUP] {
        let (world, gate) = with_a_running_tool("exit 3");
        let spawn = stopped(&world, &gate, signal);
        gate.open_for_one();
        spawn.ends().exits_with(130);
        assert_eq!(world.marks(), "worked\nmade\n");
    }
}

#[test]
fn a_second_signal_kills_the_tool_which_is_named() {
    let (world, gate) = with_a_running_tool("true");
    let spawn = stopped(&world, &gate, Signal::INT);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    assert!(!world.log().starts[0].is_alive());
    assert_eq!(world.marks(), "worked\n");
    let id = world.log().starts[0].session().to_owned();
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r"
    SGN_RESUME

    Your last turn was cut short: a person stopped it. Carry on where you stopped. This tool call was made then and may have taken effect, even if the conversation says that it was rejected, so check before you repeat it:
    - Bash: echo held >> gate.held; read go < gate; echo made >> marks; true
    ");
}

#[test]
fn the_end_of_the_grace_period_kills_it_too() {
    let (world, gate) = with_a_running_tool("true");
    let world = world.with("AGENT_CLI_STOP_GRACE", "0s");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    assert_eq!(world.marks(), "worked\n");
    let outcome = world.command(["spawn", "root.md"]).with("AGENT_CLI_STOP_GRACE", "soon").run();
    outcome.exits_with(2);
    assert!(outcome.stderr.contains("AGENT_CLI_STOP_GRACE"), "{outcome}");
}

#[test]
fn an_agent_that_does_not_listen_is_killed_by_a_third_signal() {
    let (world, gate) = with_a_running_tool("true");
    let world = world.with("STAND_IN_IS_DEAF", "1");
    let spawn = stopped(&world, &gate, Signal::INT);
    // Two that come at once may be one.
    wait_until("it is killed", || {
        let alive = world.log().starts[0].is_alive();
        if alive {
            spawn.signal(Signal::INT);
        }
        !alive
    });
    spawn.ends().exits_with(130);
    let start = world.log().starts.remove(0);
    for _ in 0..2 {
        gate.open_for_one();
    }
    world.run(&["resume", start.session()]).prints("done");
    assert!(world.log().starts[1].prompt.contains("\n- Bash: echo held"), "{}", world.log().starts[1].prompt);
}

#[test]
fn nobody_is_started_any_more() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn a.md b.md\nreply {results}\n");
    world.file("a.md", "hold gate\nreply A\n");
    world.file("b.md", "reply B\n");
    let spawn = world.command(["spawn", "parent.md", "--max-parallel", "1"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    is_told_to_stop(&world, 1);
    gate.open_for_one();
    spawn.ends().exits_with(130);
    assert_eq!(world.starts(), 2);
    let id = world.log().starts[0].session().to_owned();
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("\nA\n") && outcome.stdout.contains("\nB"), "{outcome}");
}

#[test]
fn every_agent_that_runs_may_finish_its_tool() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md child.md\nreply {results}\n");
    world.file("child.md", "hold gate\nrun echo after >> marks\nreply ok\n");
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(2);
    spawn.signal(Signal::INT);
    spawn.says(WAITS_FOR_THE_TOOL, 2);
    gate.open_for_one();
    gate.open_for_one();
    spawn.ends().exits_with(130);
    assert!(!world.project().join("marks").exists());
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).succeeds();
    assert_eq!(world.marks(), "after\nafter\n");
}

#[test]
fn an_agent_whose_runner_is_killed_while_it_stops_has_not_replied() {
    let (world, gate) = with_a_running_tool("true");
    let spawn = stopped(&world, &gate, Signal::INT);
    spawn.kill();
    spawn.ends();
    gate.open_for_one();
    let start = world.log().starts.remove(0);
    wait_until("the agent ends", || !start.is_alive());
    let outcome = world.run(&["resume", start.session()]);
    outcome.exits_with(1);
    assert_eq!(outcome.stdout, "", "{outcome}");
    world.run(&["resume", start.session()]).prints("done");
    assert_eq!(world.marks(), "worked\nmade\nafter\n");
}

#[test]
fn a_suspended_call_is_a_pause_even_then() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", "ask When?\nreply {result}\n");
    let world = {
        let path = world.project().join("gate");
        world.with("STAND_IN_LINGERS", path)
    };
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::INT);
    is_told_to_stop(&world, 1);
    gate.open_for_one();
    spawn.ends().exits_with(130);
    let id = world.log().starts[0].session().to_owned();
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 2);
}
