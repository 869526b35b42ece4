//! The costs of chains, compared with the tokens that the scripted model served.

use rustix::process::Signal;
use serde_json::Value;

use crate::chain::{Chain, TEMPLATE};
use crate::processes::{Gate, wait_until};
use crate::support::{
    Conversation, Hold, MessagesApi, follow, on_every_version_before_a_release, on_every_version_of_a_whole_run,
};

on_every_version_before_a_release!(
    a_killed_attempt_costs_what_its_answers_cost,
    a_discarded_fork_costs_what_it_was_served,
    a_budget_ends_agents_within_a_request_each,
    claude_ends_at_the_rest_of_a_budget_and_its_agent_has_not_failed,
);

on_every_version_of_a_whole_run!(pauses_and_forks_cost_what_was_served);

/// A model whose price both versions know: five and twenty-five dollars for a million tokens.
const MODEL: [&str; 2] = ["--model", "claude-opus-4-8"];
const BYPASS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// The cost of all chains together, according to their records.
#[derive(Debug, Default)]
struct Sum {
    requests: u64,
    input: u64,
    output: u64,
    usd: f64,
    estimated: bool,
}

fn recorded(chain: &Chain) -> Sum {
    let mut sum = Sum::default();
    for root in chain.json(&["ls", "-ap", "--json"]).as_array().unwrap() {
        let shown = chain.json(&["show", root["id"].as_str().unwrap(), "--json"]);
        let spent = &shown["with_descendants"];
        let count = |value: &Value| value.as_u64().unwrap();
        sum.requests += count(&spent["requests"]);
        sum.input += count(&spent["usage"]["input_tokens"]);
        sum.output += count(&spent["usage"]["output_tokens"]);
        sum.usd += spent["cost_usd"].as_f64().unwrap();
        sum.estimated |= spent["estimated"] == true;
    }
    sum
}

fn served(chain: &Chain) -> Sum {
    let mut sum = Sum::default();
    for tokens in chain.api.served() {
        sum.requests += 1;
        sum.input += tokens.input;
        sum.output += tokens.output;
        sum.usd += tokens.input as f64 * 5e-6 + tokens.output as f64 * 25e-6;
    }
    sum
}

/// The records agree with the served tokens, exactly, and with their cost, to a hundredth of a cent.
#[track_caller]
fn are_equal(recorded: &Sum, served: &Sum) {
    let counts = |sum: &Sum| (sum.requests, sum.input, sum.output);
    assert_eq!(counts(recorded), counts(served), "{recorded:?} {served:?}");
    assert!((recorded.usd - served.usd).abs() < 1e-4, "{recorded:?} {served:?}");
}

fn pauses_and_forks_cost_what_was_served(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("root.md", "spawn child.md\nask Where?\nreply {results}\n");
    chain.home.write("child.md", "ask When?\nask Why?\nreply {results}\n");
    let root = chain.started(&[&["spawn", "root.md"], &MODEL[..]].concat());
    for answer in ["now", "so"] {
        chain.answer(answer);
        chain.started(&["resume", &root]);
    }
    are_equal(&recorded(&chain), &served(&chain));
    chain.answer("here");
    chain.ok(&["resume", &root]);
    chain.home.write("fork.md", "ask Who?\nreply {result}\n");
    let fork = chain.started(&[&["spawn", "fork.md", "--fork-from", &root], &MODEL[..]].concat());
    chain.answer("me");
    chain.ok(&["resume", &fork]);
    let sum = recorded(&chain);
    are_equal(&sum, &served(&chain));
    assert!(!sum.estimated);
    let stats = chain.json(&["stats", "--json"]);
    assert_eq!(stats["total"]["requests"].as_u64(), Some(sum.requests), "{stats}");
    assert_eq!(stats["models"][0]["name"], "claude-opus-4-8", "{stats}");
    assert_eq!(stats["instructions"].as_array().map(Vec::len), Some(3), "{stats}");
}

