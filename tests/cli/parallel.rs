//! `--max-parallel`: how many agents of a tree run at the same time, whichever commands run them.

use crate::world::World;

/// A root whose children ask, then wait at a gate.
fn asking(children: &[&str]) -> World {
    let world = World::new();
    let spawns: String = children.iter().map(|child| format!("spawn {child}.md &\n")).collect();
    world.file("root.md", format!("{spawns}reply {{results}}\n"));
    for child in children {
        world.file(format!("{child}.md"), format!("ask {child}?\nhold gate\nreply {child}\n"));
    }
    world
}

fn id_of(world: &World, task: &str) -> String {
    let frames = world.run(&["tree", "--json"]).json();
    let found = frames.as_array().expect("a list").iter().find(|frame| frame["task"] == task);
    found.expect("it is in the tree")["id"].as_str().expect("an id").to_owned()
}

#[test]
fn two_commands_share_the_limit_of_their_tree() {
    let world = asking(&["a", "b"]);
    let gate = world.gate("gate");
    let id = world.run(&["spawn", "root.md", "--max-parallel", "1"]).started();
    for child in ["a?", "b?"] {
        world.answer_to(child, "go");
    }
    let first = world.command(["resume", &id_of(&world, "a.md")]).start();
    gate.reached_by(1);
    for command in [&id, &id_of(&world, "b.md")] {
        let second = world.run(&["resume", command]);
        second.prints("SGN_PEND_ONGOING");
        assert!(
            second
                .stderr
                .contains("waits for a free slot: the chain's limit of 1 running agents is reached (--max-parallel)"),
            "{second}"
        );
    }
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    SGN_PEND_ONGOING
    --- stderr
    another process (process [PID]) is running [ID2:8]
    [ID4:8] waits for a free slot: the chain's limit of 1 running agents is reached (--max-parallel)
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 4);
    gate.open_for_one();
    first.ends().prints("a");
    gate.open_for_one();
    world.run(&["resume", &id]).prints("a; b");
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn many_commands_at_once_keep_to_the_limit_and_lose_nothing() {
    let children = ["a", "b", "c", "d", "e", "f"];
    let world = World::new();
    let spawns: String = children.iter().map(|child| format!("spawn {child}.md &\n")).collect();
    world.file("root.md", format!("{spawns}reply {{results}}\n"));
    for child in children {
        world.file(format!("{child}.md"), format!("ask {child}?\nspawn leaf.md\nreply {child}\n"));
    }
    world.file("leaf.md", "run true\nreply leaf\n");
    let id = world.run(&["spawn", "root.md", "--max-parallel", "2"]).started();
    for child in children {
        world.answer_to(&format!("{child}?"), "go");
    }
    let mut tops: Vec<_> = children.iter().map(|child| id_of(&world, &format!("{child}.md"))).collect();
    tops.extend([id.clone(), id.clone(), id.clone()]);
    let running: Vec<_> = tops.iter().map(|top| world.command(["resume", top]).start()).collect();
    for resume in running {
        resume.ends().succeeds();
    }
    world.run(&["resume", &id]).prints("a; b; c; d; e; f");
    assert!(world.log().most_alive() <= 2, "{}", world.log().most_alive());
    assert_eq!(world.starts(), 1 + 6 + 6 + 6 + 6 + 1, "root, ask, woken, leaf, woken, root");
}

#[test]
fn a_chain_needs_one_place_only() {
    let world = World::new();
    world.file("root.md", "spawn middle.md\nreply {result}\n");
    world.file("middle.md", "spawn leaf.md\nreply {result}\n");
    world.file("leaf.md", "reply ok\n");
    world.run(&["spawn", "root.md", "--max-parallel", "1"]).prints("ok");
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn it_is_recorded_and_can_be_changed() {
    let world = asking(&["a", "b", "c"]);
    let gate = world.gate("gate");
    let id = world.run(&["spawn", "root.md", "--max-parallel", "1"]).started();
    for child in ["a?", "b?", "c?"] {
        world.answer_to(child, "go");
    }
    let first = world.command(["resume", &id]).start();
    gate.reached_by(1);
    // A second command raises it and fills the place. The first one notices this at its next check.
    let second = world.command(["resume", &id, "--max-parallel", "2"]).start();
    gate.reached_by(2);
    (0..3).for_each(|_| gate.open_for_one());
    first.ends().succeeds();
    second.ends().succeeds();
    world.run(&["resume", &id]).prints("a; b; c");
    assert_eq!(world.log().most_alive(), 2);
    assert_eq!(world.run(&["show", &id, "--json"]).json()["limits"]["max_parallel"], 2);
}

#[test]
fn the_place_of_an_agent_whose_runner_died_is_free() {
    let world = asking(&["a", "b"]);
    let gate = world.gate("gate");
    world.run(&["spawn", "root.md", "--max-parallel", "1"]).started();
    world.answer_to("a?", "go");
    world.answer_to("b?", "go");
    let (a, b) = (id_of(&world, "a.md"), id_of(&world, "b.md"));
    let first = world.command(["resume", &a]).start();
    gate.reached_by(1);
    crate::crash::kill_runner(first);
    world.run(&["resume", &b]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    let log = world.log();
    let agent = log.starts.last().expect("it was started");
    crate::gate::wait_until("the agent ends its turn", || !agent.is_alive());
    gate.open_for_one();
    crate::gate::wait_until("its place is free", || world.run(&["resume", &b]).succeeds().stdout == "b\n");
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn no_places_at_all_are_refused() {
    let world = asking(&["a"]);
    for number in ["0", "-1", "many"] {
        let refused = world.run(&["spawn", "root.md", "--max-parallel", number]);
        assert!(refused.exits_with(2).stderr.contains("it must be a whole number of at least 1"), "{refused}");
    }
    assert_eq!(world.starts(), 0);
}

#[test]
fn the_whole_chain_is_not_looked_at_for_each_of_many_siblings() {
    let looks = |agents: usize| {
        let world = World::new().with("AGENT_CLI_LOG", "debug");
        world.file("a.md", "reply ok\n");
        let args = ["spawn", "--max-parallel", "2"].into_iter().chain(std::iter::repeat_n("a.md", agents));
        let outcome = world.run(&args.collect::<Vec<_>>());
        assert_eq!(world.starts(), agents);
        outcome.succeeds().stderr.matches("the whole chain is looked at").count()
    };
    let [few, many] = [6, 24].map(looks);
    assert!(many < few + 12, "{few} of 6, {many} of 24");
}
