//! How frames are named on the command line.

use serde_json::Value;

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

#[test]
fn several_ids_are_each_stopped_and_removed() {
    let world = World::new();
    world.file("ask.md", "ask When?\nreply {result}\n");
    let [a, b, c] = [(); 3].map(|()| world.spawn_paused("ask.md"));
    let stopped = world.run(&["stop", &a, "deadbeef", &b]);
    stopped.exits_with(3);
    assert_eq!(stopped.stdout, format!("stopped {}\nstopped {}\n", &a[..8], &b[..8]));
    assert_eq!(stopped.stderr.matches("error: ").count(), 1, "{stopped}");
    let objects = world.run(&["stop", &c, "deadbeef", "--json"]).exits_with(3).stdout.clone();
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!((&objects[0]["id"], &objects[1]["type"]), (&c.as_str().into(), &"error".into()));

    // The same chain twice is one chain.
    let removed = world.run(&["rm", "--yes", &a, &a[..8], &b]);
    assert_eq!(removed.succeeds().stdout.lines().count(), 2, "{removed}");
    world.run(&["rm", "--yes", &a, &c]).exits_with(3);
    assert_eq!(world.run(&["ls", "--all", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn a_command_without_an_id_names_chains_to_a_person() {
    let world = World::new();
    let without_chains = world.command(["show"]).on_terminal(80);
    assert!(without_chains.exits_with(2).stdout.contains("Usage: agent-cli show"), "{without_chains}");
    world.file("ask.md", "ask When?\nreply {result}\n");
    world.file("done.md", "reply ok\n");
    let waiting = world.spawn_paused("ask.md");
    world.run(&["spawn", "done.md"]).succeeds();
    let done = world.run(&["ls", "-a", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    for command in ["resume", "logs", "show", "status", "open", "stop", "rm"] {
        let said = world.command([command]).on_terminal(80);
        said.exits_with(2);
        assert!(said.stdout.contains(&format!("error: {command} needs an id; ")), "{said}");
        let names = |id: &str| said.stdout.contains(&format!("hint: agent-cli {command} {} ", &id[..8]));
        assert!(names(&waiting), "{said}");
        assert_eq!(names(&done), command != "stop", "{said}");
        assert!(!said.stdout.contains("Usage"), "{said}");
        assert!(world.run(&[command]).exits_with(2).stderr.contains("Usage: agent-cli"), "as before for scripts");
    }
}
