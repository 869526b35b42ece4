//! Replies that have to fit a JSON Schema: `spawn --schema`.

use std::fs;

use serde_json::{Value, json};

use crate::world::World;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"a": {"type": "integer"}, "summary": {"type": "string"}},
  "required": ["a"]
}"#;

/// The number is a text, then a number.
const CORRECTED: &str = "end {\"a\": \"one\"}\nend {\"a\": 1}\n";

fn world(files: &[(&str, &str)]) -> World {
    prepared(World::new(), files)
}

fn prepared(world: World, files: &[(&str, &str)]) -> World {
    world.file("schema.json", SCHEMA);
    files.iter().for_each(|(name, text)| drop(world.file(name, text)));
    world
}

/// The outcomes of all attempts of an agent.
fn outcomes(world: &World, id: &str) -> Vec<String> {
    let shown = world.run(&["show", id, "--json"]).json();
    let sessions = shown["sessions"].as_array().expect("attempts").iter();
    sessions.map(|session| session["outcome"].as_str().unwrap_or("running").to_owned()).collect()
}

fn only_root(world: &World) -> String {
    world.run(&["ls", "--all", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned()
}

fn only_child(world: &World, root: &str) -> String {
    world.run(&["tree", root, "--json"]).json()[1]["id"].as_str().expect("a child").to_owned()
}

#[test]
fn a_reply_that_fits_is_printed_as_json_and_nothing_else() {
    let world = world(&[("root.md", "end {\"a\": 1}\n"), ("spoken.md", "run cat spoken\nreply {result}\n")]);
    world.file("spoken", "Here you are:\n\n```json\n{\n  \"a\": 2\n}\n```\nThat is all.\n");
    let outcome = world.run(&["spawn", "root.md", "--schema", "schema.json"]);
    outcome.prints("{\"a\": 1}");
    insta::assert_snapshot!(world.named(&world.log().starts[0].prompt), @r#"
    Read [PROJECT]/root.md and follow its instructions.

    When you are done, your last message must be JSON that fits this JSON Schema: the whole message, or a ```json block in it. It is checked.
    {"type":"object","properties":{"a":{"type":"integer"},"summary":{"type":"string"}},"required":["a"]}
    "#);
    world.run(&["spawn", "spoken.md", "--schema", "schema.json"]).prints("{\n  \"a\": 2\n}");
    assert_eq!(world.starts(), 2);
    let shown = world.run(&["show", "last"]).stdout;
    assert!(shown.contains("schema"), "{shown}");
}

#[test]
fn a_reply_that_does_not_fit_goes_back_once_with_what_is_wrong() {
    let world = world(&[("root.md", CORRECTED)]);
    world.run(&["spawn", "root.md", "--schema", "schema.json"]).prints("{\"a\": 1}");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r#"
    SGN_RESUME

    Your last message does not fit the JSON Schema of your reply:
    - /a: "one" is not of type "integer"
    Reply again, in full.
    When you are done, your last message must be JSON that fits this JSON Schema: the whole message, or a ```json block in it. It is checked.
    {"type":"object","properties":{"a":{"type":"integer"},"summary":{"type":"string"}},"required":["a"]}
    "#);
    let root = only_root(&world);
    assert_eq!(world.log().starts[1].session(), world.log().starts[0].session());
    assert_eq!(outcomes(&world, &root), ["misfit", "reply"]);
    assert_eq!(world.run(&["fsck"]).succeeds().stdout, "");
}

#[test]
fn a_second_misfit_is_a_failure_that_a_person_can_retry() {
    let world = world(&[("root.md", "end no\nend {\"a\": \"b\"}\nend again\nend {\"a\": 3}\n")]);
    let outcome = world.run(&["spawn", "root.md", "--schema", "schema.json"]);
    insta::assert_snapshot!(outcome, @r#"
    --- stderr
    error: the reply does not fit its schema: /a: "b" is not of type "integer" ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    "#);
    let root = only_root(&world);
    let listed = world.run(&["ls"]).stdout;
    assert!(listed.contains("failed") && listed.contains("the reply does not fit its schema: /a: "), "{listed}");
    // It gets another chance, as at first.
    world.run(&["resume", &root]).prints("{\"a\": 3}");
    assert_eq!(outcomes(&world, &root), ["misfit", "second_misfit", "misfit", "reply"]);
}

#[test]
fn a_kill_between_gives_no_second_chance() {
    let world = world(&[("root.md", "end no\ndie 9\nend neither\n")]);
    world.file("root.md", "end no\nonce die 9\nend neither\n");
    let outcome = world.run(&["spawn", "root.md", "--schema", "schema.json"]);
    let root = only_root(&world);
    let outcome = if outcome.stderr.contains("does not fit") { outcome } else { world.run(&["resume", &root]) };
    outcome.exits_with(1);
    assert_eq!(outcomes(&world, &root), ["misfit", "died", "second_misfit"]);
}

#[test]
fn a_runner_that_dies_before_or_after_the_record_changes_nothing() {
    for point in ["end_attempt.before", "end_attempt.after"] {
        let world = world(&[("root.md", "end no\nend neither\n")]);
        let killed =
            world.command(["spawn", "root.md", "--schema", "schema.json"]).with("AGENT_CLI_CRASH", point).run();
        assert_ne!(killed.code(), Some(1), "{point}");
        let root = only_root(&world);
        world.run(&["resume", &root]).exits_with(1);
        assert_eq!(outcomes(&world, &root), ["misfit", "second_misfit"], "{point}");
    }
}

#[test]
fn a_pause_between_is_told_of_the_misfit_when_it_ends() {
    let world = world(&[("root.md", "end no\nask When?\nend neither\n")]);
    let id = world.run(&["spawn", "root.md", "--schema", "schema.json"]).started();
    world.answer("now");
    world.run(&["resume", &id]).exits_with(1);
    assert_eq!(outcomes(&world, &id), ["misfit", "requested", "second_misfit"]);
}

#[test]
fn the_reply_to_a_later_instruction_is_checked_too() {
    let world = world(&[("root.md", "end {\"a\": 1}\nend more\nend {\"a\": 2}\n")]);
    world.run(&["spawn", "root.md", "--schema", "schema.json"]).succeeds();
    let root = only_root(&world);
    world.run(&["resume", &root, "--prompt", "Once more."]).prints("{\"a\": 2}");
    assert_eq!(outcomes(&world, &root), ["reply", "misfit", "reply"]);
}

#[test]
fn an_agent_gives_its_child_a_schema() {
    let parent = ("parent.md", "spawn child.md --schema schema.json\nreply got {result}\n");
    for world in [World::new(), World::with_hooks()] {
        let world = prepared(world, &[parent, ("child.md", CORRECTED)]);
        world.run(&["spawn", "parent.md"]).prints("got {\"a\": 1}");
        let root = only_root(&world);
        assert_eq!(outcomes(&world, &only_child(&world, &root)), ["misfit", "reply"]);
        assert!(world.run(&["show", &root, "--json"]).json()["launch"]["schema"].is_null(), "it is the child's alone");
    }
    let world = prepared(World::with_hooks(), &[parent, ("child.md", "end no\nend no\n")]);
    let outcome = world.run(&["spawn", "parent.md"]);
    outcome.succeeds();
    insta::assert_snapshot!(outcome.stdout.trim(), @r"
    got Exit code 1
    the reply does not fit its schema: it is not JSON, and has no ```json block: expected ident at line 1 column 2
    ");
}

#[test]
fn an_agent_gets_an_object_with_json() {
    let child = ("child.md", "end {\"a\": 1, \"summary\": \"It is one.\"}\n");
    let parent = ("parent.md", "spawn child.md --schema schema.json --json\nreply {result}\n");
    let world = prepared(World::with_hooks(), &[parent, child]);
    let got = world.run(&["spawn", "parent.md"]).json();
    let id = only_child(&world, &only_root(&world));
    let transcript = got["transcript"].as_str().expect("a path");
    assert!(fs::exists(transcript).unwrap(), "{transcript}");
    let expected = json!({
        "id": id, "status": "done", "result": {"a": 1, "summary": "It is one."}, "summary": "It is one.",
        "error": null, "log": format!("agent-cli logs {}", &id[..8]), "transcript": transcript,
    });
    assert_eq!(got, expected);
    let text = ("parent.md", "spawn child.md --json\nreply {result}\n");
    let world =
        prepared(World::with_hooks(), &[text, ("child.md", "run printf '\\n# Title\\n\\nText'\nreply {result}\n")]);
    let got = world.run(&["spawn", "parent.md"]).json();
    assert_eq!((&got["result"], &got["summary"]), (&json!("\n# Title\n\nText"), &json!("# Title")));
}

#[test]
fn a_group_gives_an_array_with_json() {
    let parent = ("parent.md", "spawn a.md b.md c.md --schema schema.json --json\nreply {result}\n");
    let children = [("a.md", "end {\"a\": 1}\n"), ("b.md", "end no\nend no\n"), ("c.md", CORRECTED)];
    let world = prepared(World::with_hooks(), &[&[parent], &children[..]].concat());
    let reply = world.run(&["spawn", "parent.md"]).succeeds().stdout.clone();
    let got: Value = serde_json::from_str(&reply[reply.find('[').expect("an array")..]).expect("JSON");
    let results: Vec<_> =
        got.as_array().unwrap().iter().map(|one| (one["status"].as_str().unwrap(), &one["result"])).collect();
    assert_eq!(results, [("done", &json!({"a": 1})), ("failed", &Value::Null), ("done", &json!({"a": 1}))]);
    assert!(got[1]["error"].as_str().unwrap().starts_with("the reply does not fit its schema: "), "{got}");
}

#[test]
fn who_hands_off_passes_its_schema_on() {
    let with = |root: &str, child: &str| {
        let world = prepared(World::with_hooks(), &[("root.md", root), ("child.md", child)]);
        world.file("other.json", "{\"type\": \"array\"}");
        world
    };
    let world = with("spawn --handoff child.md\nend never\n", CORRECTED);
    world.run(&["spawn", "root.md", "--schema", "schema.json"]).prints("{\"a\": 1}");
    let root = only_root(&world);
    assert_eq!(outcomes(&world, &root), ["requested"]);
    assert_eq!(outcomes(&world, &only_child(&world, &root)), ["misfit", "reply"]);

    // If the new agent fails, the caller's own reply has to fit.
    let world = with("spawn --handoff child.md\nend {\"a\": 7}\n", "end no\nend no\n");
    world.run(&["spawn", "root.md", "--schema", "schema.json"]).prints("{\"a\": 7}");

    for refused in ["spawn --handoff child.md --schema other.json", "spawn --handoff child.md child.md"] {
        let world = with(&format!("{refused}\nrun cat\nend {{\"a\": 1}}\n"), "end {\"a\": 2}\n");
        world.run(&["spawn", "root.md", "--schema", "schema.json"]).prints("{\"a\": 1}");
        assert_eq!(world.run(&["ls", "--all", "--json"]).json()[0]["agents"], 1, "{refused}");
    }
    let world = with("spawn --handoff child.md --schema schema.json\nend never\n", "end {\"a\": 2}\n");
    world.run(&["spawn", "root.md"]).prints("{\"a\": 2}");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_before_anything_is_recorded() {
    let world = world(&[("root.md", "end {\"a\": 1}\n")]);
    let definitions: Vec<_> = (0..40)
        .map(|n| {
            let next = format!("#/$defs/{}", n + 1);
            format!("\"{n}\": {{\"anyOf\": [{{\"$ref\": \"{next}\"}}, {{\"$ref\": \"{next}\"}}]}}")
        })
        .collect();
    let explosive = format!(
        "{{\"$defs\": {{{}, \"40\": {{\"type\": \"string\"}}}}, \"$ref\": \"#/$defs/0\"}}",
        definitions.join(", ")
    );
    world.file("explosive.json", explosive);
    world.file("file.json", "{\"$ref\": \"file:///etc/passwd\"}");
    world.file("http.json", "{\"$ref\": \"http://127.0.0.1:9/a.json\"}");
    world.file("deep.json", "{\"not\":".repeat(100_000));
    world.file("large.json", "[".repeat(10 << 20));
    world.file("pattern.json", "{\"pattern\": \"(?=(a+)+)b\"}");
    let refused = |name: &str| {
        let outcome = world.run(&["spawn", "root.md", "--schema", name]);
        outcome.exits_with(2);
        outcome.to_string()
    };
    insta::assert_snapshot!(refused("file.json"), @r#"
    --- stderr
    error: file.json cannot be used as a JSON Schema: it refers to file:///etc/passwd, and nothing is fetched: put the definition under $defs
    hint: correct it: json-schema.org/learn explains what a schema can say
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused("http.json"), @r#"
    --- stderr
    error: http.json cannot be used as a JSON Schema: it refers to http://127.0.0.1:9/a.json, and nothing is fetched: put the definition under $defs
    hint: correct it: json-schema.org/learn explains what a schema can say
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused("deep.json"), @r#"
    --- stderr
    error: deep.json has more than 64 KiB
    hint: an agent reads all of the schema: give a shorter one
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused("large.json"), @r#"
    --- stderr
    error: large.json has more than 64 KiB
    hint: an agent reads all of the schema: give a shorter one
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused("pattern.json"), @r#"
    --- stderr
    error: pattern.json cannot be used as a JSON Schema: /pattern: "(?=(a+)+)b" is not a "regex" (it may be too large, or use what takes more than linear time, like (?=…) and \1)
    hint: correct it: json-schema.org/learn explains what a schema can say
    --- exit status: 2
    "#);
    insta::assert_snapshot!(refused("root.md"), @r#"
    --- stderr
    error: root.md is not JSON: expected value at line 1 column 1
    hint: give the path of a file with a JSON Schema
    --- exit status: 2
    "#);
    assert_eq!(world.starts(), 0);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json(), json!([]));
    // A schema that takes for ever is only found out by a reply. Nothing hangs, and the agent fails.
    let outcome = world.run(&["spawn", "root.md", "--schema", "explosive.json"]);
    outcome.exits_with(1);
    assert!(outcome.stderr.contains("too much time or memory"), "{outcome}");
}

#[test]
fn a_schema_is_exported_shown_and_imported() {
    let there = world(&[("root.md", "ask When?\nend no\nend {\"a\": 1}\n")]);
    let id = there.run(&["spawn", "root.md", "--schema", "schema.json"]).started();
    there.run(&["export", &id, "-o", "chain.tar"]).succeeds();
    let archive = fs::read(there.project().join("chain.tar")).expect("it was written");
    let here = World::new();
    here.file("root.md", "");
    let listed = here.command(["import", "-"]).reads(archive.clone()).run();
    assert!(listed.stdout.contains("replies fit") && listed.stdout.contains("\"required\":[\"a\"]"), "{listed}");
    let moved = format!("{}={}", there.project().display(), here.project().display());
    here.command(["import", "-", "--trust", "--cwd", &moved]).reads(archive).run().succeeds();
    here.answer("now");
    here.run(&["resume", &id]).prints("{\"a\": 1}");
    assert_eq!(outcomes(&here, &id), ["requested", "misfit", "reply"]);
}
