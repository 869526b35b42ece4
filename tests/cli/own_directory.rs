//! An agent removes or empties the directory of its own frame.

use std::fs;

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::marked::processes_of;
use crate::world::World;

const REMOVES: &str = "run rm -r \"$AGENT_CLI_STATE_DIR/frames/$AGENT_CLI_AGENT_ID\"\nrun echo worked >> marks\n";
const EMPTIES: &str = "run for file in \"$AGENT_CLI_STATE_DIR/frames/$AGENT_CLI_AGENT_ID\"/*; do : > \"$file\"; done\nrun echo worked >> marks\n";

#[test]
fn what_it_replies_is_the_reply() {
    for deed in [REMOVES, EMPTIES] {
        let world = World::with_hooks();
        world.file("root.md", format!("{deed}reply ok\n"));
        world.run(&["spawn", "root.md"]).prints("ok");
        world.run(&["fsck"]).exits_with(0);
    }
}

#[test]
fn it_pauses_and_goes_on() {
    for world in [World::new, World::with_hooks] {
        for deed in [REMOVES, EMPTIES] {
            let world = world();
            world.file("root.md", format!("{deed}ask When?\n{deed}ask And?\nreply {{results}}\n"));
            let id = world.spawn_paused("root.md");
            world.answer("Jan 1st");
            world.run(&["resume", &id]).started();
            world.answer("Jan 2nd");
            assert!(world.run(&["resume", &id]).succeeds().stdout.contains("Jan 2nd"));
            assert_eq!((world.marks().as_str(), world.starts()), ("worked\nworked\n", 3));
            world.run(&["fsck"]).exits_with(0);
        }
    }
}

#[test]
fn nobody_else_starts_it_while_it_runs() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", format!("{REMOVES}hold gate\nreply ok\n"));
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    for _ in 0..2 {
        let resumed = world.run(&["resume", &id]);
        resumed.prints("SGN_PEND_ONGOING");
        assert!(resumed.stderr.contains("another process"), "{}", resumed.stderr);
    }
    assert_eq!(world.starts(), 1);
    gate.open_for_one();
    spawn.ends().prints("ok");
}

#[test]
fn what_it_did_before_its_runner_died_is_not_done_again() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", format!("{REMOVES}hold gate\nreply ok\n"));
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::KILL);
    spawn.ends();
    gate.open_for_one();
    wait_until("the agent ends its turn", || !world.log().starts[0].is_alive());
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    assert_eq!((world.marks().as_str(), world.starts()), ("worked\n", 1));
}

#[test]
fn while_it_waits_somebody_removes_it() {
    for emptied in [false, true] {
        let world = World::with_hooks();
        world.file("root.md", "run echo worked >> marks\nask When?\nreply {result}\n");
        let id = world.spawn_paused("root.md");
        let folder = world.state().join("frames").join(&id);
        if emptied {
            crate::world::files_below(&folder).iter().for_each(|file| fs::write(file, "").unwrap());
        } else {
            fs::remove_dir_all(&folder).unwrap();
        }
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("Jan 1st");
        assert_eq!((world.marks().as_str(), world.starts()), ("worked\n", 2));
        world.run(&["fsck"]).exits_with(0);
    }
}

#[test]
fn its_background_work_ends_when_it_waits_or_has_replied() {
    for kind in ["command", "subagent"] {
        let world = World::with_hooks().with("AGENT_CLI_BACKGROUND_GRACE", "0s");
        world.file("waits.md", format!("{REMOVES}beside {kind}\nask When?\nreply {{result}}\n"));
        let id = world.spawn_paused("waits.md");
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("Jan 1st");
        world.file("replies.md", format!("{REMOVES}beside {kind}\nreply ok\n"));
        world.run(&["spawn", "replies.md"]).prints("ok");
        wait_until("nothing runs", || processes_of(&world.state()).is_empty());
    }
}
