//! `--max-budget-usd`: how much a tree may spend. Each response of the stand-in costs a cent.

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::world::{World, write_config};

/// A root that asks and is then woken, and a child that replies.
fn world() -> World {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    world
}

#[test]
fn nothing_is_started_once_it_is_spent_until_it_is_raised() {
    let world = world();
    let outcome = world.run(&["spawn", "root.md", "--max-budget-usd", "0.04"]);
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    warning: [ID1:8] has cost $0.05, more than its budget of $0.04
    [ID1:8] waits for a larger budget: $0.05 of $0.04 spent
    hint: agent-cli resume [ID1:8] --max-budget-usd USD raises the budget
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 2);

    let poll = world.run(&["resume", &id]);
    poll.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(poll, @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for a larger budget: $0.05 of $0.04 spent
    hint: agent-cli resume [ID1:8] --max-budget-usd USD raises the budget
    --- exit status: 0
    ");
    let json = world.run(&["resume", &id, "--json"]).json();
    assert_eq!((json["status"].as_str(), json["waiting_on"][0]["for"].as_str()), (Some("ongoing"), Some("budget")));
    assert_eq!(json["waiting_on"][0]["max_usd"], 0.04);
    let listed = world.run(&["ls"]).stdout;
    assert!(
        listed.contains("  over budget  ") && listed.contains("root.md  for a larger budget: $0.05 of $0.04"),
        "{listed}"
    );
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json()[0]["over_budget"], true);
    let tree = world.run(&["tree"]).stdout;
    assert!(tree.contains("root.md  waits for a larger budget"), "{tree}");
    assert_eq!(world.starts(), 2);

    world.run(&["resume", &id, "--max-budget-usd", "0.05"]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &id, "--max-budget-usd", "0.06"]).prints("ok");
}

/// The stand-in says that each response cost a cent, whatever a person has set.
#[test]
fn a_price_that_a_person_has_set_counts_for_the_budget_while_an_agent_runs_and_afterwards() {
    let price = |usd: &str| {
        format!("[prices.claude-opus-4-8]\ninput = {usd}\noutput = {usd}\ncache-write = {usd}\ncache-read = {usd}\n")
    };
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("root.md", "run true\nhold gate\nrun true\nreply done\n");
    write_config(&world, &price("1000"));
    let spawn = world.command(["spawn", "root.md", "--max-budget-usd", "0.5"]).start();
    gate.reached_by(1);
    are_told(&world, 1);
    gate.open_for_one();
    let spawn = spawn.ends();
    let id = spawn.started();
    assert!(spawn.stderr.contains("waits for a larger budget: $"), "{spawn}");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1, "an agent that has spent the budget does not start again");
    let cost = |id: &str| world.run(&["show", id, "--json"]).json()["cost_usd"].as_f64().expect("a cost");
    assert!(cost(&id) >= 0.5, "{}", cost(&id));
    write_config(&world, &price("0.000001"));
    world.file("root.md", format!("{}reply done\n", "run true\n".repeat(20)));
    let cheap = world.run(&["spawn", "root.md", "--max-budget-usd", "0.1", "--json"]);
    let cheap = cheap.succeeds().json();
    assert_eq!(cheap["status"], "done", "{cheap:#}");
    assert!(cost(cheap["id"].as_str().expect("an id")) < 0.01);
}

#[test]
fn it_counts_the_whole_tree_from_wherever_it_is_driven() {
    let world = World::new();
    world.file("root.md", "spawn asks.md\nreply {result}\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md", "--max-budget-usd", "0.05", "--max-agents", "9"]).started();
    let shown = world.run(&["show", &id]).stdout;
    assert!(shown.contains("  of the chain: at most $0.05, 9 agents\n"), "{shown}");
    world.answer("now");
    let child = world.run(&["tree", &id, "--json"]).json()[1]["id"].as_str().expect("an id").to_owned();
    world.run(&["resume", &child]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 2);
    world.run(&["resume", &child, "--max-budget-usd", "1"]).prints("now");
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn a_failed_agent_is_not_tried_again_and_has_not_failed_for_want_of_money() {
    let world = World::new();
    world.file("root.md", "run true\nfail boom\n");
    world.run(&["spawn", "root.md", "--max-budget-usd", "0.01"]).exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    let again = world.run(&["resume", &id]);
    again.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(again, @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for a larger budget: $0.02 of $0.01 spent
    hint: agent-cli resume [ID1:8] --max-budget-usd USD raises the budget
    --- exit status: 0
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1);
}

