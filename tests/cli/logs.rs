//! What agents said and did: `logs`, and `--stream`.

use std::fs::OpenOptions;
use std::io::Write;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::gate::wait_until;
use crate::outcome::Outcome;
use crate::world::World;

/// The lines of an outcome without the time at their beginning, named.
fn lines(world: &World, outcome: &Outcome) -> String {
    let timed = |line: &str| line.get(2..3) == Some(":") && line.get(5..6) == Some(":");
    let lines = outcome.succeeds().stdout.lines().map(|line| line.get(10..).filter(|_| timed(line)).unwrap_or(line));
    world.named(&lines.map(|line| format!("{line}\n")).collect::<String>())
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("every line has one")).collect()
}

/// A chain of two agents, which waits for an answer.
fn waiting() -> (World, String) {
    let world = World::with_hooks();
    world.file("child.md", "run seq 3\nreply from the child\n");
    world.file("root.md", "spawn child.md\nrun false\nask When?\nreply got {result}\n");
    let id = world.spawn_paused("root.md");
    (world, id)
}

#[test]
fn what_an_agent_said_and_did_is_printed_line_by_line() {
    let (world, id) = waiting();
    let short = &id[..8];
    insta::assert_snapshot!(lines(&world, &world.run(&["logs", short])), @"
    started: claude-opus-4-8, Claude Code 2.1.330, default
    > Read root.md
    < spawn child.md (3 more lines)
    > Bash: agent-cli spawn child.md
    turn ended: 0.2 s, 2000 tokens in, 40 out; $0.02 in this session
    spawns [ID3:8] [PROJECT]/child.md
    waits
    < from the child
    started: claude-opus-4-8, Claude Code 2.1.330, default
    > Bash: false
    < error: Exit code 1
    > Bash: agent-cli ask 'When?'
    turn ended: 0.2 s, 2000 tokens in, 40 out; $0.04 in this session
    asks: When?
    waits
    ");
    insta::assert_snapshot!(lines(&world, &world.run(&["logs", &id, "--chain"])), @"
    [ID1:8] root.md  started: claude-opus-4-8, Claude Code 2.1.330, default
    [ID1:8] root.md  > Read root.md
    [ID1:8] root.md  < spawn child.md (3 more lines)
    [ID1:8] root.md  > Bash: agent-cli spawn child.md
    [ID1:8] root.md  turn ended: 0.2 s, 2000 tokens in, 40 out; $0.02 in this session
    [ID1:8] root.md  spawns [ID3:8] [PROJECT]/child.md
    [ID1:8] root.md  waits
    [ID3:8] child.md  started: claude-opus-4-8, Claude Code 2.1.330, default
    [ID3:8] child.md  > Read child.md
    [ID3:8] child.md  < run seq 3 (1 more line)
    [ID3:8] child.md  > Bash: seq 3
    [ID3:8] child.md  < 1 (2 more lines)
    [ID3:8] child.md  from the child
    [ID3:8] child.md  turn ended: 0.2 s, 3000 tokens in, 60 out; $0.03 in this session
    [ID3:8] child.md  done
    [ID1:8] root.md  < from the child
    [ID1:8] root.md  started: claude-opus-4-8, Claude Code 2.1.330, default
    [ID1:8] root.md  > Bash: false
    [ID1:8] root.md  < error: Exit code 1
    [ID1:8] root.md  > Bash: agent-cli ask 'When?'
    [ID1:8] root.md  turn ended: 0.2 s, 2000 tokens in, 40 out; $0.04 in this session
    [ID1:8] root.md  asks: When?
    [ID1:8] root.md  waits
    ");
    let full = world.run(&["logs", &id, "--chain", "--full"]);
    assert!(full.stdout.contains("  < 1\n") && full.stdout.contains("  2\n"), "{full}");
    assert_eq!(world.run(&["logs", &id, "--since", "0s"]).succeeds().stdout, "");
    let all = world.run(&["logs", &id, "--json", "--since", "1h"]).succeeds().stdout.clone();
    assert_eq!(all, world.run(&["logs", &id, "--json"]).stdout);
    insta::assert_snapshot!(world.run(&["logs", &id, "--since", "yesterday"]), @r"
    --- stderr
    error: invalid value 'yesterday' for '--since <WHEN>': give a duration such as 7d, a date such as 2026-11-20, or a time such as 14:00

    For more information, try '--help'.
    --- exit status: 2
    ");
}

#[test]
fn a_handoff_is_named_as_one() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --handoff child.md\n");
    world.file("child.md", "ask When?\n");
    let id = world.spawn_paused("root.md");
    let logged = lines(&world, &world.run(&["logs", &id]));
    assert!(logged.contains("\nhands off to [ID2:8] [PROJECT]/child.md\n"), "{logged}");
}

#[test]
fn each_event_has_a_version_a_time_and_its_agent() {
    let (world, id) = waiting();
    let all = events(&world.run(&["logs", &id, "--chain", "--json"]).succeeds().stdout);
    assert!(all.iter().all(|event| event["version"] == 1 && event["at"].is_string()), "{all:?}");
    let of = |frame: &dyn Fn(&Value) -> bool| all.iter().filter(|event| frame(event)).cloned().collect::<Vec<_>>();
    let own = of(&|event| event["agent"] == id.as_str());
    assert_eq!(own, events(&world.run(&["logs", &id, "--json"]).stdout));
    let child = of(&|event| event["agent"] != id.as_str());
    assert_eq!(types(&child).last(), Some(&"ended"));
    let result = child.iter().find(|event| event["type"] == "tool_result" && event["summary"] == "1").expect("seq ran");
    assert_eq!((&result["content"], &result["is_error"]), (&json!("1\n2\n3"), &json!(false)));
    let failed = own.iter().find(|event| event["is_error"] == true).expect("a call failed");
    assert_eq!(failed["type"], "tool_result");
}

#[test]
fn following_ends_when_nothing_can_happen_without_others_and_says_why() {
    let (world, id) = waiting();
    let followed = world.run(&["logs", &id, "-f"]);
    assert_eq!(followed.stdout, world.run(&["logs", &id]).stdout);
    insta::assert_snapshot!(world.named(&followed.succeeds().stderr), @"[ID1:8] asks");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("got Jan 1st");
    let over = world.run(&["logs", &id, "-f"]);
    assert_eq!((over.stderr.as_str(), over.stdout.lines().last().and_then(|line| line.get(10..))), ("", Some("done")));
}

#[test]
fn what_happens_is_followed_as_it_happens_with_new_agents() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("child.md", "hold gate\nreply from the child\n");
    world.file("root.md", "run echo first\nhold gate\nspawn child.md\nreply {result}\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    let file = world.project().join("followed");
    let command = format!("exec agent-cli logs {id} --follow --chain > followed");
    let follow = world.program("/bin/sh", ["-c", &command]).start();
    let followed = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_until("the first call is shown", || followed().contains("< first"));
    gate.open_for_one();
    gate.reached_by(2);
    wait_until("the child is shown", || followed().contains("child.md  started"));
    gate.open_for_one();
    spawn.ends().prints("from the child");
    assert_eq!(follow.ends().succeeds().stderr, "");
    let named = world.named(&followed());
    assert!(named.trim_end().ends_with("root.md  done"), "{named}");
    // When a line without a time was printed is only known to commands that watched.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().filter_map(|line| line.get(10..)).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&followed()), sorted(&world.run(&["logs", &id, "--chain"]).stdout));
}

#[test]
fn a_follower_that_is_stopped_or_not_read_stops_nothing() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    let follow = world.command(["logs", &id, "-f"]).start();
    let unread = world.command(["logs", &id, "-f"]).start_unread();
    // A shell makes its background processes ignore SIGINT, and the tests inherit this.
    follow.signal(Signal::TERM);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&follow.ends().status), Some(15));
    unread.ends().succeeds();
    gate.open_for_one();
    spawn.ends().prints("done");
}

