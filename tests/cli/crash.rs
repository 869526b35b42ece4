//! `agent-cli` or `claude` is killed without warning.

use rustix::process::{Pid, Signal, kill_process};

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::world::World;

fn world_with_gate() -> (World, Gate) {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "run echo worked >> marks\nhold gate\nreply done\n");
    (world, gate)
}

#[track_caller]
pub(crate) fn kill_runner(runner: Running<'_>) {
    runner.signal(Signal::KILL);
    assert_eq!(runner.ends().code(), None);
}

pub(crate) fn kill_agent(world: &World) {
    let start = world.log().starts.pop().expect("an agent was started");
    kill_process(Pid::from_raw(start.pid).expect("a process id"), Signal::KILL).expect("it lives");
    wait_until("the agent is dead", || !start.is_alive());
}

/// Whether a process is running. An ended one may be left as a zombie if orphans are not reaped.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    rustix::process::test_kill_process(pid).is_ok() && !stat.contains(") Z ")
}

#[test]
fn an_agent_outlives_its_runner_and_its_reply_is_not_lost() {
    let (world, gate) = world_with_gate();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_runner(spawn);
    let start = &world.log().starts[0];
    world.run(&["resume", start.session()]).prints("SGN_PEND_ONGOING");

    gate.open_for_one();
    wait_until("the agent ends its turn", || !start.is_alive());
    world.run(&["resume", start.session()]).prints("done");
    assert_eq!(world.starts(), 1);
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn a_request_of_an_agent_without_a_runner_is_carried_out() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nspawn child.md\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_runner(spawn);
    gate.open_for_one();
    let start = &world.log().starts[0];
    wait_until("the agent ends its turn", || !start.is_alive());
    world.run(&["resume", start.session()]).prints("ok");
    assert_eq!(world.starts(), 3);
}

#[test]
fn when_both_are_killed_the_agent_carries_on_from_its_half_done_session() {
    let (world, gate) = world_with_gate();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_runner(spawn);
    kill_agent(&world);
    gate.open_for_one();
    gate.open_for_one();
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("done");
    let log = world.log();
    assert_eq!(log.starts.len(), 2);
    assert_eq!(world.marks(), "worked\n");
    insta::assert_snapshot!(world.named(&log.starts[1].prompt), @"
    SGN_RESUME

    Your last turn was cut short: claude and its runner were killed. Carry on where you stopped. This tool call was made then and may have taken effect, even if the conversation says that it was rejected, so check before you repeat it:
    - Bash: echo held >> gate.held; read go < gate
    ");
}

#[test]
fn an_agent_that_was_killed_after_it_asked_is_told_what_is_uncertain() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask When? &\nhold gate\nreply {results}\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_runner(spawn);
    kill_agent(&world);
    gate.open_for_one();
    gate.open_for_one();
    let id = world.log().starts[0].session().to_owned();
    assert_eq!(world.run(&["resume", &id]).started(), id, "it waits for the answer");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let prompt = &world.log().starts[1].prompt;
    assert!(prompt.contains("This tool call was made then") && prompt.contains("gate.held"), "{prompt}");
}

#[test]
fn when_the_agent_alone_is_killed_the_next_resume_carries_on() {
    let (world, gate) = world_with_gate();
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_agent(&world);
    spawn.ends().exits_with(1);
    gate.open_for_one();
    gate.open_for_one();
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.starts(), 2);
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn a_tool_that_outlives_its_agent_is_ended_before_the_frame_runs_again() {
    // A link is another name of the state directory, and cron may know it by another one than a shell.
    for (spawned, resumed) in [("state", "state"), ("link", "state"), ("state", "link")] {
        let (world, gate) = world_with_gate();
        let place = |name: &str| world.state().with_file_name(name).display().to_string();
        std::os::unix::fs::symlink(place("state"), place("link")).expect("writable");
        std::fs::create_dir(world.state()).expect("writable");
        world.file("root.md", "once run echo $$ > tool.pid; echo held >> gate.held; read go < gate\nreply done\n");
        let spawn = world.command(["spawn", "root.md"]).with("AGENT_CLI_STATE_DIR", &place(spawned)).start();
        gate.reached_by(1);
        kill_runner(spawn);
        kill_agent(&world);
        let pid = std::fs::read_to_string(world.project().join("tool.pid")).expect("a process id");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process id");
        assert!(runs(pid), "the tool lives on");
        let id = world.log().starts[0].session().to_owned();
        world.command(["resume", &id]).with("AGENT_CLI_STATE_DIR", &place(resumed)).run().prints("done");
        assert!(!runs(pid), "the tool was ended");
    }
}

