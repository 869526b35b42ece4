//! How frames are named on the command line.

use crate::world::World;

fn paused() -> (World, String) {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    (world, id)
}

#[test]
fn a_frame_is_found_by_a_part_of_its_id() {
    let (world, id) = paused();
    let upper = id.to_uppercase();
    for name in [&id[..4], &id[..8], &id[..13], &id, &id.replace('-', ""), &upper] {
        world.run(&["resume", name]).prints("SGN_PEND_ONGOING");
    }
}

#[test]
fn an_adopted_frame_is_found_by_its_own_session_too() {
    const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";
    let world = World::new();
    world.file("root.md", "decide sign\nask When?\nreply done\n");
    world.foreign_session(SESSION, "root.md");
    world.file("sign", "now");
    assert_eq!(world.run(&["resume", SESSION]).started(), SESSION);
    let own = world.log().starts[1].session().to_owned();
    assert_ne!(own, SESSION);
    world.run(&["resume", &own]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &own[..8]]).prints("SGN_PEND_ONGOING");
}

#[test]
fn what_names_no_frame_is_refused() {
    let (world, _) = paused();
    let refused = |name: &str, code: i32| {
        let outcome = world.run(&["resume", name]);
        outcome.exits_with(code);
        assert_eq!(outcome.stdout, "");
        outcome.to_string()
    };
    insta::assert_snapshot!(refused("00000000-0000-4000-8000-000000000000", 3), @r"
    --- stderr
    error: no agent or question matches `[ID3]`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
    insta::assert_snapshot!(refused("00000", 3), @r"
    --- stderr
    error: no agent or question matches `00000`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
    insta::assert_snapshot!(refused("abc", 3), @r#"
    --- stderr
    error: "abc" is too short for an id: give at least 4 characters
    hint: agent-cli ls lists the ids
    --- exit status: 3
    "#);
    insta::assert_snapshot!(refused("birthday", 3), @r#"
    --- stderr
    error: no agent or question matches `birthday`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    "#);
    insta::assert_snapshot!(refused("", 3), @r#"
    --- stderr
    error: "" is not an id, a name or `last`
    hint: agent-cli ls lists the ids
    --- exit status: 3
    "#);
    insta::assert_snapshot!(refused("abcd'; drop table frames; --", 3), @r#"
    --- stderr
    error: "abcd'; drop table frames; --" is not an id, a name or `last`
    hint: agent-cli ls lists the ids
    --- exit status: 3
    "#);
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_part_of_a_tree_can_be_resumed_alone() {
    let world = World::new();
    world.file("top.md", "spawn leaf.md\nreply top: {result}\n");
    world.file("leaf.md", "ask When?\nreply {result}\n");
    let top = world.spawn_paused("top.md");
    let leaf = world.log().starts[1].session().to_owned();
    world.run(&["resume", &leaf]).prints("SGN_PEND_ONGOING");
    world.answer("now");
    world.run(&["resume", &leaf]).prints("now");
    assert_eq!(world.starts(), 3, "its parent was left alone");
    world.run(&["resume", &top]).prints("top: now");
}

#[test]
fn a_question_stands_for_its_chain() {
    let world = World::new();
    world.file("top.md", "spawn leaf.md\nreply top: {result}\n");
    world.file("leaf.md", "ask When?\nreply {result}\n");
    world.spawn_paused("top.md");
    let question = world.question();
    world.run(&["resume", &question[..8]]).prints("SGN_PEND_ONGOING");
    world.run(&["answer", &question, "now"]).succeeds();
    world.run(&["resume", &question]).prints("top: now");
    world.run(&["resume", &question]).prints("top: now");
}

#[test]
fn an_environment_that_names_no_frame_is_refused() {
    let (world, id) = paused();
    let damaged = world.command(["ask", "When?"]).with("AGENT_CLI_AGENT_ID", "x").with("AGENT_CLI_ATTEMPT", "y").run();
    damaged.exits_with(2);
    insta::assert_snapshot!(damaged, @"
    --- stderr
    error: AGENT_CLI_AGENT_ID and AGENT_CLI_ATTEMPT are set, but are not ids
    hint: agent-cli sets them for its agents: unset AGENT_CLI_AGENT_ID AGENT_CLI_ATTEMPT
    --- exit status: 2
    ");
    let unknown = "00000000-0000-4000-8000-000000000000";
    let foreign =
        world.command(["ask", "When?"]).with("AGENT_CLI_AGENT_ID", unknown).with("AGENT_CLI_ATTEMPT", unknown);
    let foreign = foreign.run();
    foreign.exits_with(2);
    insta::assert_snapshot!(foreign, @"
    --- stderr
    error: the calling agent, [ID3], is not in this state directory
    hint: AGENT_CLI_STATE_DIR may name another directory
    --- exit status: 2
    ");
    let ended = world.command(["ask", "When?"]).with("AGENT_CLI_AGENT_ID", &id).with("AGENT_CLI_ATTEMPT", &id).run();
    ended.exits_with(2);
    assert_eq!(world.questions().len(), 1);
}

#[test]
fn an_id_that_could_mean_two_frames_is_refused() {
    let world = World::new();
    world.file("root.md", "end SGN_PEND_STARTED");
    // Sessions that agent-cli did not start have ids that a test can choose.
    for session in ["abcd0001-0000-4000-8000-000000000000", "abcd0002-0000-4000-8000-000000000000"] {
        world.foreign_session(session, "root.md");
        world.run(&["resume", session]).succeeds();
    }
    let outcome = world.run(&["resume", "abcd"]);
    outcome.exits_with(3);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: several ids begin with abcd: [ID1:8] (the chain (Claude session [ID1])), [ID7:8] (the chain (Claude session [ID7]))
    hint: give more characters of the id
    --- exit status: 3
    ");
}
