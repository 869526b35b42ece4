//! Working directories, and frames whose directory no longer exists.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::world::World;

fn paused_in(folder: &str) -> (World, String) {
    let world = World::new();
    world.file("root.md", "ask When?\nrun pwd\nreply {result}\n");
    fs::create_dir(world.project().join(folder)).expect("writable");
    let id = world.run(&["spawn", "root.md", "--cwd", folder]).started();
    (world, id)
}

#[test]
fn an_agent_works_where_it_was_told_to() {
    let (world, id) = paused_in("two words");
    world.answer("now");
    let folder = world.project().join("two words").display().to_string();
    world.command(["resume", &id]).within(&world.home()).run().prints(&folder);
    assert!(world.log().starts.iter().all(|start| start.cwd == folder));
}

#[test]
fn a_missing_folder_is_refused() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let refused = |folder: &str| {
        let outcome = world.run(&["spawn", "root.md", "--cwd", folder]);
        outcome.exits_with(2);
        outcome.to_string()
    };
    insta::assert_snapshot!(refused("nowhere"), @r"
    --- stderr
    error: cannot work in nowhere: No such file or directory (os error 2)
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("root.md"), @r"
    --- stderr
    error: cannot work in root.md: it is not a directory
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
}

#[test]
fn a_frame_whose_folder_is_gone_waits_until_it_is_back() {
    let (world, id) = paused_in("folder");
    world.answer("now");
    let (folder, moved) = (world.project().join("folder"), world.project().join("moved"));
    fs::rename(&folder, &moved).expect("writable");
    let outcome = world.run(&["resume", &id]);
    outcome.exits_with(1);
    assert_eq!(outcome.stdout, "");
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: the working directory does not exist: [PROJECT]/folder ([ID1:8])
    hint: restore [PROJECT]/folder or create it again; then agent-cli resume [ID1:8]
    --- exit status: 1
    ");
    assert_eq!(world.starts(), 1);

    fs::rename(&moved, &folder).expect("writable");
    world.run(&["resume", &id]).prints(&folder.display().to_string());
}

#[test]
fn a_folder_may_be_reached_by_a_link() {
    let (world, _) = paused_in("folder");
    let link = world.project().join("link");
    std::os::unix::fs::symlink(world.project().join("folder"), &link).expect("writable");
    let task = world.project().join("root.md").display().to_string();
    let id = world.command(["spawn", &task]).within(&link).with("PWD", &link.to_string_lossy()).run().started();
    // The kept copy must be put back where Claude Code looks for it.
    fs::remove_dir_all(world.home().join(".claude")).expect("own folder");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let question = world.run(&["tree", &id, "--json"]).json()[0]["waiting_on"][0]["id"].clone();
    world.run(&["answer", question.as_str().expect("an id"), "now"]).succeeds();
    world.run(&["resume", &id]).succeeds();
    assert_eq!(world.starts(), 3);
}

#[test]
fn a_folder_that_a_prompt_cannot_hold_is_refused() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let folder = world.project().join(OsStr::from_bytes(b"not \xff utf-8"));
    fs::create_dir(&folder).expect("writable");
    let args = [OsStr::new("spawn"), OsStr::new("root.md"), OsStr::new("--cwd"), folder.as_os_str()];
    let outcome = world.command(args).run();
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: cannot work in [PROJECT]/not � utf-8: its path is not UTF-8 or contains a control character
    hint: rename it
    --- exit status: 2
    ");
}

#[test]
fn commands_work_from_a_folder_that_is_gone() {
    let (world, id) = paused_in("folder");
    let gone = world.project().join("gone");
    fs::create_dir(&gone).expect("writable");
    let script = r#"rmdir "$PWD"; agent-cli resume "$0""#;
    world.program("/bin/sh", ["-c", script, &id]).within(&gone).run().prints("SGN_PEND_ONGOING");
}

#[test]
fn a_folder_of_claude_that_cannot_be_used_is_named_and_nothing_is_left_running() {
    let world = World::new();
    let folder = world.file("no-folder", "");
    let world = world.with("CLAUDE_CONFIG_DIR", &folder);
    world.file("root.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    assert!(outcome.stderr.contains("no-folder") && outcome.stderr.contains("CLAUDE_CONFIG_DIR"), "{outcome}");
    assert_eq!(world.starts(), 0);
    let listed = world.run(&["ls", "--json"]).json();
    assert_eq!(listed[0]["abandoned"], false, "{listed}");
    fs::remove_file(&folder).expect("it is a file");
    world.run(&["resume", "last"]).prints("ok");
}
