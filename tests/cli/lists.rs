//! What people see of their chains.

use crate::world::World;

#[test]
fn a_chain_at_rest() {
    let world = World::new();
    world.file("root.md", "spawn a.md &\nspawn b.md &\nspawn c.md\nreply {results}\n");
    world.file("a.md", "ask When?\nreply {result}\n");
    world.file("b.md", "reply fine\n");
    world.file("c.md", "fail boom\n");
    let id = world.spawn_paused("root.md");
    insta::assert_snapshot!(world.run(&["ls"]), @"");
    insta::assert_snapshot!(world.run(&["tree"]), @"");
    insta::assert_snapshot!(world.run(&["tree", &id[..8]]), @"");
    insta::assert_snapshot!(world.run(&["show", &id[..8]]), @"");
}

#[test]
fn nothing_at_all() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["ls"]), @"");
    insta::assert_snapshot!(world.run(&["tree"]), @"");
    insta::assert_snapshot!(world.run(&["questions"]), @"");
}

#[test]
fn a_frame_that_there_is_not() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["show", "abcd1234"]).exits_with(3), @"");
    insta::assert_snapshot!(world.run(&["tree", "abcd1234"]).exits_with(3), @"");
}
