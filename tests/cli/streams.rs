//! Standard streams that end early.

use crate::world::World;

#[test]
fn a_reader_that_has_seen_enough_is_no_accident() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    for args in [&["ls"][..], &["ls", "--json"], &["questions"], &["tree"], &["--help"], &["completions", "bash"]] {
        let outcome = world.command(args).start_unread().ends();
        assert!(!outcome.stderr.contains("panicked"), "{args:?}: {outcome}");
        assert_ne!(outcome.code(), Some(101), "{args:?}: {outcome}");
    }
}

#[test]
fn a_reply_that_nobody_read_is_not_lost() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let outcome = world.command(["spawn", "root.md"]).start_unread().ends();
    assert!(!outcome.stderr.contains("panicked"), "{outcome}");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    assert_eq!(world.starts(), 1);
}

#[test]
fn head_prints_what_it_should() {
    let world = World::new();
    world.file("root.md", "bigreply 200000\n");
    let outcome = world.program("/bin/sh", ["-c", "agent-cli spawn root.md | head -c 3"]).run();
    assert_eq!(outcome.stdout, "xxx");
    assert!(!outcome.stderr.contains("panicked"), "{outcome}");
}
