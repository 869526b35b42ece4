//! The power fails: nothing runs any more, and of files that nobody has synced any part is there, or zeros in its place.
//! The database and the kept copies are synced, so they are left as they are.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::gate::wait_until;
use crate::world::{World, files_below};

/// What may become of a file that was written and not synced.
const DAMAGES: [fn(&Path); 4] = [
    |path| fs::write(path, "").expect("writable"),
    |path| {
        let text = fs::read(path).expect("readable");
        fs::write(path, &text[..text.len() / 2]).expect("writable");
    },
    |path| {
        let length = fs::metadata(path).expect("readable").len();
        fs::write(path, vec![0; usize::try_from(length).expect("small")]).expect("writable");
    },
    |path| fs::remove_file(path).expect("it is there"),
];

/// The files that nobody syncs: what `claude` prints and writes, and what is written for one attempt.
fn unsynced(world: &World) -> Vec<PathBuf> {
    let is_synced = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "jsonl" || kind == "json");
    let own = files_below(&world.state().join("frames")).into_iter().filter(|path| !is_synced(path));
    own.chain(world.transcripts()).collect()
}

#[test]
fn a_chain_that_waits_goes_on() {
    for suspends in [false, true] {
        for damage in DAMAGES {
            let world = if suspends { World::with_hooks() } else { World::new() };
            world.file("root.md", "spawn child.md\nreply {result}\n");
            world.file("child.md", "ask When?\nreply {result}\n");
            let id = world.spawn_paused("root.md");
            unsynced(&world).iter().for_each(|path| damage(path));
            world.answer("Jan 1st");
            world.run(&["resume", &id]).prints("Jan 1st");
            world.run(&["fsck"]).succeeds();
        }
    }
}

#[test]
fn an_agent_that_worked_goes_on_from_what_is_there() {
    for damage in DAMAGES {
        let world = World::new();
        let gate = world.gate("gate");
        world.file("root.md", "ask When?\nonce run echo worked >> marks\nonce hold gate\nreply {results}\n");
        let id = world.spawn_paused("root.md");
        world.answer("Jan 1st");
        let runner = world.command(["resume", &id]).start();
        gate.reached_by(1);
        let agent = world.log().starts.pop().expect("an agent was started");
        runner.signal(Signal::KILL);
        runner.ends();
        kill_process(Pid::from_raw(agent.pid).expect("a process id"), Signal::KILL).expect("it lives");
        wait_until("the agent is dead", || !agent.is_alive());
        unsynced(&world).iter().for_each(|path| damage(path));
        // The first may have no more to do than to find that out.
        let first = world.run(&["resume", &id]);
        let replied = first.stdout == "Jan 1st\n";
        assert!(replied || first.code() == Some(1), "{first}");
        world.run(&["resume", &id]).prints("Jan 1st");
        world.run(&["fsck"]).succeeds();
    }
}
