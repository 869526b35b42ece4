//! Standard streams that end early.

use crate::world::World;

#[test]
fn a_reader_that_has_seen_enough_is_no_accident() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    for args in
        [&["ls"][..], &["ls", "-ap", "--json"], &["questions"], &["tree"], &["--help"], &["completions", "bash"]]
    {
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

#[test]
fn a_result_that_cannot_be_printed_is_printed_again() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    for options in ["", "--json"] {
        let outcome = world.program("/bin/sh", ["-c", &format!("agent-cli spawn root.md {options} > /dev/full")]).run();
        let id = world.log().starts.pop().expect("it was started").session().to_owned();
        let chain = world.run(&["show", &id, "--json"]).json()["id"].as_str().expect("an id").to_owned();
        let stderr = &outcome.exits_with(1).stderr;
        assert!(stderr.contains("error: failed to write the result: No space left on device"), "{outcome}");
        assert!(
            stderr.contains(&format!("hint: agent-cli resume {} prints the result again", &chain[..8])),
            "{outcome}"
        );
        world.run(&["resume", &chain]).prints("ok");
    }
    let outcome = world.command(["spawn", "root.md"]).start_unread().ends();
    assert!(outcome.stderr.contains("prints the result again"), "{outcome}");
    for command in ["ls", "tree", "questions", "doctor", "gc", "fsck", "--help", "completions zsh", "ls --json --jsno"]
    {
        let outcome = world.program("/bin/sh", ["-c", &format!("agent-cli {command} > /dev/full")]).run();
        assert!(!outcome.stderr.contains("panicked") && outcome.code() != Some(101), "{command}: {outcome}");
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let world = World::new();
    for command in ["--help", "ls -h", "help spawn", "--version"] {
        let outcome = world.program("/bin/sh", ["-c", &format!("agent-cli {command} > /dev/full")]).run();
        assert!(
            outcome.exits_with(1).stderr.starts_with("error: failed to write the result: "),
            "{command}: {outcome}"
        );
    }
    let outcome = world.program("/bin/sh", ["-c", "{ agent-cli --help; echo $? >&2; } | true"]).run();
    assert_eq!(outcome.stderr, "0\n", "a pager that was left");
}

#[test]
fn a_result_is_not_lost_with_a_closed_standard_output() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let run = |line: &str| world.program("/bin/sh", ["-c", line]).run();
    let outcome = run("agent-cli spawn root.md >&-");
    let id = world.log().starts[0].session().to_owned();
    let hint =
        format!("hint: standard output is closed or /dev/null: agent-cli resume {} prints the result again", &id[..8]);
    assert!(outcome.succeeds().stderr.contains(&hint), "{outcome}");
    let outcome = run(&format!("agent-cli resume {id} >&-"));
    assert!(outcome.succeeds().stderr.contains(&hint), "{outcome}");
    let outcome = run(&format!("agent-cli export {id} >&-"));
    assert!(
        outcome.exits_with(1).stderr.contains("error: the archive cannot be written: standard output"),
        "{outcome}"
    );
    // A caller that wants no result says so.
    let outcome = run(&format!("agent-cli resume {id} > /dev/null"));
    assert!(!outcome.succeeds().stderr.contains("standard output"), "{outcome}");
}

#[test]
fn an_archive_is_not_poured_over_a_terminal() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    // It gives the program a terminal, and passes on what is written to it.
    let on_terminal = format!("script -qec 'agent-cli export {id}' /dev/null < /dev/null");
    let outcome = world.program("/bin/sh", ["-c", &on_terminal]).run();
    assert!(outcome.stdout.contains("refusing to write an archive to a terminal"), "{outcome}");
    assert!(outcome.stdout.contains(&format!("agent-cli export {} -o FILE", &id[..8])), "{outcome}");
    assert!(!outcome.stdout.contains("\"archive\""), "{outcome}");
    let full = world.program("/bin/sh", ["-c", &format!("agent-cli export {id} > /dev/full")]).run();
    assert_eq!(full.code(), Some(1), "{full}");
}
