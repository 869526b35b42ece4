//! `--estimate`: what continuing sends and costs, before it does. Each answer of the stand-in costs a cent.

use std::fs;

use serde_json::Value;

use crate::world::{World, files_below, write_config};

/// A world in which conversations are cached, and a chain in it that waits for an answer: a root and its child.
fn waiting(cached: &str) -> (World, String) {
    let world = World::new().with("STAND_IN_CACHES", cached);
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    (world, id)
}

/// Makes all requests so far requests of an earlier day.
fn days_pass(world: &World) {
    let kept = files_below(&world.state().join("frames"))
        .into_iter()
        .filter(|file| file.extension() == Some("jsonl".as_ref()));
    for copy in kept.chain(world.transcripts()) {
        let text = fs::read_to_string(&copy).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["timestamp"].is_string() {
                line["timestamp"] = "2026-01-01T12:00:00Z".into();
            }
            line.to_string() + "\n"
        });
        fs::write(&copy, lines.collect::<String>()).unwrap();
    }
}

fn agents(world: &World, args: &[&str]) -> Vec<Value> {
    let estimate = world.run(&[&["resume", "--estimate", "--json"][..], args].concat()).json();
    estimate["agents"].as_array().unwrap().clone()
}

#[test]
fn each_agent_has_what_it_sends_and_nothing_is_started_or_changed() {
    let (world, id) = waiting("50000");
    days_pass(&world);
    let before = (world.starts(), world.run(&["show", &id, "--json"]).json());
    insta::assert_snapshot!(world.run(&["resume", &id, "--estimate"]), @"
    [ID2:8]  child.md
      later: 51001 tokens, about $0.58, as reported before
      cold: last request [AGE] ago
    [ID1:8]  root.md
      later: 51001 tokens, about $0.58, as reported before
      cold: last request [AGE] ago
    in all: 102002 tokens, about $1.16
    these are first requests: what agents do then costs more
    --- exit status: 0
    ");
    assert_eq!((world.starts(), world.run(&["show", &id, "--json"]).json()), before);
    world.answer("now");
    let [child, root] = &agents(&world, &[&id])[..] else { panic!("two agents") };
    assert_eq!((&child["starts"], &root["starts"]), (&"now".into(), &"later".into()));
    assert_eq!(child["task"], "child.md");
    assert_eq!(world.starts(), before.0);
}

#[test]
fn the_reason_of_a_cold_cache_is_named() {
    let (world, id) = waiting("50000");
    let reason = |args: &[&str]| agents(&world, &[&[id.as_str()][..], args].concat())[0]["cache"].clone();
    assert_eq!(reason(&[])["state"], "cached");
    assert_eq!(reason(&["--model", "claude-haiku-5-5"])["reason"], "model");
    assert_eq!(reason(&["--", "--effort=low"])["reason"], "options");
    assert_eq!(reason(&["--", "--max-turns=5"])["state"], "cached");
    days_pass(&world);
    assert_eq!(reason(&[])["last_request"], "2026-01-01T12:00:00Z");
}

#[test]
fn an_update_of_claude_makes_it_cold() {
    let (world, id) = waiting("50000");
    let newer =
        world.executable("newer", "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '2.1.334 (Claude Code)'; fi\n");
    let newer = newer.to_str().unwrap();
    insta::assert_snapshot!(world.run(&["resume", &id, "--estimate", "--claude", newer]), @"
    [ID2:8]  child.md
      later: 51001 tokens, about $0.58, as reported before
      cold: claude 2.1.330 → 2.1.334
    [ID1:8]  root.md
      later: 51001 tokens, about $0.58, as reported before
      cold: claude 2.1.330 → 2.1.334
    in all: 102002 tokens, about $1.16
    these are first requests: what agents do then costs more
    --- exit status: 0
    ");
}

#[test]
fn a_price_is_what_a_person_says_or_was_reported_or_unknown() {
    let (world, id) = waiting("0");
    let price = |world: &World| {
        let agent = agents(world, &[&id, "--model", "claude-next-9"]).remove(1);
        (agent["cost_usd"].clone(), agent["price"].clone())
    };
    assert_eq!(agents(&world, &[&id])[1]["price"], "reported");
    assert_eq!(price(&world), (Value::Null, Value::Null));
    assert!(world.run(&["resume", &id, "--estimate", "--model", "claude-next-9"]).stdout.contains("price unknown"));
    assert_eq!(agents(&world, &[&id, "--model", "claude-haiku-5-5"])[1]["price"], "listed");
    write_config(&world, "[prices.claude-next-9]\ninput = 100\noutput = 1\ncache-write = 1\ncache-read = 0.5\n");
    assert_eq!(price(&world).1, "configured");
    write_config(&world, "[prices.claude-next-9]\ninput = 0\noutput = 1\ncache-write = 1\ncache-read = 0.5\n");
    let refused = world.run(&["config"]);
    refused.exits_with(1);
    assert!(refused.stderr.contains("`prices` is not a table of prices above 0: see `claude-next-9`"), "{refused}");
}

#[test]
fn a_project_sets_no_prices_unless_it_is_trusted() {
    let (world, id) = waiting("0");
    world.file(".agent-cli.toml", "[prices.claude-opus-4-8]\ninput = 1\noutput = 1\ncache-write = 1\ncache-read = 1\n");
    assert_eq!(agents(&world, &[&id])[1]["price"], "reported");
    world.run(&["config", "trust", "--yes"]).succeeds();
    assert_eq!(agents(&world, &[&id])[1]["price"], "configured");
}

#[test]
fn a_cold_resume_warns_above_a_sum() {
    let (world, id) = waiting("50000");
    days_pass(&world);
    world.answer("now");
    write_config(&world, "warn-above-usd = 0.2\n");
    let resumed = world.run(&["resume", &id]);
    insta::assert_snapshot!(world.named(&resumed.stderr), @"
    warning: continuing sends 51001 tokens that are no longer cached, for about $0.58: last request [AGE] ago
    hint: agent-cli resume [ID1:8] --estimate shows it for each agent
    ");
    resumed.prints("now");
}

#[test]
fn a_new_agent_begins_like_the_last_one_that_did() {
    let (world, _) = waiting("50000");
    world.file("other.md", "reply done\n");
    let starts = world.starts();
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "other.md", "--estimate"]), @"
    root.md
      now: 51000 tokens, about $0.58, as reported before
      cold: a new conversation
    other.md
      now: 51000 tokens, about $0.58, as reported before
      cold: a new conversation
    in all: 102000 tokens, about $1.16
    these are first requests: what agents do then costs more
    --- exit status: 0
    ");
    let listed = world.run(&["spawn", "root.md", "--model", "claude-next-9", "--estimate"]);
    insta::assert_snapshot!(listed, @"
    root.md
      now: an unknown number of tokens, price unknown
      cold: a new conversation
    these are first requests: what agents do then costs more
    --- exit status: 0
    ");
    assert_eq!((world.starts(), world.run(&["ls", "--json"]).json().as_array().unwrap().len()), (starts, 1));
}

#[test]
fn a_fork_sends_the_conversation_that_it_begins_with() {
    let (world, id) = waiting("50000");
    world.file("other.md", "reply done\n");
    let estimate = world.run(&["spawn", "other.md", "--fork-from", &id, "--estimate", "--json"]).json();
    assert_eq!((&estimate["chain"], &estimate["agents"][0]["cache"]["state"]), (&Value::Null, &"cached".into()));
}

#[test]
fn what_is_not_known_of_any_agent_is_not_zero() {
    let world = World::new();
    world.file("root.md", "reply done\n");
    let estimate = |args: &[&str]| world.run(&[&["spawn", "root.md", "root.md", "--estimate"], args].concat());
    assert!(estimate(&[]).stdout.contains("in all: an unknown number of tokens, price unknown\n"));
    assert_eq!(estimate(&["--json"]).json()["tokens"], Value::Null);
}

#[test]
fn the_failed_members_of_a_group_start_again() {
    let world = World::new();
    world.file("good.md", "reply done\n");
    world.file("bad.md", "run true\nfail it broke\n");
    world.run(&["spawn", "bad.md", "good.md", "bad.md"]).exits_with(1);
    let estimated: Vec<Value> = agents(&world, &["last"]).iter().map(|agent| agent["task"].clone()).collect();
    assert_eq!(estimated, ["bad.md", "bad.md"]);
    let starts = world.starts();
    world.run(&["resume", "last"]).exits_with(1);
    assert_eq!(world.starts(), starts + 2);
}

#[test]
fn what_resume_would_refuse_has_no_estimate() {
    let (world, id) = waiting("0");
    let child = world.session(1);
    world.file("done.md", "reply done\n");
    world.run(&["spawn", "done.md"]).prints("done");
    let done = world.run(&["ls", "--all", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    for args in [
        &[&*id, "--prompt", "more"][..],
        &[&id, "--afresh", "--prompt", "more"],
        &[&id, "--claude", "/nowhere/claude"],
        &[&child, "--model", "opus"],
        &[&done, "--model", "opus"],
        &[&done, "--prompt", ""],
        &["4f2c1a90"],
    ] {
        let [refused, estimated] =
            [&[][..], &["--estimate"]].map(|more| world.run(&[&["resume"], args, more].concat()));
        assert_ne!(refused.code(), Some(0), "{refused}");
        assert_eq!((&estimated.stderr, estimated.code()), (&refused.stderr, refused.code()));
    }
}

#[test]
fn agents_see_no_estimates() {
    let world = World::new();
    world
        .file("root.md", "run agent-cli resume 12345678 --estimate; agent-cli spawn x.md --estimate\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: agents cannot see what others cost
    hint: agent-cli show shows an agent's own costs
    error: agents cannot use --estimate
    hint: leave it out
    --- exit status: 0
    ");
}

#[test]
fn show_says_what_continuing_sends() {
    let (world, id) = waiting("50000");
    let shown = world.run(&["show", &id]).stdout;
    assert!(shown.contains("continuing  51001 tokens, about $"), "{shown}");
    assert_eq!(world.run(&["show", &id, "--json"]).json()["next_request"]["cache"]["state"], "cached");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.run(&["show", &id, "--json"]).json()["next_request"], Value::Null);
}