#[test]
fn a_tool_that_outlives_its_agent_is_ended_when_the_chain_is_removed() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "run echo $$ > tool.pid; echo held >> gate.held; exec cat gate\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    kill_runner(spawn);
    kill_agent(&world);
    let tool = tool(&world);
    assert!(runs(tool), "the tool lives on");
    world.run(&["rm", world.log().starts[0].session(), "--yes"]).succeeds();
    wait_until("the tool was ended", || !runs(tool));
}

#[test]
fn nothing_that_an_agent_has_left_behind_runs_while_it_waits() {
    let world = World::new();
    let _gate = world.gate("gate");
    let left = "echo $$ > tool.pid; exec cat gate";
    let is_there = "until [ -s tool.pid ]; do sleep 0.01; done";
    world.file("root.md", format!("run (nohup sh -c '{left}' > out 2>&1 &); {is_there}\nask When?\n"));
    world.spawn_paused("root.md");
    let tool = tool(&world);
    wait_until("it was ended", || !runs(tool));
}

/// The tool that has recorded its id.
fn tool(world: &World) -> Pid {
    let pid = std::fs::read_to_string(world.project().join("tool.pid")).expect("a process id");
    Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process id")
}

#[test]
fn an_agent_that_was_answered_is_given_the_answer_again() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask When?\nunless sign die 9\nhold gate\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    // It dies before it has done anything with the answer.
    world.run(&["resume", &id]).exits_with(1);
    world.file("sign", "");
    gate.open_for_one();
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn a_group_without_a_runner_gets_the_replies_of_all() {
    let (world, gate) = world_with_gate();
    let spawn = world.command(["spawn", "root.md", "root.md", "root.md", "--max-parallel", "2"]).start();
    gate.reached_by(2);
    kill_runner(spawn);
    let group = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let starts = world.log().starts;
    (0..3).for_each(|_| gate.open_for_one());
    wait_until("the agents end their turns", || starts.iter().all(|start| !start.is_alive()));
    let outcome = world.run(&["resume", &group]);
    outcome.succeeds();
    assert_eq!(outcome.stdout.matches(": done\ndone").count(), 3, "{outcome}");
    assert_eq!((world.starts(), world.marks().lines().count()), (3, 3), "nothing is repeated");
}

#[test]
fn what_nobody_runs_is_listed_as_abandoned() {
    let (world, gate) = world_with_gate();
    world.file("top.md", "spawn root.md\nreply {result}\n");
    let spawn = world.command(["spawn", "top.md"]).start();
    gate.reached_by(1);
    let listed = |world: &World| {
        let tree = world.run(&["tree", "--json"]).json();
        let flags = tree.as_array().expect("frames").iter().map(|frame| frame["abandoned"] == true).collect::<Vec<_>>();
        (flags, world.run(&["ls", "-ap", "--json"]).json()[0]["abandoned"] == true)
    };
    let is = |child: bool| (vec![false, child], child);
    assert_eq!(listed(&world), is(false));
    kill_runner(spawn);
    assert_eq!(listed(&world), is(false), "claude is still at work");
    kill_agent(&world);
    wait_until("the tool of the agent is gone", || listed(&world) == is(true));
    insta::assert_snapshot!(world.run(&["tree"]), @"
    [ID1:8] waits ([AGE])  top.md  waits for its child
    └─ [ID2:8] abandoned by its runner; agent-cli resume [ID1:8] continues it  root.md
    --- exit status: 0
    ");
    let listed_as = world.run(&["ls"]).to_string();
    assert!(listed_as.contains("abandoned by its runner; agent-cli resume"), "{listed_as}");
    let child = world.run(&["tree", "--json"]).json()[1]["id"].as_str().expect("an id").to_owned();
    let shown = world.run(&["show", &child]).to_string();
    assert!(
        shown.contains("abandoned by its runner; agent-cli resume") && shown.contains("not ended, abandoned"),
        "{shown}"
    );
    assert_eq!(world.run(&["show", &child, "--json"]).json()["abandoned"], true);
    let root = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let estimate = world.run(&["resume", &root, "--estimate", "--json"]).json();
    let next = &estimate["agents"][0];
    assert_eq!((&next["id"], &next["starts"]), (&child.as_str().into(), &"now".into()), "{estimate:#}");
    assert_ne!(next["cache"]["reason"], "new", "its conversation continues: {estimate:#}");
    gate.open_for_one();
    gate.open_for_one();
    world.run(&["resume", &root]).succeeds();
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json()[0]["abandoned"], false);
}