#[test]
fn an_agent_reads_the_logs_of_its_own_agents_and_follows_none() {
    let world = World::new();
    world.file("other.md", "reply the secret of a chain\n");
    world.run(&["spawn", "other.md"]).succeeds();
    world.file("child.md", "reply from the child\n");
    world.file("root.md", "spawn child.md\nrun agent-cli logs $(agent-cli ls --json | grep -o '[0-9a-f-]\\{36\\}' | head -1)\nreply {result}\n");
    let read = world.run(&["spawn", "root.md"]);
    assert!(read.succeeds().stdout.contains("from the child"), "{read}");
    world.file("follows.md", "run agent-cli logs $AGENT_CLI_AGENT_ID -f 2>&1\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "follows.md"]).stdout, @r"
    Exit code 2
    error: agents cannot follow events
    hint: leave --follow out
    ");
}

#[test]
fn output_that_is_no_event_does_no_harm() {
    let (world, id) = waiting();
    let before = world.run(&["logs", &id]).succeeds().stdout.clone();
    let path = world.state().join("frames").join(&id).join("out.ndjson");
    let mut output = OpenOptions::new().append(true).open(path).expect("it was printed to");
    output.write_all(b"\xff\xfe garbage \x1b[2J\n[]\n{\"type\":\"next_year\"}\n").expect("it can be written");
    let long = "x".repeat(20_000_000);
    let text = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": long}]}});
    writeln!(output, "{text}").expect("it can be written");
    output.write_all(b"{\"type\":\"assist").expect("it can be written");
    let after = world.run(&["logs", &id]);
    let more = after.succeeds().stdout.len() - before.len();
    assert!((10_000..11_000).contains(&more), "{more}");
    let last =
        events(&world.run(&["logs", &id, "--json"]).stdout).into_iter().rev().find(|event| event["type"] == "text");
    assert_eq!(last.expect("it is printed")["cut"], true);
    assert!(world.run(&["logs", &id, "--full"]).stdout.len() > 20_000_000);
    world.run(&["show", &id]).succeeds();
}

#[test]
fn a_stream_has_the_events_of_the_whole_chain_and_then_the_result() {
    let world = World::with_hooks();
    world.file("child.md", "reply from the child\n");
    world.file("root.md", "spawn child.md\nask When?\nreply got {result}\n");
    let streamed = events(&world.run(&["spawn", "root.md", "--stream"]).succeeds().stdout);
    let (result, happened) = streamed.split_last().expect("there is a result");
    let id = result["id"].as_str().expect("an id").to_owned();
    assert_eq!(
        result,
        &world
            .run(&["resume", &id, "--json"])
            .json()
            .as_object()
            .map(|object| {
                let mut object = object.clone();
                object["status"] = json!("started");
                Value::Object(object)
            })
            .expect("an object")
    );
    assert_eq!(types(happened).iter().filter(|kind| **kind == "paused").count(), 2);
    let is_of_now = |event: &Value| event["at"].as_str().is_some_and(|at| at > "2020");
    assert!(happened.iter().all(is_of_now), "{happened:?}");
    world.answer("Jan 1st");
    let resumed = events(&world.run(&["resume", &id, "--stream"]).succeeds().stdout);
    assert!(resumed.iter().all(|event| event["agent"] == id.as_str() || event["id"] == id.as_str()), "{resumed:?}");
    assert_eq!(types(&resumed)[resumed.len() - 2..], ["ended", "chain"]);
    assert_eq!(resumed.last().expect("a result")["reply"], "got Jan 1st");
    // Nothing runs: there is only the result.
    assert_eq!(events(&world.run(&["resume", &id, "--stream"]).stdout).len(), 1);
    let all = events(&world.run(&["logs", &id, "--chain", "--json"]).stdout);
    // The answer came between the two.
    assert_eq!(all.len(), happened.len() + 1 + resumed.len() - 1);
}

#[test]
fn a_stream_that_nobody_reads_stops_nothing() {
    let world = World::new();
    world.file("root.md", "run true\nreply done\n");
    let outcome = world.command(["spawn", "root.md", "--stream"]).start_unread().ends();
    assert!(!outcome.stderr.contains("panicked"), "{outcome}");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.starts(), 1);
}

