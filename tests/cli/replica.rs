//! A machine is lost, and its chains continue elsewhere from a replica of the database and a copy of the other files, as
//! `docs/replica.md` describes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::marked::{Process, processes_of};
use crate::world::{World, files_below};

/// A second machine, on which the project is where it was: its own home, and this state directory.
fn second_machine(world: World, state: &Path) -> World {
    let home = world.project().parent().expect("a folder").join("second-home");
    fs::create_dir(&home).expect("the folder is writable");
    let world = world.with("HOME", home).with("AGENT_CLI_STATE_DIR", state);
    world.switch_hooks_off();
    world
}

/// The database as it is now, although processes write to it.
fn replicate_database(world: &World, replica: &Path) {
    fs::create_dir_all(replica).expect("the folder is writable");
    let file = replica.join("agent-cli.db");
    world.database().execute("VACUUM INTO ?1", [file.to_str()]).expect("a replica");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
}

fn copy_frames(world: &World, replica: &Path) {
    for file in files_below(&world.state().join("frames")) {
        let to = replica.join(file.strip_prefix(world.state()).expect("it is below"));
        fs::create_dir_all(to.parent().expect("a folder")).expect("the folder is writable");
        fs::copy(&file, to).expect("it can be copied");
    }
}

#[test]
fn chains_continue_where_the_replica_has_them() {
    let world = World::new();
    let replica = world.project().parent().expect("a folder").join("replica");
    world.file("asks.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "run echo asked >> marks\nask When?\nreply {result}\n");
    world.file("works.md", "run echo began >> marks\nspawn holds.md\nreply works: {result}\n");
    world.file("holds.md", "hold gate\nreply held\n");
    let asks = world.spawn_paused("asks.md");
    let gate = world.gate("gate");
    let works = world.command(["spawn", "works.md"]).start();
    gate.reached_by(1);
    replicate_database(&world, &replica);
    copy_frames(&world, &replica);
    // It goes on after the copy was made, and is lost with its machine.
    works.kill();
    works.ends();
    processes_of(&world.state()).into_iter().for_each(Process::kill);
    fs::remove_dir_all(world.state()).expect("it can be removed");
    fs::remove_dir_all(world.home()).expect("it can be removed");

    let world = second_machine(world, &replica);
    let questions = world.questions();
    assert_eq!(questions.len(), 1, "{questions:?}");
    world.answer_to("When?", "Jan 1st");
    gate.open_for_one();
    world.run(&["resume", "--all"]).succeeds();
    let reply = |id: &str| world.run(&["show", id, "--reply"]).stdout;
    assert_eq!(reply(&asks), "root: Jan 1st\n");
    let chains = world.run(&["ls", "--all", "--json"]).json();
    let chains = chains.as_array().expect("a list");
    assert!(chains.iter().all(|chain| chain["status"] == "done"), "{chains:?}");
    assert_eq!(world.marks(), "asked\nbegan\n", "nothing that is recorded is done again");
    world.run(&["fsck", "--repair"]).succeeds();
    world.run(&["fsck"]).succeeds();
}

/// The database may be newer than the copy of the files.
#[test]
fn an_agent_whose_kept_session_was_not_copied_is_named() {
    let world = World::new();
    let replica = world.project().parent().expect("a folder").join("replica");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("asks.md");
    replicate_database(&world, &replica);
    fs::remove_dir_all(world.home()).expect("it can be removed");

    let world = second_machine(world, &replica);
    world.answer("Jan 1st");
    let fsck = world.run(&["fsck"]);
    fsck.exits_with(1);
    assert!(fsck.to_string().contains("has neither a transcript nor a copy"), "{fsck}");
    let resumed = world.run(&["resume", &id]);
    assert_ne!(resumed.code(), Some(0), "{resumed}");
    copy_frames(&world, &replica);
    world.run(&["fsck", "--repair"]).succeeds();
    world.run(&["resume", &id]).prints("Jan 1st");
}
