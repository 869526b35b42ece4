//! A `claude` that is missing, unusable or strange.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::programs;
use crate::world::World;

fn with_task() -> World {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    world
}

#[track_caller]
fn refused(world: &World) -> String {
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(4);
    assert_eq!(outcome.stdout, "");
    outcome.to_string()
}

#[test]
fn without_claude_nothing_is_begun() {
    let world = with_task().without("AGENT_CLI_CLAUDE").with("PATH", "/nonexistent");
    insta::assert_snapshot!(refused(&world), @r#"
    --- stderr
    error: no program named "claude" in PATH
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    "#);
    let world = with_task().with("AGENT_CLI_CLAUDE", "/nonexistent/claude");
    insta::assert_snapshot!(refused(&world), @r"
    --- stderr
    error: there is no program at /nonexistent/claude
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
    let world = with_task().with("AGENT_CLI_CLAUDE", "claude-of-nowhere");
    insta::assert_snapshot!(refused(&world), @r#"
    --- stderr
    error: no program named "claude-of-nowhere" in PATH
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    "#);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn claude_is_found_in_path() {
    let world = with_task().without("AGENT_CLI_CLAUDE");
    let bin = world.project().join("bin");
    std::fs::create_dir(&bin).expect("writable");
    symlink(programs::stand_in(), bin.join("claude")).expect("writable");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    world.command(["spawn", "root.md"]).with("PATH", &path).run().prints("ok");
}

#[test]
fn a_file_that_cannot_be_run_is_no_claude() {
    let world = with_task();
    let file = world.file("claude", "#!/bin/sh\nexit 0\n");
    let named = |mode: u32| {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("own file");
        let outcome = world.command(["spawn", "root.md"]).with("AGENT_CLI_CLAUDE", &file.to_string_lossy()).run();
        outcome.exits_with(4);
        outcome.to_string()
    };
    insta::assert_snapshot!(named(0o644), @r"
    --- stderr
    error: [PROJECT]/claude is not an executable file
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
    world.executable("claude", "#!/nonexistent/node\n");
    insta::assert_snapshot!(named(0o755), @"
    --- stderr
    error: [PROJECT]/claude cannot be started: No such file or directory (os error 2)
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
    world.executable("claude", "#!/bin/sh\necho broken >&2\nexit 1\n");
    insta::assert_snapshot!(named(0o755), @"
    --- stderr
    error: [PROJECT]/claude --version failed with exit status: 1: broken
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
}

#[test]
fn a_claude_that_is_too_old_is_refused() {
    let world = with_task().with("STAND_IN_VERSION", "2.0.10");
    insta::assert_snapshot!(refused(&world), @"
    --- stderr
    error: [STAND-IN] is Claude Code 2.0.10, and agent-cli needs 2.0.73 or newer
    hint: install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE
    --- exit status: 4
    ");
    assert_eq!(world.starts(), 0);
}

#[test]
fn a_version_of_next_year_is_tried() {
    let world = with_task().with("STAND_IN_VERSION", "17.0.0-beta+build");
    world.run(&["spawn", "root.md"]).prints("ok");
    let world = with_task().with("STAND_IN_VERSION", "unversioned");
    world.run(&["spawn", "root.md"]).prints("ok");
}

#[test]
fn the_version_is_asked_for_once() {
    let world = with_task();
    world.run(&["spawn", "root.md"]).prints("ok");
    world.run(&["spawn", "root.md"]).prints("ok");
    assert_eq!(world.log().versions, 1);
}

#[test]
fn the_program_can_be_named_on_the_command_line() {
    let world = with_task().with("AGENT_CLI_CLAUDE", "/nonexistent/claude");
    world.run(&["spawn", "root.md", "--claude", &programs::stand_in().to_string_lossy()]).prints("ok");
}

#[test]
fn the_program_is_remembered() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let world = world.without("AGENT_CLI_CLAUDE").with("PATH", "/usr/bin:/bin");
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn where_the_remembered_program_is_gone_the_one_in_path_serves() {
    let world = World::new().without("AGENT_CLI_CLAUDE");
    world.file("root.md", "ask When?\nreply {result}\n");
    for folder in ["old", "new"] {
        std::fs::create_dir(world.project().join(folder)).expect("writable");
        symlink(programs::stand_in(), world.project().join(folder).join("claude")).expect("writable");
    }
    let id = world.run(&["spawn", "root.md", "--claude", "old/claude"]).started();
    world.answer("now");
    std::fs::remove_file(world.project().join("old/claude")).expect("own file");
    let refused = world.command(["resume", &id]).with("PATH", "/usr/bin:/bin").run().exits_with(4).stderr.clone();
    let why = "old/claude, the program of this chain, and there is no program named \"claude\" in PATH";
    assert!(refused.contains(why), "{refused}");
    let path = format!("{}:/usr/bin:/bin", world.project().join("new").display());
    let resumed = world.command(["resume", &id]).with("PATH", &path).run();
    resumed.prints("now");
    assert!(resumed.stderr.contains("old/claude cannot be used any more: "), "{resumed}");
}

#[test]
fn the_program_may_be_named_by_a_relative_path() {
    let world = World::new().without("AGENT_CLI_CLAUDE");
    world.file("root.md", "ask When?\nreply {result}\n");
    std::fs::create_dir(world.project().join("my programs")).expect("writable");
    symlink(programs::stand_in(), world.project().join("my programs/claude")).expect("writable");
    let id = world.run(&["spawn", "root.md", "--claude", "my programs/claude"]).started();
    world.answer("now");
    world.command(["resume", &id]).within(&world.home()).run().prints("now");
}
