//! `--json`: what other programs read.

use serde_json::json;

use crate::world::World;

#[test]
fn a_chain_in_json() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");

    let outcome = world.run(&["spawn", "root.md", "--json"]);
    let object = outcome.succeeds().json();
    let id = object["id"].as_str().expect("an id").to_owned();
    assert_eq!(object["status"], "started");
    assert_eq!(object["reply"], json!(null));
    insta::assert_snapshot!(outcome, @"");

    insta::assert_snapshot!(world.run(&["resume", &id, "--json"]), @"");
    insta::assert_snapshot!(world.run(&["ls", "--json"]), @"");
    insta::assert_snapshot!(world.run(&["tree", &id, "--json"]), @"");
    insta::assert_snapshot!(world.run(&["show", &id, "--json"]), @"");
    insta::assert_snapshot!(world.run(&["questions", "--json"]), @"");

    world.answer("Jan 1st");
    let outcome = world.run(&["resume", &id, "--json"]);
    let object = outcome.succeeds().json();
    assert_eq!((&object["status"], &object["reply"]), (&json!("done"), &json!("Jan 1st")));
    insta::assert_snapshot!(outcome, @"");
    insta::assert_snapshot!(world.run(&["questions", "--all", "--json"]), @"");
    assert_eq!(world.run(&["questions", "--json"]).json(), json!([]));
}

#[test]
fn a_failure_in_json() {
    let world = World::new();
    world.file("root.md", "fail boom\n");
    let outcome = world.run(&["spawn", "root.md", "--json"]);
    assert_eq!(outcome.exits_with(1).json()["status"], "failed");
    insta::assert_snapshot!(outcome, @r#"
    {"id":"[ID1]","status":"failed","reply":null,"waiting_on":[],"errors":["boom"],"usage":{"input_tokens":1000,"output_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"cost_usd":0.01}
    --- stderr
    error: boom ([ID1:8])
    hint: agent-cli resume [ID1] carries on; nothing is lost
    --- exit status: 1
    "#);
}
