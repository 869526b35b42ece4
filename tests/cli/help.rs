//! The program explains itself.

use crate::world::World;

#[test]
fn completions_are_scripts_for_shells() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = world.run(&["completions", shell]);
        assert!(outcome.succeeds().stdout.contains("agent-cli"), "{shell}");
    }
    world.run(&["completions", "cmd.exe"]).exits_with(2);
}

#[test]
fn the_version_is_printed() {
    let world = World::new();
    let outcome = world.run(&["--version"]);
    assert_eq!(outcome.succeeds().stdout, concat!("agent-cli ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn what_is_no_command_is_refused() {
    let world = World::new();
    world.run(&["spwan", "root.md"]).exits_with(2);
    world.run(&["spawn"]).exits_with(2);
    world.run(&["resume"]).exits_with(2);
    world.run(&["ls", "--frobnicate"]).exits_with(2);
}
