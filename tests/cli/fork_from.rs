//! `--fork-from`: agents that start with an earlier conversation.

use std::fs;

use crate::world::World;

const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";

/// A world with a chain that is done, and its id.
fn done() -> (World, String) {
    let world = World::new();
    world.file("base.md", "reply base");
    world.file("a.md", "reply A");
    world.file("b.md", "ask B?\nreply {result}");
    let outcome = world.run(&["spawn", "base.md", "--model", "claude-haiku-4-5", "--json"]);
    let id = outcome.json()["id"].as_str().expect("an id").to_owned();
    (world, id)
}

#[test]
fn each_agent_forks_the_same_conversation_and_then_its_own() {
    let (world, base) = done();
    let transcript = world.transcripts().remove(0);
    let before = fs::read(&transcript).expect("it is there");
    let id = world.run(&["spawn", "a.md", "b.md", "--fork-from", &base[..8]]).started();
    world.answer("be");
    world.run(&["resume", &id]).succeeds();
    assert_eq!(fs::read(&transcript).expect("it is there"), before, "the source is left as it is");
    let log = world.log();
    let [a, b, b_again] = &log.starts[1..] else { panic!("three starts, and not {}", log.starts.len() - 1) };
    for start in [a, b] {
        assert_eq!(start.value_of("--resume"), world.kept(&base).to_str());
        assert!(start.argv.contains(&"--fork-session".to_owned()));
        assert_eq!(start.value_of("--model"), Some("claude-haiku-4-5"), "the prompt cache is the model's");
        assert!(start.prompt.starts_with("Read "), "{}", start.prompt);
    }
    assert_eq!(b_again.session(), b.session());
    assert!(b_again.value_of("--resume").expect("it continues").contains(&format!("/frames/{}/", b.session())));
    world.run(&["resume", &base]).prints("base");
}

#[test]
fn the_model_and_nothing_else_is_that_of_the_conversation() {
    let (world, base) = done();
    world.run(&["spawn", "a.md", "--fork-from", &base, "--model", "opus", "--permission-mode", "plan"]).prints("A");
    let log = world.log();
    assert_eq!(log.starts[1].value_of("--model"), Some("opus"));
    assert_eq!(log.starts[1].value_of("--permission-mode"), Some("plan"));
    let id = log.starts[1].session();
    let shown = world.run(&["show", id]);
    assert!(world.named(&shown.stdout).contains("fork of"), "{shown}");
    assert_eq!(world.run(&["show", id, "--json"]).json()["baseline"]["session"], base.as_str());
}

#[test]
fn a_conversation_can_be_forked_whose_transcript_is_gone() {
    let (world, base) = done();
    fs::remove_dir_all(world.home().join(".claude")).expect("own folder");
    world.run(&["spawn", "a.md", "--fork-from", &base]).prints("A");
    assert_eq!(world.transcripts().len(), 1, "that of the fork");
}

#[test]
fn any_claude_session_can_be_forked_where_it_worked() {
    let world = World::new();
    world.file("root.md", "reply ok\n");
    world.file("a.md", "run pwd\nreply {result}");
    world.foreign_session(SESSION, "root.md");
    let before = fs::read(&world.transcripts()[0]).expect("it is there");
    let file = world.project().join("a.md").display().to_string();
    let outcome = world.command(["spawn", &file, "--fork-from", SESSION]).within(&world.home()).run();
    outcome.prints(&world.project().display().to_string());
    let resumed = world.log().starts[1].value_of("--resume").map(str::to_owned);
    assert!(resumed.is_some_and(|file| file.ends_with(&format!("{SESSION}.jsonl"))));
    assert!(world.transcripts().iter().any(|path| fs::read(path).expect("it is there") == before));
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json().as_array().map(Vec::len), Some(1), "it is not adopted");
}

