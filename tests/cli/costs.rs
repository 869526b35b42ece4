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
}

#[test]
fn nothing_has_cost_anything_before_there_is_anything() {
    let world = World::new();
    assert_eq!(world.run(&["stats", "--json"]).json()["total"]["requests"], 0);
    world.run(&["stats"]).succeeds();
    world.run(&["stats", "--since", "yesterday"]).exits_with(2);
}