fn a_killed_attempt_costs_what_its_answers_cost(version: &str) {
    let chain = Chain::new(version);
    let gate = Gate::new(chain.home.home().join("gate"));
    let instructions = format!("ask When?\nrun echo one\nrun {}\nreply {{result}}\n", gate.wait_command());
    chain.home.write("ins.md", &instructions);
    let root = chain.started(&[&["spawn", "ins.md"], &MODEL[..], &BYPASS[..]].concat());
    chain.answer("now");
    let runner = chain.start(&["resume", &root]);
    let tool = gate.reached();
    chain.has_written(r#""command":"echo $$ >"#);
    runner.claude().kill();
    runner.ends();
    tool.has_ended();
    let killed = recorded(&chain);
    assert!(killed.estimated);
    are_equal(&killed, &served(&chain));
    let resumed = chain.start(&["resume", &root]);
    gate.open();
    assert_eq!(resumed.ends().out, "go\n");
    let sum = recorded(&chain);
    assert!(sum.estimated);
    are_equal(&sum, &served(&chain));
}

fn a_discarded_fork_costs_what_it_was_served(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let api = MessagesApi::start(move |conversation: &Conversation| {
        let turn = follow(conversation);
        match conversation.last_result() {
            Some(result) if result.trim() == "second" => turn.held(&held),
            _ => turn,
        }
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("ins.md", "ask When?\nrun echo second\nreply done\n");
    let root = chain.started(&[&["spawn", "ins.md"], &MODEL[..], &BYPASS[..]].concat());
    chain.answer("now");
    let runner = chain.start(&["resume", &root]);
    let requests = chain.api.count();
    chain.api.wait_until(|requests| {
        requests.last().is_some_and(|last| last.conversation().last_result().map(str::trim) == Some("second"))
    });
    assert!(chain.api.count() > requests - 1);
    wait_until("what was served is written", || chain.api.served().len() + 1 == chain.api.count());
    runner.signal(Signal::INT);
    runner.ends();
    let interrupted = recorded(&chain);
    let known = served(&chain);
    assert!(known.requests.abs_diff(interrupted.requests) <= 1, "{interrupted:?} {known:?}");
    hold.release();
    assert_eq!(chain.ok(&["resume", &root]), "done\n");
    let (sum, all) = (recorded(&chain), served(&chain));
    assert!(all.requests - sum.requests <= 1 && all.input >= sum.input, "{sum:?} {all:?}");
    assert!((all.usd - sum.usd).abs() < 1e-4 || sum.estimated, "{sum:?} {all:?}");
}

/// The most that a request of these tests costs, in dollars.
const REQUEST: f64 = 0.11;

fn a_budget_ends_agents_within_a_request_each(version: &str) {
    let chain = Chain::new(version);
    let work = "run true\n".repeat(12) + "reply done\n";
    chain.home.write("one.md", &work);
    chain.home.write("two.md", &work);
    let budget = ["--max-budget-usd", "0.5"];
    let id = chain.started(&[&["spawn", "one.md", "two.md"], &budget[..], &MODEL, &BYPASS].concat());
    let spent = recorded(&chain);
    are_equal(&spent, &served(&chain));
    assert!(spent.usd >= 0.5 && spent.usd < 0.5 + 2.0 * REQUEST, "{spent:?}");
    assert_eq!(chain.json(&["resume", &id, "--json"])["waiting_on"][0]["for"], "budget");
    chain.ok(&["resume", &id, "--max-budget-usd", "50"]);
    let sum = recorded(&chain);
    are_equal(&sum, &served(&chain));
    // Nothing was done twice: twelve calls and a reply of each, the instructions, and a prompt after the pause.
    assert!(sum.requests <= 2 * (13 + 2), "{sum:?}");
}

fn claude_ends_at_the_rest_of_a_budget_and_its_agent_has_not_failed(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("one.md", "run true\nrun true\nreply done\n");
    // Its first request spends all of it: nobody is faster than claude.
    let id = chain.started(&[&["spawn", "one.md", "--max-budget-usd", "0.01"], &MODEL[..], &BYPASS].concat());
    let shown = chain.json(&["show", &id, "--json"]);
    assert_eq!((&shown["status"], &shown["error"]), (&"ready".into(), &Value::Null), "{shown}");
    assert_eq!(shown["sessions"][0]["outcome"], "over_budget");
    assert_eq!(chain.ok(&["resume", &id, "--max-budget-usd", "50"]).trim(), "done");
}
