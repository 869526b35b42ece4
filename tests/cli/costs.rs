//! Costs, as people see them. The tests with the real claude compare them with the requests that were served.

use crate::world::World;

#[test]
fn a_chain_an_agent_and_a_day_have_their_costs() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "run true\nreply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    insta::assert_snapshot!(world.run(&["tree", "last", "--cost"]), @"
    $0.04 (in all $0.07)  [ID1:8] done ([AGE])  root.md
    └─ $0.03  [ID2:8] done ([AGE])  child.md
    --- exit status: 0
    ");
    let stats = world.run(&["stats", "--json"]).json();
    let day = stats["days"][0]["name"].as_str().expect("a day");
    insta::assert_snapshot!(world.run(&["stats"]).to_string().replace(day, "[DAY]"), @"
    COST   REQUESTS  TIME  TOKENS      DAY
    $0.07  7         [AGE]   7000 → 140  [DAY]

    COST   REQUESTS  TIME  TOKENS      MODEL
    $0.07  7         [AGE]   7000 → 140  claude-opus-4-8

    COST   REQUESTS  TIME  TOKENS      INSTRUCTIONS
    $0.04  4         [AGE]   4000 → 80   [PROJECT]/root.md
    $0.03  3         [AGE]   3000 → 60   [PROJECT]/child.md

    $0.07  7         [AGE]   7000 → 140  total
    --- exit status: 0
    ");
    let total = &world.run(&["resume", "last", "--json"]).json()["cost_usd"];
    assert_eq!(&stats["total"]["cost_usd"], total);
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.spawn_paused("asks.md");
    let metrics = world.run(&["metrics"]).to_string();
    let (before, after) = metrics.split_once("\nagent_cli_oldest_question_seconds ").expect("it is there");
    let metrics =
        format!("{before}\nagent_cli_oldest_question_seconds [AGE]{}", after.trim_start_matches(char::is_numeric));
    insta::assert_snapshot!(metrics, @r#"
    # HELP agent_cli_chains Chains by the state of their first agent.
    # TYPE agent_cli_chains gauge
    agent_cli_chains{status="ready"} 0
    agent_cli_chains{status="running"} 0
    agent_cli_chains{status="waiting"} 1
    agent_cli_chains{status="paused"} 0
    agent_cli_chains{status="done"} 1
    agent_cli_chains{status="failed"} 0
    agent_cli_chains{status="cancelled"} 0
    # HELP agent_cli_agents_running Agents that work now.
    # TYPE agent_cli_agents_running gauge
    agent_cli_agents_running 0
    # HELP agent_cli_questions_open Questions, approvals and plans that wait for a person.
    # TYPE agent_cli_questions_open gauge
    agent_cli_questions_open 1
    # HELP agent_cli_oldest_question_seconds How long the oldest of them has waited; 0: there is none.
    # TYPE agent_cli_oldest_question_seconds gauge
    agent_cli_oldest_question_seconds [AGE]
    # HELP agent_cli_attempts Recorded starts of agents.
    # TYPE agent_cli_attempts gauge
    agent_cli_attempts 4
    # HELP agent_cli_requests Recorded requests to the API.
    # TYPE agent_cli_requests gauge
    agent_cli_requests 10
    # HELP agent_cli_tokens Recorded tokens.
    # TYPE agent_cli_tokens gauge
    agent_cli_tokens{kind="input"} 10000
    agent_cli_tokens{kind="output"} 200
    agent_cli_tokens{kind="cache_creation"} 0
    agent_cli_tokens{kind="cache_read"} 0
    # HELP agent_cli_cost_usd What the recorded attempts cost, as far as it is known.
    # TYPE agent_cli_cost_usd gauge
    agent_cli_cost_usd 0.1
    --- exit status: 0
    "#);
}

#[test]
fn nothing_has_cost_anything_before_there_is_anything() {
    let world = World::new();
    assert_eq!(world.run(&["stats", "--json"]).json()["total"]["requests"], 0);
    world.run(&["stats"]).succeeds();
    world.run(&["stats", "--since", "yesterday"]).exits_with(2);
}
