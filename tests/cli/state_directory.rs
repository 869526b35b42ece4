//! The state directory: its permissions, and what happens when it cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::gate::wait_until;
use crate::repository::repository_in;
use crate::world::{World, files_below};

fn used() -> World {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    world
}

#[track_caller]
fn refused(world: &World) -> String {
    let outcome = world.run(&["ls"]);
    outcome.exits_with(1);
    assert_eq!(outcome.stdout, "");
    outcome.to_string()
}

#[test]
fn nobody_else_can_read_it() {
    let world = used();
    let mode = |path: &std::path::Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&world.state()), 0o700);
    for file in files_below(&world.state()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().expect("a folder")), 0o700, "{}", file.display());
    }
}

/// A new file needs a place in `StateDir::records`.
#[test]
fn agents_may_edit_nothing_in_it_but_worktrees() {
    let files = [(".agent-cli.toml", "linger = '1s'\n"), ("asks.md", "ask When?\nreply {result}\n")];
    let world = repository_in(World::with_hooks(), &files);
    world.run(&["config", "trust", "--yes"]).succeeds();
    let claude = "#!/bin/sh\n[ \"$1\" = plugin ] || echo '2.1.330 (Claude Code)'\n";
    let claude = world.executable("claude", claude).display().to_string();
    world.command(["init", "--plugin", "--yes"]).with("AGENT_CLI_CLAUDE", &claude).run().succeeds();
    world.run(&["spawn", "asks.md", "--worktree"]).started();
    let watch = world.command(["watch"]).start();
    let page = world.command(["serve", "--listen", "127.0.0.1:0"]).start();
    let has = |name: &str| world.state().join(name).exists();
    wait_until("both run", || has("watching.lock") && has("page"));

    world.file("root.md", "run cat $AGENT_CLI_STATE_DIR/frames/$AGENT_CLI_AGENT_ID/settings.json\nreply {result}\n");
    let settings = world.run(&["spawn", "root.md"]).succeeds().json();
    for process in [watch, page] {
        process.signal(rustix::process::Signal::TERM);
        process.ends();
    }
    let rules = settings["permissions"]["deny"].as_array().expect("rules");
    let rules: Vec<&str> =
        rules.iter().filter_map(|rule| rule.as_str()?.strip_prefix("Edit(/")?.strip_suffix(')')).collect();
    let is_covered = |path: &str| {
        rules.iter().any(|rule| path == *rule || rule.strip_suffix('*').is_some_and(|begin| path.starts_with(begin)))
    };
    let state = fs::canonicalize(world.state()).expect("it exists");
    let entries = fs::read_dir(&state).expect("it exists").map(|entry| entry.expect("it exists").path());
    let names: Vec<String> = entries.map(|path| path.display().to_string()).collect();
    assert!(names.len() >= 8, "{names:?}");
    let worktrees = state.join("worktrees").display().to_string();
    for name in &names {
        assert_eq!(is_covered(name), *name != worktrees, "{name}: {rules:?}");
    }
}

