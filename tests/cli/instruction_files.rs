//! Instructions that `spawn` accepts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::world::World;

#[test]
fn what_is_no_file_of_instructions_is_refused() {
    let world = World::new();
    world.file("empty.md", "");
    world.file("blank.md", "\n  \n");
    std::fs::create_dir(world.project().join("folder")).expect("writable");
    let refused = |file: &str| {
        let outcome = world.run(&["spawn", file]);
        outcome.exits_with(2);
        outcome.to_string()
    };
    insta::assert_snapshot!(refused("missing.md"), @r"
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
    hint: give the path of a file with instructions
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("folder"), @r"
    --- stderr
    error: folder is a directory
    hint: give the path of a file with instructions
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("empty.md"), @r"
    --- stderr
    error: empty.md is empty
    hint: write what the agent should do
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused("blank.md"), @r"
    --- stderr
    error: blank.md is empty
    hint: write what the agent should do
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), serde_json::json!([]), "nothing was recorded");
}

#[test]
fn a_path_may_hold_spaces_and_quotes() {
    let world = World::new();
    for name in ["two words.md", "it's \"quoted\".md", "$HOME `x` & ünïcode.md", "-dash.md", "a'b/c d.md"] {
        let path = world.file(name, format!("end from {name}"));
        world.command([OsStr::new("spawn"), path.as_os_str()]).run().prints(&format!("from {name}"));
    }
}

#[test]
fn a_path_that_a_prompt_cannot_hold_is_refused() {
    let world = World::new();
    let refused = |name: &[u8]| {
        let name = OsStr::from_bytes(name);
        world.file(name, "reply ok");
        let outcome = world.command([OsStr::new("spawn"), name]).run();
        outcome.exits_with(2);
        assert!(outcome.stderr.contains("hint: "), "{outcome}");
        outcome.to_string()
    };
    insta::assert_snapshot!(refused(b"two\nlines.md"), @r#"
    --- stderr
    error: the path "two⏎lines.md" contains a control character
    hint: rename the file: an agent gets its path on one line
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused(b"not \xff utf-8.md"), @"
    --- stderr
    error: the path not � utf-8.md is not UTF-8
    hint: rename the file
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
}

#[test]
fn a_relative_path_is_made_absolute_for_the_agent() {
    let world = World::new();
    let path = world.file("sub/../ins.md", "reply ok");
    world.run(&["spawn", "./ins.md"]).prints("ok");
    let expected = format!("Read {} and follow its instructions.", world.project().join("ins.md").display());
    assert!(path.exists());
    assert_eq!(world.log().starts[0].prompt, expected);
}

#[test]
fn an_agent_may_name_files_relative_to_where_it_is() {
    let world = World::new();
    world.file("parent.md", "run cd sub && agent-cli spawn child.md\nreply {result}\n");
    world.file("sub/child.md", "run pwd\nreply {result}\n");
    let sub = world.project().join("sub");
    world.run(&["spawn", "parent.md"]).prints(&sub.display().to_string());
}

#[test]
fn what_is_not_text_or_too_large_starts_no_agent() {
    let world = World::new();
    world.file("random", [b"x\xff\xfe".as_slice(), &[7; 100]].concat());
    world.file("nul.md", "a\0b");
    world.file("large.md", "x".repeat((1 << 20) + 1));
    world.file("largest.md", format!("end ok\n{}", "#".repeat((1 << 20) - 7)));
    for file in ["random", "nul.md"] {
        let outcome = world.run(&["spawn", file]);
        let said = format!("error: {file} is not text\nhint: give instructions as UTF-8 text\n");
        assert_eq!(outcome.exits_with(2).stderr, said);
    }
    insta::assert_snapshot!(world.run(&["spawn", "large.md"]), @"
    --- stderr
    error: large.md is too large: 1.0 MB, where instructions may have 1 MiB
    hint: name large files in the instructions: the agent reads them itself
    --- exit status: 2
    ");
    world.command(["spawn", "-"]).reads("x".repeat(2 << 20)).run().exits_with(2);
    world.command(["spawn", "-"]).reads(" \n").run().exits_with(2);
    world.command(["spawn", "-"]).reads([0xff, 0xfe]).run().exits_with(2);
    assert_eq!(world.starts(), 0);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), serde_json::json!([]), "nothing was recorded");
    world.run(&["spawn", "largest.md"]).prints("ok");
}

#[test]
fn instructions_may_come_from_standard_input() {
    let world = World::new();
    let file = world.file("a.md", "reply A");
    let prompt = format!("Read {} and follow its instructions.\n", file.display());
    world.command(["spawn", "-"]).reads(prompt.clone()).run().prints("A");
    assert_eq!(world.log().starts[0].prompt, prompt);
    for shell in
        ["agent-cli spawn /dev/stdin < a.md", "echo x | agent-cli spawn /dev/stdin", "agent-cli spawn /dev/null"]
    {
        let outcome = world.program("/bin/sh", ["-c", shell]).run();
        outcome.exits_with(2);
        let hint = "hint: agent-cli spawn - reads instructions from standard input\n";
        assert!(outcome.stderr.ends_with(hint), "{shell}: {outcome}");
    }
    assert_eq!(world.starts(), 1);
}

#[test]
fn words_in_the_place_of_a_file_are_recognised() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["spawn", "Say 'hello'"]), @r"
    --- stderr
    error: cannot read Say 'hello': No such file or directory (os error 2)
    hint: to give instructions as text: agent-cli spawn --prompt 'Say '\''hello'\'''
    --- exit status: 2
    ");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_in_shared_memory_is_a_file() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let world = World::new();
    let file = folder.path().join("root.md");
    std::fs::write(&file, "reply ok\n").expect("the folder can be written to");
    world.run(&["spawn", &file.display().to_string()]).prints("ok");
}
