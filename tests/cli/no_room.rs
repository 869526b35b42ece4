//! The system refuses to let files grow, at any size of them: of the database and its log, of copies, and of whatever the
//! agents write. Everything continues once there is space.

use crate::programs;
use crate::world::World;

/// The largest size of any file, in the blocks of the shell. A database of one chain takes about 200 blocks of half a kilobyte.
const BLOCKS: [u32; 12] = [0, 1, 8, 32, 64, 96, 128, 160, 192, 208, 224, 240];

#[test]
fn whatever_could_not_grow_the_chain_goes_on() {
    for blocks in BLOCKS {
        let world = World::with_hooks();
        world.file("root.md", "spawn child.md\nreply root: {result}\n");
        world.file("child.md", "ask When?\nreply {result}\n");
        let program = programs::agent_cli();
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} spawn root.md", program.display());
        let outcome = world.program("/bin/sh", ["-c", limited.as_str()]).run();
        let paused = outcome.stdout.starts_with("SGN_PEND_STARTED");
        assert!(paused || (outcome.code() == Some(1) && outcome.stderr.contains("hint: ")), "{blocks}: {outcome}");

        let roots = world.run(&["ls", "-ap", "--json"]).json();
        let id = match roots[0]["id"].as_str() {
            Some(id) => id.to_owned(),
            None => world.spawn_paused("root.md"),
        };
        if world.run(&["questions", "--json"]).stdout == "[]\n" {
            world.run(&["resume", &id]).started();
        }
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("root: Jan 1st");
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn a_limit_on_files_is_an_error_and_no_death() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let program = programs::agent_cli();
    let limited = format!("ulimit -f 0; exec {} spawn root.md", program.display());
    let outcome = world.program("/bin/sh", ["-c", limited.as_str()]).run();
    assert!(outcome.code() == Some(1) && outcome.stderr.contains("hint: "), "{outcome}");
}
