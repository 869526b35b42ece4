//! Replies that have to fit a JSON Schema are checked outside of `claude`, and go back to their agent once.

use serde_json::{Value, json};

use crate::birthday::shares_its_prefix;
use crate::chain::Chain;
use crate::support::{
    Conversation, Hold, MessagesApi, NEWEST, Turn, on_every_version_before_a_release, on_the_newest_version,
};

on_every_version_before_a_release!(
    a_reply_that_fits_costs_nothing_and_is_json,
    a_reply_is_corrected_in_the_same_session_and_reaches_its_caller,
    a_second_misfit_is_the_callers_result,
    a_kill_between_gives_no_second_chance,
    who_hands_off_is_not_woken_for_json,
    a_fork_with_a_schema_shares_the_prefix,
    a_group_is_an_array,
);

on_the_newest_version!(a_hostile_schema_stops_nothing_and_fetches_nothing,);

const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
const BLOCK: &str = "Here it is:\n\n```json\n{\n  \"a\": 1\n}\n```\nAnything else?";

/// What the agent with this schema says: something else until it has been told that it does not fit.
fn corrects(said: &Conversation) -> Turn {
    Turn::text(if was_told(said) { BLOCK } else { "It is one." })
}

fn was_told(said: &Conversation) -> bool {
    said.user_texts().any(|text| text.contains("does not fit the JSON Schema of your reply"))
}

fn has_schema(said: &Conversation) -> bool {
    said.user_texts().any(|text| text.contains("must be JSON that fits this JSON Schema"))
}

/// Agents without a schema do this, and those with one that.
fn project(
    version: &str,
    caller: impl Fn(&Conversation) -> Turn + Send + Sync + 'static,
    child: impl Fn(&Conversation) -> Turn + Send + Sync + 'static,
) -> Chain {
    let model = move |said: &Conversation| if has_schema(said) { child(said) } else { caller(said) };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    chain.home.write("schema.json", SCHEMA);
    chain
}