#[test]
fn an_agent_that_is_silent_for_long_is_shown_as_stalled() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md", "--stall-after", "0s"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    let shown = world.run(&["show", &id, "--json"]).json();
    assert_eq!((&shown["doing"]["activity"], &shown["doing"]["stalled"]), (&json!("running"), &json!(true)));
    let shown = world.run(&["show", &id]);
    assert!(shown.stdout.contains("(stalled: no event for 0 min)"), "{shown}");
    for list in [&["ls"][..], &["tree", &id]] {
        let listed = world.run(list);
        assert!(listed.stdout.contains("running Bash: echo held") && listed.stdout.contains("(stalled:"), "{listed}");
    }
    for list in [&["ls", "--json"][..], &["tree", "--json"]] {
        let listed = world.run(list).json();
        let doing = &listed[0]["doing"];
        assert!(doing["stalled"] == true || doing[&id]["stalled"] == true, "{listed}");
    }
    let stderr = world.project().join("followed");
    let follow = world.program("/bin/sh", ["-c", &format!("exec agent-cli logs {id} -f 2> followed")]).start();
    wait_until("it is reported", || {
        std::fs::read_to_string(&stderr).unwrap_or_default().contains(" is stalled: no event")
    });
    gate.open_for_one();
    spawn.ends().prints("done");
    follow.ends().succeeds();
    assert_eq!(world.run(&["show", &id, "--json"]).json()["doing"], Value::Null);
}

