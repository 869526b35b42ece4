//! The system refuses to let files grow, at any size of them: of the database and its log, of copies, and of whatever the
//! agents write; or Claude Code's folder is read-only. Everything continues once there is space.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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

#[test]
fn a_conversation_that_cannot_be_kept_is_not_begun() {
    let world = World::with_hooks();
    // Root can write anywhere, unless it gives that up.
    let is_root = rustix::process::geteuid().is_root();
    let gives_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"].map(str::to_owned);
    let world = if is_root { world.within(gives_up.into()) } else { world };
    world.file("root.md", "ask When?\nreply {result}\n");
    let projects = world.home().join(".claude/projects");
    fs::create_dir_all(&projects).expect("the home is writable");
    let can_write = |can: bool| {
        let mode = if can { 0o755 } else { 0o555 };
        fs::set_permissions(&projects, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    can_write(false);
    let refused = world.run(&["spawn", "root.md"]);
    let refused = &refused.exits_with(1).stderr;
    assert!(refused.contains("Permission denied") && refused.contains("readable and writable"), "{refused}");
    assert_eq!(world.starts(), 0);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("cannot keep conversations"), "{doctor}");
    can_write(true);
    let chain = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    world.run(&["resume", &chain]).succeeds();
    world.answer("now");
    world.run(&["resume", &chain]).prints("now");
}
