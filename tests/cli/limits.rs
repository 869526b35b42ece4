//! Chains that would grow without end.

use crate::world::World;

fn endless() -> World {
    let world = World::new();
    world.file("self.md", "spawn self.md\nreply {result}\n");
    world
}

#[test]
fn an_agent_that_spawns_itself_is_stopped() {
    let world = endless();
    let outcome = world.run(&["spawn", "self.md"]);
    outcome.succeeds();
    insta::assert_snapshot!(outcome, @"
    Exit code 2
    error: the chain would be more than 64 agents deep, which is its limit
    hint: an agent does the work itself; a person raises the limits with --max-depth and --max-agents
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 64 + 63, "each but the last was woken once");
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn the_depth_is_the_users_choice() {
    let world = endless();
    world.run(&["spawn", "self.md", "--max-depth", "3"]).succeeds();
    assert_eq!(world.starts(), 3 + 2);
    let world = World::new();
    world.file("root.md", "spawn root.md\nreply {result}\n");
    world.run(&["spawn", "root.md", "--max-depth", "1"]).succeeds();
    assert_eq!(world.starts(), 1);
}

#[test]
fn so_is_the_number_of_agents() {
    let world = World::new();
    world.file("root.md", "run for i in 1 2 3 4 5; do agent-cli spawn child.md; done\nreply {results}\n");
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md", "--max-agents", "3"]).prints("ok; ok");
    assert_eq!(world.starts(), 4);
}

#[test]
fn both_can_be_changed_later() {
    let world = World::new();
    world.file("root.md", "ask When?\nspawn child.md &\nspawn child.md\nreply {results}\n");
    world.file("child.md", "reply ok\n");
    let id = world.run(&["spawn", "root.md", "--max-depth", "1", "--max-agents", "2"]).started();
    world.answer("now");
    world.run(&["resume", &id, "--max-depth", "2", "--max-agents", "3"]).prints("now; ok; ok");
    let limits = &world.run(&["show", &id, "--json"]).json()["limits"];
    assert_eq!((limits["max_depth"].as_u64(), limits["max_agents"].as_u64()), (Some(2), Some(3)));
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let world = endless();
    world.run(&["spawn", "self.md", "--max-depth", "0"]).exits_with(2);
    world.run(&["spawn", "self.md", "--max-agents", "0"]).exits_with(2);
    world.run(&["spawn", "self.md", "--max-depth", "many"]).exits_with(2);
    assert_eq!(world.starts(), 0);
}
