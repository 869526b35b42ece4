//! The pinned real Claude Code runs against the scripted API of the tests.

mod support;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::{Hold, Item, MessagesApi, NEWEST, RealHome, Turn, claude, follow, on_every_version};

const CONVENTION: &str =
    "# Keywords\n\n- `_run_ {cmd}`: run it with Bash\n- `_spawn_ {f}`: run `agent-cli spawn {f}`\n";

on_every_version!(follows_instructions);

fn headless(home: &RealHome, program: &PathBuf) -> Command {
    let mut command = home.command(program);
    command.args(["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions"]);
    command.stdin(Stdio::null());
    command
}

/// The last event, which is the outcome.
fn outcome(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_else(|| panic!("nothing but {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(last).expect("an event is JSON")
}

fn follows_instructions(version: &str) {
    let api = MessagesApi::start(follow);
    let home = RealHome::new(api.url());
    home.write("CLAUDE.md", CONVENTION);
    let file =
        home.write("some where/ins.md", "_follow_:\n\n1. _run_ `echo one; echo two`.\n2. _terminate_ {the output}.\n");
    let prompt = format!("Read {} and follow its instructions.", file.display());

    let output = headless(&home, &claude(version)).arg(prompt).output().expect("claude starts");

    let outcome = outcome(&output);
    assert_eq!(outcome["result"], "one\ntwo", "{outcome:#}");
    assert_eq!(api.count(), 3);
    let session = outcome["session_id"].as_str().expect("an id");
    assert!(api.requests().iter().all(|request| request.session() == Some(session) && request.tokens() > 1000));
    assert!(outcome["total_cost_usd"].as_f64() > Some(0.001));
    assert_eq!(home.transcripts(), [home.transcript(session).expect("a transcript")]);
}

#[test]
fn a_held_answer_lets_a_test_act_before_it() {
    let hold = Hold::new();
    let held = hold.clone();
    let api = MessagesApi::start(move |_| Turn::text("at last").held(&held));
    let home = RealHome::new(api.url());
    let child = headless(&home, &claude(NEWEST)).arg("Hello").stdout(Stdio::piped()).spawn().expect("claude starts");
    api.wait_until(|requests| requests.len() == 1);
    assert_eq!(api.requests()[0].conversation().last_user_text(), Some("Hello"));
    hold.release();
    assert_eq!(outcome(&child.wait_with_output().expect("claude ends"))["result"], "at last");
}

#[test]
fn several_calls_and_errors_arrive() {
    let api = MessagesApi::start(|conversation| match conversation.last_result() {
        None => Turn::text("both").and_call("Bash", json!({"command": "echo a"})).and_bash("echo b"),
        Some(last) => Turn::error(401, "authentication_error", last).header("x-should-retry", "false"),
    });
    let home = RealHome::new(api.url());
    let output = headless(&home, &claude(NEWEST)).arg("Hello").output().expect("claude starts");
    let outcome = outcome(&output);
    assert_eq!(outcome["is_error"], true);
    assert_eq!(outcome["api_error_status"], 401);
    // Claude Code lists the results in the order in which the calls ended.
    let last = api.requests()[1].conversation();
    let mut results = last
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::Result { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect::<Vec<_>>();
    results.sort_unstable();
    assert_eq!(results, ["a", "b"]);
}
