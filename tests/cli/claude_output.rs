//! A `claude` that prints strange things, or nothing.

use crate::world::World;

#[test]
fn a_claude_that_refuses_to_work_loses_nothing() {
    let refused_once = |trouble: &str| {
        let world = World::new();
        world.file("root.md", format!("once {trouble}\nreply ok\n"));
        let outcome = world.run(&["spawn", "root.md"]);
        outcome.exits_with(4);
        assert_eq!(outcome.stdout, "");
        let id = world.log().starts[0].session().to_owned();
        world.run(&["resume", &id]).prints("ok");
        outcome.to_string()
    };
    insta::assert_snapshot!(refused_once("refuse Not logged in · Please run /login"), @"
    --- stderr
    error: Not logged in · Please run /login ([ID1:8])
    hint: run claude and log in with /login, or set ANTHROPIC_API_KEY; then agent-cli resume [ID1:8]
    --- exit status: 4
    ");
    insta::assert_snapshot!(refused_once("silent 0"), @"
    --- stderr
    error: claude ended with exit code 0 and said nothing ([ID1:8])
    hint: agent-cli resume [ID1:8] --claude PATH uses another program
    hint: agent-cli rm [ID1:8] removes the chain
    --- exit status: 4
    ");
    insta::assert_snapshot!(refused_once("silent 3"), @"
    --- stderr
    error: claude ended with exit code 3 and said nothing ([ID1:8])
    hint: agent-cli resume [ID1:8] --claude PATH uses another program
    hint: agent-cli rm [ID1:8] removes the chain
    --- exit status: 4
    ");
    insta::assert_snapshot!(refused_once("garbage"), @"
    --- stderr
    error: claude ended with exit code 1 after 3 lines that are not what claude prints ([ID1:8])
    hint: agent-cli resume [ID1:8] --claude PATH uses another program
    hint: agent-cli rm [ID1:8] removes the chain
    --- exit status: 4
    ");
}

#[test]
fn an_argument_that_claude_does_not_know_is_reported() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md", "--", "--no-such-option"]);
    outcome.exits_with(4);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: unknown option '--no-such-option'
    hint: nothing was recorded: give other arguments after --; claude --help lists them
    --- exit status: 4
    ");
}

#[test]
fn lines_that_are_no_events_are_passed_over() {
    let world = World::new();
    world.file("root.md", "noise (node:123) Warning: something\nnoise {\"type\":\nnoise [1,2]\nreply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
}

#[test]
fn a_large_event_does_no_harm() {
    let world = World::new();
    world.file("root.md", "big 1000000\nreply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
}
