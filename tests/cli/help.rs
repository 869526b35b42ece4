//! The program explains itself.

use crate::world::World;

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let help = |command: &[&str]| {
        let outcome = world.command(command.iter().chain(&["--help"])).run();
        outcome.succeeds().stdout.clone()
    };
    insta::assert_snapshot!(help(&[]), @"");
    insta::assert_snapshot!(help(&["spawn"]), @"");
    insta::assert_snapshot!(help(&["resume"]), @"");
    insta::assert_snapshot!(help(&["ask"]), @"");
    insta::assert_snapshot!(help(&["wait"]), @"");
    insta::assert_snapshot!(help(&["questions"]), @"");
    insta::assert_snapshot!(help(&["answer"]), @"");
    insta::assert_snapshot!(help(&["ls"]), @"");
    insta::assert_snapshot!(help(&["tree"]), @"");
    insta::assert_snapshot!(help(&["show"]), @"");
    insta::assert_snapshot!(help(&["completions"]), @"");
}

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