#[test]
fn a_state_directory_that_cannot_be_made_is_reported() {
    let world = World::new();
    fs::write(world.state(), "a file").expect("writable");
    insta::assert_snapshot!(refused(&world), @r"
    --- stderr
    error: the state directory [STATE] is not a directory
    hint: set AGENT_CLI_STATE_DIR to a directory
    --- exit status: 1
    ");
    let below = world.state().join("below");
    insta::assert_snapshot!(refused(&world.with("AGENT_CLI_STATE_DIR", below)), @r"
    --- stderr
    error: the state directory [STATE]/below is not a directory
    hint: set AGENT_CLI_STATE_DIR to a directory
    --- exit status: 1
    ");
}

#[test]
fn a_newer_database_is_left_alone() {
    let world = used();
    let file = world.state().join("agent-cli.db");
    let database = rusqlite::Connection::open(&file).expect("a database");
    let known: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a database");
    database.pragma_update(None, "user_version", 999).expect("writable");
    let said = refused(&world).replace(&format!("up to {known}\n"), "up to [KNOWN]\n");
    insta::assert_snapshot!(said, @"
    --- stderr
    error: [STATE]/agent-cli.db has version 999, but this agent-cli supports versions only up to [KNOWN]
    hint: upgrade agent-cli
    --- exit status: 1
    ");
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("still a database");
    assert_eq!(version, 999);
}

#[test]
fn what_is_no_database_is_left_alone() {
    let world = World::new();
    fs::create_dir(world.state()).expect("writable");
    let file = world.state().join("agent-cli.db");
    fs::write(&file, "no database, but something that is dear to somebody").expect("writable");
    insta::assert_snapshot!(refused(&world), @r"
    --- stderr
    error: [STATE]/agent-cli.db is not a database of agent-cli
    hint: move the file away if it is not needed, or set AGENT_CLI_STATE_DIR to another directory
    --- exit status: 1
    ");
    assert!(fs::read_to_string(&file).expect("readable").starts_with("no database"));
}

#[test]
fn its_path_may_be_relative_and_hold_spaces() {
    let world = World::new().with("AGENT_CLI_STATE_DIR", "my state");
    world.file("root.md", "spawn sub/child.md --cwd sub\nreply {result}\n");
    world.file("sub/child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert!(world.project().join("my state/agent-cli.db").is_file());
    assert!(!world.project().join("sub/my state").exists());
}

#[test]
fn its_path_may_begin_with_a_tilde_that_no_shell_expanded() {
    let world = World::new().with("AGENT_CLI_STATE_DIR", "~/mine");
    world.file("root.md", "reply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    assert!(world.home().join("mine/agent-cli.db").is_file());
    assert!(!world.project().join("~").exists());
}

#[test]
fn looking_makes_no_state_worth_mentioning() {
    let world = World::new();
    world.run(&["ls"]).succeeds();
    world.run(&["questions"]).succeeds();
    assert_eq!(world.starts(), 0);
}

#[test]
fn it_is_found_in_the_home_directory() {
    let world = World::new().without("AGENT_CLI_STATE_DIR");
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    assert!(!files_below(&world.home()).is_empty());
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

/// Anyone who can replace the database there can have commands run.
#[test]
fn a_state_directory_that_others_can_write_is_not_used() {
    let world = used();
    let outer = world.state();
    let inner = outer.join("below");
    fs::rename(&outer, world.home().join("was")).expect("it is ours");
    fs::create_dir(&outer).expect("it is ours");
    fs::rename(world.home().join("was"), &inner).expect("it is ours");
    let world = world.with("AGENT_CLI_STATE_DIR", &inner);
    world.run(&["ls"]).succeeds();
    fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).expect("it is ours");
    for command in [&["ls"][..], &["resume", "--all"], &["fsck"], &["questions"]] {
        world.run(command).exits_with(1);
    }
    insta::assert_snapshot!(refused(&world), @"
    --- stderr
    error: the state directory [STATE]/below is not used: others can write [STATE]
    hint: chmod go-w [STATE]
    hint: or set AGENT_CLI_STATE_DIR to a directory that only you can write
    --- exit status: 1
    ");
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains("others can write") && doctor.contains("hint: chmod go-w "), "{doctor}");
    fs::set_permissions(&outer, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    world.run(&["ls"]).succeeds();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    world.run(&["ls"]).exits_with(1);
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).expect("it is ours");
    world.run(&["ls"]).succeeds();
}

#[test]
fn a_person_is_told_that_agents_could_move_it_away() {
    let world = World::new();
    world.file("root.md", "reply over\n");
    let state = world.project().join("inside/state");
    let world = world.with("AGENT_CLI_STATE_DIR", &state);
    fs::create_dir(world.project().join("beside")).expect("it is ours");
    let spawn = |mode: &str, cwd: &str| {
        world.run(&["spawn", "--prompt", "reply over", "--permission-mode", mode, "--cwd", cwd]).stderr
    };
    for mode in ["acceptEdits", "bypassPermissions"] {
        let said = spawn(mode, ".");
        let place = fs::canonicalize(&state).expect("it is there");
        assert!(said.contains(&format!("could replace the state directory {}", place.display())), "{said}");
        assert!(!spawn(mode, "beside").contains("could replace"));
    }
    assert!(!spawn("default", ".").contains("could replace"));
}