#[test]
fn the_last_events_are_those_at_the_end_of_all() {
    let (world, id) = waiting();
    for options in [&[][..], &["--chain"], &["--json"], &["--chain", "--json"]] {
        let logs = |more: &[&str]| world.run(&[&["logs", &id][..], options, more].concat()).succeeds().stdout.clone();
        let all = logs(&[]);
        let all: Vec<&str> = all.lines().collect();
        for tail in [0, 1, 3, all.len(), all.len() + 1] {
            let last = logs(&["--tail", &tail.to_string()]);
            let expected = &all[all.len().saturating_sub(tail)..];
            assert_eq!(last.lines().collect::<Vec<_>>(), expected, "{options:?} {tail}");
        }
        assert_eq!(logs(&["--tail", "2", "--since", "0s"]), "");
    }
}

#[test]
fn the_end_of_a_long_output_is_found_without_the_rest() {
    let (world, id) = waiting();
    let path = world.state().join("frames").join(&id).join("out.ndjson");
    let mut output = OpenOptions::new().append(true).open(path).expect("it was printed to");
    let began = jiff::Timestamp::now();
    // All of these times have passed when the lines are written.
    let at = |n: i64| (began + jiff::SignedDuration::from_nanos(n)).to_string();
    for n in 0..20_000 {
        let content = json!([{"type": "text", "text": format!("number {n}")}]);
        let line = json!({"type": "assistant", "message": {"content": content}, "timestamp": at(n)});
        writeln!(output, "{line}").expect("it can be written");
    }
    let wrong = world.run(&["logs", &id, "--tail", "x"]);
    assert!(wrong.exits_with(2).stderr.contains("it must be a whole number"), "{wrong}");
    let tail = world.run(&["logs", &id, "--tail", "3", "--json"]);
    assert_eq!(texts(&tail), ["number 19997", "number 19998", "number 19999"]);
    let since = world.run(&["logs", &id, "--since", &at(19_998), "--json"]);
    assert_eq!(texts(&since), ["number 19998", "number 19999"]);
    // More than is read first.
    let many = world.run(&["logs", &id, "--tail", "15000", "--json"]);
    assert_eq!(texts(&many).first().map(String::as_str), Some("number 5000"));
}

/// The texts of an agent, as `--json` prints them.
fn texts(outcome: &Outcome) -> Vec<String> {
    let texts = events(&outcome.succeeds().stdout).into_iter().filter(|event| event["type"] == "text");
    texts.map(|event| event["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_follower_ends_when_its_reader_has_gone() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    // Its reader goes when everything was written that there is; nothing follows.
    let command = format!("{{ agent-cli logs {id} -f; echo ended >&2; }} | head -1");
    let outcome = world.program("/bin/sh", ["-c", &command]).run();
    assert!(outcome.stdout.contains("started") && outcome.stderr.contains("ended"), "{outcome}");
    gate.open_for_one();
    spawn.ends().prints("done");
}
