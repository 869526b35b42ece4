//! `fsck`: all records and files agree, or it reports which do not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

/// A chain that waits for an answer, its root, and the directory of that.
fn paused() -> (World, String, PathBuf) {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let folder = world.state().join("frames").join(&id);
    (world, id, folder)
}

fn clean(world: &World) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(world.run(&["fsck"]), @"
        --- stderr
        no problems found
        --- exit status: 0
        ");
    }
}

/// The chain continues, and nothing is wrong with it afterwards.
fn goes_on(world: &World, id: &str) {
    world.answer("Jan 1st");
    world.run(&["resume", id]).prints("Jan 1st");
    clean(world);
}

#[test]
fn nothing_is_wrong_with_a_chain_in_any_state() {
    let world = World::new();
    clean(&world);
    let (world, id, _) = paused();
    clean(&world);
    world.file("fails.md", "fail API Error: 400 boom\n");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    goes_on(&world, &id);
}

#[test]
fn a_chain_that_runs_raises_no_alarm() {
    let world = World::new();
    let [first, last] = ["first", "last"].map(|name| world.gate(name));
    world.file("root.md", "spawn child.md\nhold last\nreply {results}\n");
    world.file("child.md", "hold first\nreply done\n");
    let mut spawn = world.command(["spawn", "root.md"]).start();
    first.reached_by(1);
    clean(&world);
    first.open_for_one();
    last.reached_by(1);
    clean(&world);
    last.open_for_one();
    // Checks until it has ended, at least once.
    loop {
        clean(&world);
        if spawn.has_ended() {
            break;
        }
    }
    spawn.ends().prints("done");
}

#[test]
fn what_a_runner_left_is_no_error() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    spawn.signal(Signal::KILL);
    spawn.ends();
    clean(&world);
    gate.open_for_one();
    wait_until("the agent ends its turn", || !world.log().starts[0].is_alive());
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(0), @"
    note: [ID1:8] was abandoned by its runner: the next resume continues it, and nothing is lost
    --- stderr
    hint: agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    world.run(&["resume", world.log().starts[0].session()]).prints("done");
    clean(&world);
}

#[test]
fn a_missing_copy_is_made_again() {
    let (world, id, _) = paused();
    fs::remove_file(world.kept(&id)).expect("a copy");
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(1), @"
    problem: [ID1:8] has no kept copy of session [ID1:8]
    --- stderr
    hint: agent-cli fsck --repair
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["fsck", "--repair"]).exits_with(0), @"
    repaired: [ID1:8] copied the transcript of session [ID1:8]
    --- stderr
    no problems found
    --- exit status: 0
    ");
    fs::remove_dir_all(world.home().join(".claude/projects")).expect("Claude's folder");
    goes_on(&world, &id);
}

