//! Endless background work of an agent that pauses or has replied.

use crate::crash::{kill_agent, kill_runner};
use crate::gate::wait_until;
use crate::marked::processes_of;
use crate::world::World;

const KINDS: [&str; 2] = ["command", "subagent"];

fn nothing_runs(world: &World) {
    wait_until("nothing runs", || processes_of(&world.state()).is_empty());
}

#[test]
fn an_agent_two_levels_deep_pauses_and_goes_on() {
    for kind in KINDS {
        let world = World::with_hooks();
        world.file("root.md", "spawn child.md\nreply root: {result}\n");
        world.file("child.md", format!("beside {kind}\nask When?\nreply child: {{result}}\n"));
        let id = world.spawn_paused("root.md");
        nothing_runs(&world);
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("root: child: Jan 1st");
        assert_eq!(world.starts(), 4);
        // It was not an interruption.
        let told = world.log().starts.iter().any(|start| start.prompt.contains("cut short"));
        assert!(!told);
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn an_agent_that_pauses_with_a_signal_pauses_at_once() {
    for kind in KINDS {
        let world = World::new();
        world.file("root.md", format!("beside {kind}\nask When?\nreply {{result}}\n"));
        let id = world.spawn_paused("root.md");
        nothing_runs(&world);
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("Jan 1st");
    }
}

#[test]
fn after_a_reply_it_has_so_long_and_is_ended() {
    for kind in KINDS {
        let world = World::with_hooks().with("AGENT_CLI_BACKGROUND_GRACE", "0s");
        world.file("root.md", format!("beside {kind}\nreply so\n"));
        let outcome = world.run(&["spawn", "root.md"]);
        outcome.prints("so");
        assert!(outcome.stderr.contains("ended its background work (the server)"), "{outcome}");
        assert!(!outcome.stderr.contains("to finish"), "it has no time: {outcome}");
        nothing_runs(&world);
    }
}

#[test]
fn what_an_agent_leaves_behind_when_it_waits_is_ended() {
    let world = World::new();
    world.file("root.md", "run sleep 600 > /dev/null 2>&1 & true\nend SGN_PEND_STARTED\nreply so\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.stdout.starts_with("SGN_PEND_STARTED"), "{outcome}");
    nothing_runs(&world);
}

#[test]
fn how_long_it_has_is_a_length_of_time() {
    let world = World::new();
    world.file("root.md", "reply so\n");
    let outcome = world.command(["spawn", "root.md"]).with("AGENT_CLI_BACKGROUND_GRACE", "soon").run();
    outcome.exits_with(2);
    assert!(outcome.stderr.contains("AGENT_CLI_BACKGROUND_GRACE"), "{outcome}");
}

#[test]
fn the_next_resume_ends_what_a_killed_runner_has_left() {
    for kind in KINDS {
        let world = World::with_hooks();
        let gate = world.gate("gate");
        world.file("root.md", format!("beside {kind}\nhold gate\nask When?\nreply {{result}}\n"));
        let spawn = world.command(["spawn", "root.md"]).start();
        gate.reached_by(1);
        kill_runner(spawn);
        gate.open_for_one();
        let id = world.log().starts[0].session().to_owned();
        wait_until("a resume concludes the attempt", || {
            world.run(&["resume", &id]).stdout.starts_with("SGN_PEND_STARTED (")
        });
        nothing_runs(&world);
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("Jan 1st");
        assert_eq!(world.starts(), 2);
    }
}

#[test]
fn what_an_agent_said_before_its_background_was_over_is_no_reply_when_claude_is_killed() {
    let world = World::with_hooks();
    world.file("root.md", "beside command\nreply started it\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    let is_printed = || {
        let frames = std::fs::read_dir(world.state().join("frames")).into_iter().flatten().flatten();
        let mut outputs = frames.filter_map(|frame| std::fs::read_to_string(frame.path().join("out.ndjson")).ok());
        outputs.any(|text| text.contains("\"result\":\"started it\""))
    };
    wait_until("it has said so", is_printed);
    kill_agent(&world);
    let outcome = spawn.ends();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(1), ""), "{outcome}");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("started it");
    assert_eq!(world.starts(), 2);
}
