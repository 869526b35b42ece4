//! Background work when a call is deferred, or the agent has replied.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::session::{REQUEST, Session, results, run_instead};
use crate::support::{Conversation, Hold, Item, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(
    asked_to_end_beside_a_command_a_newer_one_makes_no_further_request,
    a_result_is_not_the_last_word_if_something_ends_in_the_background,
);

on_every_version_of_a_whole_run!(
    beside_a_subagent_a_deferred_call_is_marked_and_not_printed,
    beside_a_subagent_a_reply_is_written_and_not_printed,
);

const SUBTASK: &str = "look into everything";

fn subagent() -> Turn {
    let input = json!({"description": "looks", "prompt": SUBTASK, "subagent_type": "general-purpose",
        "run_in_background": true});
    Turn::call("Agent", input)
}

fn command(command: &str) -> Turn {
    Turn::call("Bash", json!({"command": command, "description": "serves", "run_in_background": true}))
}

/// A session whose agent starts something in its background and then does this; its subagent is never answered.
fn session(version: &str, beside: Turn, then: Turn) -> (Session, Hold) {
    let never = Hold::new();
    let held = never.clone();
    let mut session = Session::with_model(version, move |said: &Conversation| {
        let is_subtask = |item: &Item| matches!(item, Item::User(text) if text.contains(SUBTASK));
        if said.items().first().is_some_and(is_subtask) {
            return Turn::text("found").held(&held);
        }
        let results = said.results().count();
        let told = format!("{:?} {}", said.items(), said.context()).contains("<task-notification>");
        match results {
            0 => beside.clone(),
            1 if !told => then.clone(),
            _ => Turn::text("done"),
        }
    });
    session.arguments = vec!["--permission-mode", "bypassPermissions"];
    (session, never)
}

/// An endless run.
fn begin(session: &Session) -> Child {
    let prompt = session.write("prompt", "go");
    let mut command = session.command();
    command.args(["--session-id", &session.id]).env("CLAUDE_CODE_EAGER_FLUSH", "1");
    let out = File::create(session.home.home().join("out")).unwrap();
    command.stdin(File::open(prompt).unwrap()).stdout(out).stderr(Stdio::null()).spawn().unwrap()
}

fn events(session: &Session) -> Vec<Value> {
    session.read("out").lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn result(session: &Session) -> Option<Value> {
    events(session).into_iter().find(|event| event["type"] == "result")
}

fn has_result(session: &Session) -> bool {
    result(session).is_some()
}

fn written(session: &Session) -> Vec<Value> {
    let path = session.home.transcript(&session.id);
    let text = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn mark(session: &Session) -> Option<usize> {
    written(session).iter().position(|line| line["attachment"]["type"] == "hook_deferred_tool")
}

fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(run: &Child, signal: Signal) {
    kill_process(Pid::from_child(run), signal).unwrap();
}

/// The result of the deferred call in a fork without a prompt, and how often its model was told that something did not finish.
fn resumed(session: &Session) -> (String, usize) {
    session.decide(&run_instead("echo yes"));
    let run = session.resume();
    let request = run.requests.last().unwrap();
    let results = results(request);
    let (_, result, _) = results.iter().find(|(command, ..)| command == REQUEST).unwrap();
    let told = format!("{:?} {}", request.items(), request.context());
    (result.to_string(), told.matches("<task-notification>").count())
}

fn beside_a_subagent_a_deferred_call_is_marked_and_not_printed(version: &str) {
    for with in [Signal::TERM, Signal::KILL] {
        let (session, _never) = session(version, subagent(), Turn::bash(REQUEST));
        let mut run = begin(&session);
        wait_until("the call is marked", || mark(&session).is_some());
        assert!(!has_result(&session));
        signal(&run, with);
        run.wait().unwrap();
        // If it is asked to end immediately after the mark, a newer version may still print that the call is deferred.
        let printed = result(&session).map(|result| result["stop_reason"].clone());
        assert!(printed.is_none() || (with == Signal::TERM && printed == Some(json!("tool_deferred"))), "{printed:?}");
        assert_eq!(resumed(&session), ("yes".to_owned(), 1), "{with:?}");
    }
}

fn beside_a_subagent_a_reply_is_written_and_not_printed(version: &str) {
    let (session, never) = session(version, subagent(), Turn::text("so far"));
    let mut run = begin(&session);
    let reply = || written(&session).into_iter().find(|line| line["message"]["stop_reason"] == "end_turn");
    wait_until("the reply is written", || reply().is_some());
    assert_eq!(reply().unwrap()["message"]["content"][0]["text"], "so far");
    assert!(!has_result(&session));
    never.release();
    run.wait().unwrap();
    assert_eq!(events(&session).last().unwrap()["result"], "done");
}

fn asked_to_end_beside_a_command_a_newer_one_makes_no_further_request(version: &str) {
    let (session, _never) = session(version, command("exec tail -f /dev/null"), Turn::bash(REQUEST));
    let mut run = begin(&session);
    wait_until("the call is marked", || mark(&session).is_some());
    signal(&run, Signal::TERM);
    run.wait().unwrap();
    let after = written(&session).split_off(mark(&session).unwrap());
    let goes_on = after.iter().any(|line| line["type"] == "user");
    assert_eq!(goes_on, version != NEWEST, "{after:?}");
    if version == NEWEST {
        assert_eq!(resumed(&session), ("yes".to_owned(), 1));
    }
}

fn a_result_is_not_the_last_word_if_something_ends_in_the_background(version: &str) {
    let gate = tempfile::tempdir().unwrap();
    let open = gate.path().join("open");
    let until = format!("until [ -e {} ]; do sleep 0.05; done", open.display());
    let (session, _never) = session(version, command(&until), Turn::text("so far"));
    let mut run = begin(&session);
    wait_until("it has replied", || has_result(&session));
    fs::write(open, "").unwrap();
    run.wait().unwrap();
    let events = events(&session);
    let of = |kind: &str| events.iter().filter(|event| event["subtype"] == kind).collect::<Vec<_>>();
    assert_eq!(of("task_started")[0]["description"], "serves");
    assert_eq!(of("task_started").len(), of("task_notification").len());
    let results: Vec<_> =
        events.iter().filter(|event| event["type"] == "result").map(|event| &event["result"]).collect();
    assert_eq!(results, ["so far", "done"]);
    let first = events.iter().position(|event| event["type"] == "result").unwrap();
    assert!(events[first..].iter().any(|event| event["subtype"] == "init"));
}