#[test]
fn a_torn_copy_is_made_again_or_cut() {
    let (world, id, _) = paused();
    let copy = world.kept(&id);
    let whole = fs::read(&copy).expect("a copy");
    fs::write(&copy, [&whole[..], b"{\"torn\":"].concat()).expect("own file");
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(1), @"
    problem: [ID1:8] has a torn copy of session [ID1:8]
    --- stderr
    hint: agent-cli fsck --repair
    --- exit status: 1
    ");
    world.run(&["fsck", "--repair"]).succeeds();
    assert_eq!(fs::read(&copy).expect("a copy"), whole);
    fs::write(&copy, [&whole[..], b"{\"torn\":"].concat()).expect("own file");
    fs::remove_dir_all(world.home().join(".claude/projects")).expect("Claude's folder");
    insta::assert_snapshot!(world.run(&["fsck", "--repair"]).exits_with(0), @"
    repaired: [ID1:8] removed the torn end of the copy of session [ID1:8]
    --- stderr
    no problems found
    --- exit status: 0
    ");
    assert_eq!(fs::read(&copy).expect("a copy"), whole);
    goes_on(&world, &id);
}

#[test]
fn a_session_that_is_lost_cannot_be_repaired() {
    let (world, id, _) = paused();
    fs::remove_file(world.kept(&id)).expect("a copy");
    fs::remove_dir_all(world.home().join(".claude/projects")).expect("Claude's folder");
    insta::assert_snapshot!(world.run(&["fsck", "--repair"]).exits_with(1), @"
    problem: [ID1:8] cannot be resumed: session [ID1] has neither a transcript nor a copy
    --- stderr
    hint: restore a backup of [ID1].jsonl to Claude Code's folder, or start the chain again
    --- exit status: 1
    ");
}

#[test]
fn permissions_and_orphans_are_repaired() {
    let (world, id, folder) = paused();
    let database = world.state().join("agent-cli.db");
    fs::set_permissions(&database, Permissions::from_mode(0o644)).expect("own file");
    fs::write(folder.join("x.tmp"), "x").expect("own folder");
    fs::set_permissions(folder.join("x.tmp"), Permissions::from_mode(0o600)).expect("own file");
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(1), @"
    note: [ID1:8] nothing uses [STATE]/frames/[ID1]/x.tmp any more
    problem: [STATE]/agent-cli.db has permissions 644
    problem: [STATE]/agent-cli.db-shm has permissions 644
    problem: [STATE]/agent-cli.db-wal has permissions 644
    --- stderr
    hint: agent-cli fsck --repair
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["fsck", "--repair"]).exits_with(0), @"
    repaired: removed [STATE]/frames/[ID1]/x.tmp
    repaired: made [STATE]/agent-cli.db private
    repaired: made [STATE]/agent-cli.db-shm private
    repaired: made [STATE]/agent-cli.db-wal private
    --- stderr
    no problems found
    --- exit status: 0
    ");
    assert_eq!(fs::metadata(&database).expect("it is there").permissions().mode() & 0o777, 0o600);
    goes_on(&world, &id);
}

#[test]
fn a_database_that_contradicts_itself_is_reported() {
    let (world, _, _) = paused();
    let database = world.database();
    database
        .execute_batch(
            "PRAGMA foreign_keys = OFF; UPDATE frames SET depth = 7 WHERE parent IS NOT NULL;
             UPDATE attempts SET ended = NULL WHERE seq = 1;
             INSERT INTO replies SELECT id, 'x' FROM frames WHERE parent IS NULL;
             UPDATE requests SET detail = '{\"spawn\": 1}' WHERE kind = 'spawn'",
        )
        .expect("own database");
    drop(database);
    let outcome = world.run(&["fsck", "--repair"]);
    insta::assert_snapshot!(outcome.exits_with(1), @"
    problem: the row [ID4] of requests cannot be read: invalid type: integer `1`, expected struct variant RequestKind::Spawn at line 1 column 11
    problem: [ID1:8] is not marked as running, but its attempt [ID5:8] has not ended
    problem: [ID1:8] has a reply, but is not done
    problem: [ID2:8] has a chain or depth that does not match its parent's
    --- exit status: 1
    ");
    let report = world.run(&["fsck", "--json"]).exits_with(1).json();
    let kinds: Vec<_> = report["findings"].as_array().expect("a list").iter().map(|found| &found["kind"]).collect();
    assert_eq!(kinds.len(), 4, "{report}");
}

#[test]
fn nothing_is_wrong_after_claude_has_refused() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let refused = world.command(["resume", &id]).with("STAND_IN_REFUSES", "Not logged in · Please run /login");
    assert_eq!(refused.run().stdout, "");
    clean(&world);
    assert_eq!(world.run(&["gc", "--json"]).json()["bytes"], 0);
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn a_database_of_an_earlier_build_is_found_and_gets_its_index_back() {
    let (world, id, folder) = paused();
    fs::write(folder.join("x.tmp"), "x").expect("own folder");
    fs::set_permissions(folder.join("x.tmp"), Permissions::from_mode(0o600)).expect("own file");
    let orphaned = world.run(&["fsck"]);
    assert_eq!(orphaned.code(), Some(0), "{orphaned}");
    assert!(orphaned.stdout.starts_with("note: "), "what is left over is no problem: {orphaned}");
    world.database().execute_batch("DROP INDEX unfiled_questions").expect("it is there");
    let found = world.run(&["fsck"]);
    assert_eq!(found.code(), Some(1), "{found}");
    assert!(found.stdout.contains("problem: the database lacks the index unfiled_questions\n"), "{found}");
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("unfiled_questions") && doctor.stdout.contains("agent-cli fsck"), "{doctor}");
    let repaired = world.run(&["fsck", "--repair"]);
    assert_eq!(repaired.code(), Some(0), "{repaired}");
    assert!(repaired.stdout.contains("repaired: made the index unfiled_questions\n"), "{repaired}");
    goes_on(&world, &id);
}
