//! What an agent does, as a person sees it: while it runs, and later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use crate::chain::{Chain, TEMPLATE};
use crate::processes::wait_until;
use crate::support::{Hold, MessagesApi, NEWEST, Turn, follow, on_every_version, on_the_newest_version};

on_every_version!(
    a_throttled_agent_is_distinguished_from_one_that_works, what_an_agent_said_and_did_can_be_read_and_costs_nothing,
    a_stream_has_what_happened_in_a_chain_and_its_result,
);

on_the_newest_version!(the_results_of_suspended_calls_are_shown_however_they_were_handed_over,);

/// Claude Code does not print its input.
fn the_results_of_suspended_calls_are_shown_however_they_were_handed_over() {
    for asks in ["ask When?", "ask When? ++ run echo x", "ask When? ++ ask When?"] {
        let chain = Chain::with_model(NEWEST, MessagesApi::start(follow));
        chain.home.write("CLAUDE.md", TEMPLATE);
        chain.home.write("ins.md", &format!("{asks}\nreply done\n"));
        let root = chain.started(&["spawn", "ins.md"]);
        for question in chain.json(&["questions", "--json"]).as_array().unwrap() {
            chain.ok(&["answer", question["id"].as_str().unwrap(), "Jan 1st"]);
        }
        let streamed = events(&chain.ok(&["resume", &root, "--stream"]));
        let logged = events(&chain.ok(&["logs", &root, "--json"]));
        for told in [&streamed, &logged] {
            let of = |kind: &str| told.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
            let results: Vec<_> = of("tool_result").iter().map(|event| event["content"].as_str().unwrap()).collect();
            assert_eq!(
                results.iter().filter(|text| **text == "Jan 1st").count(),
                asks.matches("ask").count(),
                "{told:?}"
            );
        }
        let calls = logged.iter().filter(|event| event["type"] == "tool_use").map(|event| &event["id"]);
        for call in calls {
            let returned =
                logged.iter().filter(|event| event["type"] == "tool_result" && event["tool_use_id"] == *call);
            assert_eq!(returned.count(), 1, "{asks}: {logged:?}");
        }
    }
}

fn events(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("every line has one")).collect()
}

/// The events without those that only newer versions have.
fn known<'a>(types: &[&'a str]) -> Vec<&'a str> {
    types.iter().copied().filter(|kind| !["thinking", "other", "rate_limit"].contains(kind)).collect()
}

fn doing(chain: &Chain, root: &str) -> Value {
    chain.json(&["show", root, "--json"])["doing"].clone()
}

fn a_throttled_agent_is_distinguished_from_one_that_works(version: &str) {
    let status = Arc::new(AtomicU16::new(529));
    let (set, hold) = (Arc::clone(&status), Hold::new());
    let held = hold.clone();
    let api = MessagesApi::start(move |_| match set.load(Ordering::SeqCst) {
        0 => Turn::text("so it is").held(&held).after_tokens(1),
        // Claude Code waits as long as the response says.
        status => Turn::error(status, "overloaded_error", "Overloaded").header("retry-after", "2"),
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("ins.md", "Say so.\n");
    let spawn = chain.start(&["spawn", "ins.md"]);
    chain.api.wait_until(|requests| !requests.is_empty());
    let root = chain.only_root();
    wait_until("it is shown as throttled", || doing(&chain, &root)["activity"] == "throttled");
    let throttled = doing(&chain, &root);
    status.store(0, Ordering::SeqCst);
    assert_eq!(throttled["status"], 529, "{throttled}");
    assert!(throttled["retry"].as_u64() >= Some(1) && throttled["max_retries"].as_u64() > Some(1), "{throttled}");
    // The first token has arrived, but the message is not complete.
    wait_until("it is not throttled any more", || {
        ["retrying", "thinking"].iter().any(|activity| doing(&chain, &root)["activity"] == *activity)
    });
    hold.release();
    assert_eq!(spawn.ends().out, "so it is\n");
    let told = events(&chain.ok(&["logs", &root, "--json"]));
    let retry = told.iter().find(|event| event["type"] == "api_retry").unwrap();
    assert_eq!(
        (&retry["retry"], &retry["error_status"], &retry["error"]),
        (&json!(1), &json!(529), &json!("overloaded"))
    );
    assert_eq!(known(&types(&told)).last(), Some(&"ended"));
    let lines = chain.ok(&["logs", &root]);
    assert!(lines.contains("throttled: 529 overloaded, try 1 of "), "{lines}");
    assert_eq!(doing(&chain, &root), Value::Null);
}

fn asking(version: &str) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(follow)).without_lingering();
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("child.md", "run echo one; echo two\nreply from the child\n");
    chain.home.write("ins.md", "run false\nspawn child.md\nask When?\nreply {result}\n");
    chain
}

const OPTIONS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn what_an_agent_said_and_did_can_be_read_and_costs_nothing(version: &str) {
    let chain = asking(version);
    let root = chain.started(&["spawn", "ins.md", OPTIONS[0], OPTIONS[1]]);
    let (asked, transcripts) = (chain.api.count(), chain.home.transcripts());
    let lines = chain.ok(&["logs", &root, "--chain"]);
    let mut from = 0;
    for text in [
        "ins.md  started: ", "ins.md  > Bash: false", "ins.md  < error: Exit code 1",
        "ins.md  > Bash: agent-cli spawn ", "ins.md  waits", "child.md  started: ",
        "child.md  > Bash: echo one; echo two", "child.md  < one (1 more line)", "child.md  from the child",
        "child.md  done", "ins.md  < from the child", "ins.md  asks",
    ] {
        let at = lines[from..].find(text);
        from += at.unwrap_or_else(|| panic!("{text} is missing or comes too early:\n{lines}"));
    }
    let followed = chain.run(&["logs", &root, "--chain", "-f"]);
    assert_eq!((followed.code, followed.out), (Some(0), lines));
    assert!(followed.err.contains(" asks"), "{}", followed.err);
    let child = chain.ok(&["logs", &root, "--chain", "--full"]);
    assert!(child.contains("child.md  < one\n") && child.contains("  two\n"), "{child}");
    assert_eq!((chain.api.count(), chain.home.transcripts()), (asked, transcripts));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}

fn a_stream_has_what_happened_in_a_chain_and_its_result(version: &str) {
    let chain = asking(version);
    let streamed = events(&chain.ok(&["spawn", "ins.md", "--stream", OPTIONS[0], OPTIONS[1]]));
    let result = streamed.last().unwrap();
    assert_eq!((&result["status"], &result["type"]), (&json!("started"), &json!("chain")));
    let root = chain.only_root();
    let own: Vec<_> = streamed.iter().filter(|event| event["agent"] == root.as_str()).cloned().collect();
    let kinds = known(&types(&own));
    let has =
        |kind: &str, times| assert_eq!(kinds.iter().filter(|it| **it == kind).count(), times, "{kind}: {kinds:?}");
    // A suspended call returns before the second attempt reports that it has started.
    has("started", 2);
    has("request", 2);
    has("paused", 2);
    has("ended", 0);
    assert!(own.iter().any(|event| event["context_tokens"].as_u64() > Some(0)), "{own:?}");
    chain.answer("Jan 1st");
    let resumed = events(&chain.ok(&["resume", &root, "--stream"]));
    assert_eq!(resumed.last().unwrap()["reply"], "Jan 1st");
    assert_eq!(types(&resumed)[resumed.len() - 2], "ended");
    let all = events(&chain.ok(&["logs", &root, "--chain", "--json"]));
    assert_eq!(all.len(), streamed.len() + resumed.len() - 1, "the answer, but no results");
}