/// Calls this, and replies with what the call returns.
fn calls(command: &'static str) -> impl Fn(&Conversation) -> Turn + Send + Sync + 'static {
    move |said| match said.last_result() {
        None => Turn::bash(command),
        Some(result) => Turn::text(result),
    }
}

fn outcomes(chain: &Chain, id: &Value) -> Vec<String> {
    let shown = chain.json(&["show", id.as_str().unwrap(), "--json"]);
    let sessions = shown["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["outcome"].as_str().unwrap_or("running").to_owned()).collect()
}

fn agents(chain: &Chain) -> Vec<Value> {
    let root = chain.only_root();
    chain.json(&["tree", &root, "--json"]).as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect()
}

fn a_reply_that_fits_costs_nothing_and_is_json(version: &str) {
    let chain = project(version, |_| Turn::text("It is one."), |_| Turn::text(BLOCK));
    let printed = chain.ok(&["spawn", "ins.md", "--schema", "schema.json"]);
    assert_eq!(printed, "{\n  \"a\": 1\n}\n");
    assert_eq!(chain.api.count(), 1);
    let with = chain.api.requests().pop().unwrap();
    chain.ok(&["spawn", "ins.md"]);
    let without = chain.api.requests().pop().unwrap();
    assert_eq!(with.tools(), without.tools(), "no tool is added");
}

fn a_reply_is_corrected_in_the_same_session_and_reaches_its_caller(version: &str) {
    let chain = project(version, calls("agent-cli spawn --schema schema.json --prompt Count"), corrects);
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "{\n  \"a\": 1\n}\n");
    assert_eq!(chain.api.count(), 4, "the caller is woken once");
    let [first, second] = [1, 2].map(|at| chain.api.requests()[at].clone());
    shares_its_prefix(&first, &second);
    assert_eq!(first.session(), second.session());
    let told = second.conversation();
    let told = told.last_user_text().unwrap();
    assert!(told.contains("- it is not JSON") && told.contains("\"required\":[\"a\"]"), "{told}");
    assert_eq!(outcomes(&chain, &agents(&chain)[1]), ["misfit", "reply"]);
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn a_second_misfit_is_the_callers_result(version: &str) {
    let child = |said: &Conversation| Turn::text(if was_told(said) { "{\"a\": \"x\"}" } else { "It is one." });
    let chain = project(version, calls("agent-cli spawn --schema schema.json --prompt Count"), child);
    let reply = chain.ok(&["spawn", "ins.md"]);
    assert!(reply.contains("the reply does not fit its schema: /a: \"x\" is not of type \"integer\""), "{reply}");
    assert_eq!(chain.api.count(), 4);
    let root = chain.only_root();
    let said = chain.run(&["resume", agents(&chain)[1].as_str().unwrap()]);
    assert!(said.code == Some(1) && said.err.contains("does not fit its schema"), "{said:?}");
    assert_eq!(chain.ok(&["resume", &root]), reply, "its parent has been told");
}

fn a_kill_between_gives_no_second_chance(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let child = move |said: &Conversation| {
        if was_told(said) { Turn::text("still not").held(&held) } else { Turn::text("It is one.") }
    };
    let chain = project(version, |_| Turn::text("never"), child);
    let runner = chain.start(&["spawn", "ins.md", "--schema", "schema.json"]);
    chain.api.wait_until(|requests| requests.len() == 2);
    let claude = runner.claude();
    runner.killed();
    claude.kill();
    claude.has_ended();
    hold.release();
    let root = chain.only_root();
    let said = chain.run(&["resume", &root]);
    assert!(said.code == Some(1) && said.err.contains("does not fit its schema"), "{said:?}");
    assert_eq!(outcomes(&chain, &json!(root)), ["misfit", "died", "second_misfit"]);
}

fn who_hands_off_is_not_woken_for_json(version: &str) {
    // The caller has the schema, and its child gets it.
    let model = |said: &Conversation| match (said.task().contains("Count"), said.last_result()) {
        (true, _) => corrects(said),
        (false, None) => Turn::bash("agent-cli spawn --handoff --prompt Count"),
        (false, Some(_)) => Turn::text("woken"),
    };
    let chain = project(version, |_| Turn::text("never"), model);
    assert_eq!(chain.ok(&["spawn", "ins.md", "--schema", "schema.json"]), "{\n  \"a\": 1\n}\n");
    assert_eq!(chain.api.count(), 3);
    assert_eq!(outcomes(&chain, &agents(&chain)[0]), ["requested"]);
}

fn a_fork_with_a_schema_shares_the_prefix(version: &str) {
    let chain = project(version, calls("agent-cli spawn --fork --schema schema.json --prompt 'Count again'"), corrects);
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "{\n  \"a\": 1\n}\n");
    let requests = chain.api.requests();
    shares_its_prefix(&requests[0], &requests[1]);
    assert_eq!(outcomes(&chain, &agents(&chain)[1]), ["misfit", "reply"]);
}

fn a_group_is_an_array(version: &str) {
    let child = |said: &Conversation| match said.task().contains("Refuse") {
        true => Turn::text("no"),
        false => corrects(said),
    };
    let command = "agent-cli spawn --schema schema.json --json --prompt Count --prompt Refuse";
    let chain = project(version, calls(command), child);
    let reply = chain.ok(&["spawn", "ins.md"]);
    let got: Value =
        serde_json::from_str(reply[reply.find('[').unwrap()..].trim()).unwrap_or_else(|_| panic!("{reply}"));
    assert_eq!((&got[0]["status"], &got[0]["result"]), (&json!("done"), &json!({"a": 1})));
    assert_eq!((&got[1]["status"], &got[1]["result"]), (&json!("failed"), &Value::Null));
    let transcript = got[0]["transcript"].as_str().unwrap();
    assert!(std::fs::exists(transcript).unwrap(), "{transcript}");
    // What the log names, the agent can read.
    let log = got[0]["log"].as_str().unwrap().split(' ').skip(1).collect::<Vec<_>>();
    assert!(chain.ok(&log).contains("Anything else?"));
}

/// The work that it takes to check a reply has a limit, whatever the schema of an agent demands.
fn a_hostile_schema_stops_nothing_and_fetches_nothing() {
    let model = |said: &Conversation| match said.result_texts().len() {
        0 => Turn::bash("agent-cli spawn --schema /etc/hostname --prompt x"),
        1 => Turn::bash("agent-cli spawn --schema remote.json --prompt x"),
        2 => Turn::bash("agent-cli spawn --schema /proc/self/environ --prompt x"),
        3 => Turn::bash("agent-cli spawn --schema explosive.json --prompt x"),
        _ => Turn::text(said.result_texts().join("\n")),
    };
    let chain = project(NEWEST, model, |_| Turn::text("1"));
    chain.home.write("remote.json", &format!("{{\"$ref\": \"{}/schema\"}}", chain.api.url()));
    let next = |n: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{n}")}, {"$ref": format!("#/$defs/{n}")}]});
    let mut definitions: serde_json::Map<_, _> = (0..40).map(|n| (n.to_string(), next(n + 1))).collect();
    definitions.insert("40".to_owned(), json!({"type": "string"}));
    chain.home.write("explosive.json", &json!({"$defs": definitions, "$ref": "#/$defs/0"}).to_string());
    let reply = chain.ok(&["spawn", "ins.md"]);
    for why in ["outside your directory", "and nothing is fetched", "takes too much time or memory"] {
        assert!(reply.contains(why), "{why}: {reply}");
    }
    assert_eq!(chain.api.count(), 7, "no schema was asked for: {reply}");
}