#[test]
fn what_is_no_amount_is_refused() {
    let world = world();
    for amount in ["-1", "0", "NaN", "inf", "much", "", "-inf"] {
        world.run(&["spawn", "root.md", "--max-budget-usd", amount]).exits_with(2);
        world.run(&["resume", "12345678", "--max-budget-usd", amount]).exits_with(2);
    }
    insta::assert_snapshot!(world.run(&["spawn", "root.md", "--max-budget-usd", "-1"]), @"
    --- stderr
    error: invalid value '-1' for '--max-budget-usd <USD>': give an amount of US dollars above 0, such as 2.50

    For more information, try '--help'.
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
}

#[test]
fn an_agent_sets_no_budget() {
    let world = world();
    world.file("root.md", "run agent-cli spawn child.md --max-budget-usd 9; agent-cli spawn child.md --max-parallel 9; agent-cli resume 12345678 --max-agents 9\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: agents cannot set limits (--max-…, --stall-after)
    hint: leave them out
    error: agents cannot set limits (--max-…, --stall-after)
    hint: leave them out
    error: agents cannot set limits (--max-…, --stall-after)
    hint: leave them out
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 1);
}

#[test]
fn the_option_of_claude_is_its_own() {
    let world = world();
    world.run(&["spawn", "root.md", "--", "--max-budget-usd", "1"]).prints("ok");
    let log = world.log();
    // The limit applies to each agent separately, and to all of its attempts together.
    let given: Vec<_> = log.starts.iter().filter_map(|start| start.value_of("--max-budget-usd")).collect();
    let [first, child, later] = given[..] else { panic!("{given:?}") };
    assert_eq!((first, child), ("1", "1"));
    assert!(later.parse::<f64>().unwrap() < 1.0, "{later}");
    assert_eq!(
        world.run(&["show", &log.starts[0].session()[..8], "--json"]).json()["limits"]["max_budget_usd"],
        serde_json::Value::Null
    );
}

/// A world in which the price of an answer has been reported, and agents whose second answer calls a tool that waits at a gate.
fn with_a_price() -> (World, Gate) {
    let world = World::with_hooks();
    world.file("first.md", "reply ok\n");
    world.run(&["spawn", "first.md"]).prints("ok");
    let gate = world.gate("gate");
    world.file("held.md", "run echo worked >> marks\nhold gate\nrun echo after >> marks\nreply done\n");
    (world, gate)
}

/// Waits until so many agents are told to stop.
fn are_told(world: &World, agents: usize) {
    wait_until("the agents are told to stop", || {
        let told = |id: &str| world.state().join("frames").join(id).join("stop").exists();
        world.log().starts.iter().filter(|start| told(start.session())).count() == agents
    });
}

fn started<'a>(world: &'a World, args: &[&str]) -> Running<'a> {
    world.command([&["spawn"][..], args].concat()).start()
}

#[test]
fn an_agent_that_spends_the_last_of_it_ends_after_its_tool_and_loses_nothing() {
    let (world, gate) = with_a_price();
    let spawn = started(&world, &["held.md", "--max-budget-usd", "0.025"]);
    gate.reached_by(1);
    are_told(&world, 1);
    gate.open_for_one();
    let outcome = spawn.ends();
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    warning: [ID1:8] has cost $0.03, more than its budget of $0.025
    [ID1:8] waits for a larger budget: $0.03 of $0.025 spent
    hint: agent-cli resume [ID1:8] --max-budget-usd USD raises the budget
    --- exit status: 0
    ");
    assert_eq!(world.marks(), "worked\n");
    let shown = world.run(&["show", &id, "--json"]).json();
    assert_eq!((&shown["status"], &shown["sessions"][0]["outcome"]), (&"ready".into(), &"over_budget".into()));
    assert_eq!(shown["cost_usd"], 0.03, "not a request more");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &id, "--max-budget-usd", "1"]).prints("done");
    assert_eq!(world.marks(), "worked\nafter\n");
}

#[test]
fn agents_that_run_at_once_spend_it_together_and_each_makes_at_most_one_more_request() {
    let (world, gate) = with_a_price();
    let spawn = started(&world, &["held.md", "held.md", "--max-budget-usd", "0.04"]);
    gate.reached_by(2);
    are_told(&world, 2);
    gate.open_for_one();
    gate.open_for_one();
    let id = spawn.ends().started();
    let spent = world.run(&["show", &id, "--json"]).json()["with_descendants"]["cost_usd"].as_f64().unwrap();
    assert!((0.04..=0.06).contains(&spent), "{spent}");
    assert_eq!(world.run(&["resume", &id, "--json"]).json()["waiting_on"][0]["for"], "budget");
    assert_eq!(world.marks(), "worked\nworked\n");
    world.run(&["resume", &id, "--max-budget-usd", "1"]).succeeds();
    assert_eq!(world.marks(), "worked\nworked\nafter\nafter\n");
}

#[test]
fn a_budget_that_is_set_while_agents_run_stops_them() {
    let (world, gate) = with_a_price();
    let spawn = started(&world, &["held.md"]);
    gate.reached_by(1);
    let id = world.log().starts[1].session().to_owned();
    let other = world.command(["resume", &id, "--max-budget-usd", "0.01"]).start();
    are_told(&world, 1);
    gate.open_for_one();
    spawn.ends().started();
    other.ends().succeeds();
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn claude_is_given_what_is_left_and_is_not_blamed_for_it() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nrun true\nrun true\nfail Reached maximum budget ($0.02)\n");
    let spawn = ["spawn", "root.md", "--max-budget-usd", "0.04", "--", "--max-budget-usd=0.2"];
    let id = world.run(&spawn).started();
    world.answer("now");
    let outcome = world.run(&["resume", &id]);
    let given = |start: usize| {
        let argv = world.log().starts[start].argv.join(" ");
        argv.split("--max-budget-usd=").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    };
    assert_eq!([given(0), given(1)], [Some("0.04".to_owned()), Some("0.02".to_owned())]);
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for a larger budget: $0.04 of $0.04 spent
    hint: agent-cli resume [ID1:8] --max-budget-usd USD raises the budget
    --- exit status: 0
    ");
}
