//! What people see of their chains.

use crate::outcome::Outcome;
use crate::world::World;

#[test]
fn a_chain_at_rest() {
    let world = World::new();
    world.file("root.md", "spawn a.md &\nspawn b.md &\nspawn c.md\nreply {results}\n");
    world.file("a.md", "ask When?\nreply {result}\n");
    world.file("b.md", "reply fine\n");
    world.file("c.md", "fail boom\n");
    let id = world.run(&["spawn", "root.md", "--max-parallel", "1"]).started();
    insta::assert_snapshot!(columns(&world.run(&["ls"])), @"");
    insta::assert_snapshot!(columns(&world.run(&["tree"])), @"");
    insta::assert_snapshot!(columns(&world.run(&["tree", &id[..8]])), @"");
    insta::assert_snapshot!(columns(&world.run(&["show", &id[..8]])), @"");
}

/// A table whose columns are two spaces apart, however wide an age is.
fn columns(outcome: &Outcome) -> String {
    let text = outcome.to_string();
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.trim_start().split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        format!("{}{}", &line[..line.len() - line.trim_start().len()], words.join("  "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_at_all() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["ls"]), @r"
    --- stderr
    there is no chain yet
    hint: agent-cli spawn FILE starts one
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["tree"]), @r"
    --- stderr
    no chain is open
    hint: agent-cli ls lists those that are done
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    --- stderr
    no question waits for an answer
    --- exit status: 0
    ");
}

#[test]
fn a_frame_that_there_is_not() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["show", "abcd1234"]).exits_with(3), @r"
    --- stderr
    error: nothing has an id that begins with [ID1:8]
    hint: agent-cli ls shows the chains, agent-cli questions the questions
    --- exit status: 3
    ");
    insta::assert_snapshot!(world.run(&["tree", "abcd1234"]).exits_with(3), @r"
    --- stderr
    error: nothing has an id that begins with [ID1:8]
    hint: agent-cli ls shows the chains, agent-cli questions the questions
    --- exit status: 3
    ");
}