#[test]
fn what_cannot_be_forked_is_refused() {
    let (world, base) = done();
    fs::create_dir(world.project().join("sub")).expect("writable");
    let group = world.run(&["spawn", "a.md", "a.md", "--json"]).json()["id"].as_str().expect("an id").to_owned();
    let starts = world.starts();
    let refused = |args: &[&str]| world.run(&[&["spawn", "a.md", "--fork-from"], args].concat()).to_string();
    insta::assert_snapshot!(refused(&[&base, "--cwd", "sub"]), @"
    --- stderr
    error: a fork of that conversation has to work in its directory, [PROJECT]
    hint: leave --cwd out
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&[&group]), @"
    --- stderr
    error: [ID2:8] is a group of agents, which has no conversation: name one of them
    hint: agent-cli tree [ID2:8] shows them
    --- exit status: 2
    ");
    insta::assert_snapshot!(refused(&[SESSION]), @"
    --- stderr
    error: no agent or question matches `[ID5]`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
    insta::assert_snapshot!(refused(&["no"]), @r#"
    --- stderr
    error: no agent or question matches `no`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    "#);
    world.run(&["spawn", "a.md", "--fork-from", &base, "--cwd", "."]).prints("A");
    assert_eq!(world.starts(), starts + 1);
}

#[test]
fn a_frame_without_a_conversation_is_refused() {
    let (world, _) = done();
    let refusing = world.with("STAND_IN_REFUSES", "Not logged in");
    let id = refusing.run(&["spawn", "a.md", "--json"]).json()["id"].as_str().expect("an id").to_owned();
    insta::assert_snapshot!(refusing.run(&["spawn", "a.md", "--fork-from", &id]), @"
    --- stderr
    error: [ID2:8] has no conversation yet
    hint: agent-cli show [ID2:8] shows its status
    --- exit status: 2
    ");
}

#[test]
fn an_agent_forks_conversations_of_its_own_chain_and_not_its_own() {
    let (world, base) = done();
    world.file("asks.md", "spawn a.md\nspawn b.md a.md --fork-from {id}\nreply {result}\n");
    let id = world.spawn_paused("asks.md");
    world.answer("be");
    world.run(&["resume", &id]).succeeds();
    let log = world.log();
    let child =
        log.starts.iter().find(|start| start.prompt.ends_with("a.md and follow its instructions.")).expect("a child");
    let kept = world.kept(child.session()).display().to_string();
    let forks = log.starts.iter().filter(|start| start.value_of("--resume") == Some(&kept)).count();
    assert_eq!(forks, 2);

    for (from, why) in [(base.as_str(), "of its own chain"), ("$AGENT_CLI_AGENT_ID", "is running")] {
        world.file("asks.md", format!("run agent-cli spawn a.md --fork-from {from} 2>&1\nreply {{result}}\n"));
        let outcome = world.run(&["spawn", "asks.md"]);
        assert!(outcome.stdout.contains(why), "{outcome}");
    }
}

#[test]
fn a_conversation_can_be_forked_while_it_waits() {
    let (world, _) = done();
    let id = world.spawn_paused("b.md");
    world.run(&["spawn", "a.md", "--fork-from", &id]).prints("A");
    world.answer("be");
    world.run(&["resume", &id]).prints("be");
}

#[test]
fn an_agent_that_forks_a_conversation_takes_its_model_along() {
    let world = World::new();
    world.file("a.md", "reply A\n");
    world.file("b.md", "reply B\n");
    world.file("asks.md", "spawn a.md --model claude-haiku-4-5\nspawn b.md --fork-from {id}\nreply {result}\n");
    world.run(&["spawn", "asks.md", "--model", "claude-opus-4-8"]).prints("B");
    let log = world.log();
    let models: Vec<_> = log.starts.iter().map(|start| start.value_of("--model").unwrap_or_default()).collect();
    assert_eq!(models[1], "claude-haiku-4-5");
    assert_eq!(models[3], "claude-haiku-4-5", "{models:?}");
}
