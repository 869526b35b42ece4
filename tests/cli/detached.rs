//! Chains that agents and people start as chains of their own.

use serde_json::json;

use crate::gate::wait_until;
use crate::world::World;

fn chains(world: &World) -> Vec<(String, String, String)> {
    let listed = world.run(&["ls", "--all", "--json"]).json();
    let text = |chain: &serde_json::Value, name: &str| chain[name].as_str().unwrap_or_default().to_owned();
    let chain = |chain| (text(chain, "task"), text(chain, "id"), text(chain, "status"));
    listed.as_array().unwrap().iter().map(chain).collect()
}

fn chain(world: &World, task: &str) -> (String, String) {
    let found = chains(world).into_iter().find(|(of, ..)| of.ends_with(task));
    let (_, id, status) = found.unwrap_or_else(|| panic!("no chain {task}"));
    (id, status)
}

fn is_done(world: &World, task: &str) {
    wait_until("the detached chain is done", || chain(world, task).1 == "done");
}

#[test]
fn the_caller_does_not_wait_for_a_chain_of_its_own() {
    for world in [World::with_hooks(), World::new()] {
        world.file("root.md", "spawn --detach free.md\nreply started {result}\n");
        world.file("free.md", "hold gate\nspawn below.md\nreply free: {result}\n");
        world.file("below.md", "reply 42\n");
        let gate = world.gate("gate");
        let outcome = world.run(&["spawn", "root.md"]);
        outcome.succeeds();
        let (id, _) = chain(&world, "free.md");
        assert_eq!(outcome.stdout, format!("started {id}\n"), "{outcome}");
        gate.reached_by(1);
        let (root, _) = chain(&world, "root.md");
        let shown = world.run(&["show", &root]);
        assert!(shown.stdout.contains(&format!("/free.md as the chain {}", &id[..8])), "{shown}");
        let shown = world.run(&["show", &id]);
        assert!(shown.stdout.contains(&format!("detached by  {root}")), "{shown}");
        assert_eq!(world.run(&["show", &id, "--json"]).json()["detached_by"], json!(root));
        gate.open_for_one();
        is_done(&world, "free.md");
        world.run(&["resume", &id]).prints("free: 42");
        assert_eq!(world.run(&["tree", &root, "--json"]).json().as_array().unwrap().len(), 1);
        assert_eq!(world.events(&root, "detached").len(), 1);
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn neither_a_stop_nor_the_death_of_the_runner_ends_it() {
    for is_killed in [true, false] {
        let world = World::with_hooks();
        world.file("root.md", "spawn --detach a.md b.md\nhold callers\nreply done\n");
        world.file("a.md", "hold frees\nreply A\n");
        world.file("b.md", "hold frees\nreply B\n");
        let (callers, frees) = (world.gate("callers"), world.gate("frees"));
        let spawn = world.command(["spawn", "root.md"]).start();
        callers.reached_by(1);
        frees.reached_by(2);
        let (root, _) = chain(&world, "root.md");
        if is_killed {
            spawn.kill();
        } else {
            world.run(&["stop", &root, "--now"]).succeeds();
            spawn.ends();
        }
        (0..2).for_each(|_| frees.open_for_one());
        wait_until("the group is done", || chains(&world).iter().any(|(_, _, status)| status == "done"));
        let group = chains(&world).into_iter().find(|(_, id, _)| *id != root).unwrap().1;
        let outcome = world.run(&["resume", &group]);
        assert!(outcome.stdout.contains("2 agents: all done."), "{outcome}");
    }
}

#[test]
fn whatever_continues_all_chains_continues_one_whose_process_could_not_start() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --detach free.md\nhold callers\nreply done\n");
    world.file("free.md", "ask When?\nreply {result}\n");
    let callers = world.gate("callers");
    // Nobody is left to start it.
    let spawn = world.command(["spawn", "root.md", "--max-parallel", "1"]).start();
    callers.reached_by(1);
    spawn.kill();
    callers.open_for_one();
    wait_until("it asks", || {
        world.run(&["resume", "--all"]);
        !world.questions().is_empty()
    });
    world.answer("Jan 1st");
    world.run(&["resume", "--all"]).succeeds();
    world.run(&["resume", &chain(&world, "free.md").0]).prints("Jan 1st");
}

#[test]
fn it_has_no_more_rights_than_a_child_and_shares_the_number_of_agents() {
    let world = World::with_hooks();
    let wider = "spawn --detach free.md --permission-mode bypassPermissions\nreply {result}\n";
    world.file("wider.md", wider);
    world.file("free.md", "spawn --detach free.md\nreply {result}\n");
    world.file("many.md", "spawn --detach free.md\nreply {result}\n");
    let refused = world.run(&["spawn", "wider.md"]);
    assert!(refused.stdout.contains("--permission-mode bypassPermissions"), "{refused}");
    assert_eq!(chains(&world).len(), 1);
    world.run(&["spawn", "many.md", "--max-agents", "3", "--max-depth", "9"]).succeeds();
    wait_until("the last one is refused", || {
        let found = chains(&world);
        found.len() == 4 && found.iter().all(|(_, _, status)| status == "done")
    });
    let told = |id: &str| world.run(&["resume", id]).stdout;
    let limited = |(_, id, _): &(String, String, String)| told(id).contains("more than 3 agents");
    assert_eq!(chains(&world).iter().filter(|found| limited(found)).count(), 1);
}

#[test]
fn a_person_starts_a_chain_and_goes_on() {
    let world = World::with_hooks();
    world.file("ins.md", "hold gate\nask When?\nreply {result}\n");
    let gate = world.gate("gate");
    let outcome = world.run(&["spawn", "--detach", "ins.md", "--name", "nightly"]);
    outcome.succeeds();
    let (id, _) = chain(&world, "ins.md");
    assert_eq!(outcome.stdout, format!("{id}\n"));
    gate.reached_by(1);
    gate.open_for_one();
    wait_until("it asks", || !world.questions().is_empty());
    world.answer("Jan 1st");
    world.run(&["resume", "nightly"]).prints("Jan 1st");
    let json = world.run(&["spawn", "--detach", "ins.md", "--json"]).json();
    assert_eq!(json["status"], "started");
    gate.open_for_one();
    let wrong = world.run(&["spawn", "--background", "ins.md"]);
    wrong.exits_with(2);
    assert!(wrong.stderr.contains("use --detach"), "{wrong}");
    for other in [["--handoff"], ["--fork"], ["--stream"], ["--estimate"]] {
        world.run(&["spawn", "--detach", "ins.md", other[0]]).exits_with(2);
    }
}
