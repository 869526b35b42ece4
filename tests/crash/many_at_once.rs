//! Many commands resume one tree at the same moment, and some of them are killed.

use std::collections::HashSet;

use crate::chance::Chance;
use crate::extent::sample_or_all;
use crate::gate::wait_until;
use crate::history::no_frame_ran_twice_at_a_time;
use crate::invariants;
use crate::invocation::Running;
use crate::person::Person;
use crate::world::World;

/// In a sample, and in a whole run.
const COMMANDS: [usize; 2] = [40, 200];
/// One of this many is killed.
const KILLED: u64 = 5;
/// The agents that can run then.
const AGENTS: usize = 2;

#[test]
fn one_runs_each_agent_and_the_others_say_so_without_waiting() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "spawn left.md &\nspawn right.md\nreply {results}\n");
    for name in ["left", "right"] {
        world.file(format!("{name}.md"), format!("ask Is it {name}?\nhold gate\nreply {name}: {{results}}\n"));
    }
    let root = world.spawn_paused("root.md");
    world.answer_to("Is it left?", "yes");
    world.answer_to("Is it right?", "no");
    let commands = sample_or_all(COMMANDS[0], COMMANDS[1]);
    let mut chance = Chance::new(7);
    let mut running: Vec<Running<'_>> = (0..commands).map(|_| world.command(["resume", &root]).start()).collect();
    let mut killed = HashSet::new();
    for runner in &running {
        if chance.below(KILLED) == 0 {
            runner.kill();
            killed.insert(runner.id());
        }
    }
    // The agents are blocked: a remaining command runs one.
    let mut ended = Vec::new();
    wait_until("all the others have ended", || {
        for mut command in std::mem::take(&mut running) {
            if command.is_alive() { running.push(command) } else { ended.push(command.ends()) }
        }
        // One that was killed a moment ago may still be exiting.
        running.len() <= AGENTS && running.iter().all(|runner| !killed.contains(&runner.id()))
    });
    for outcome in &ended {
        let is_ongoing = outcome.code() == Some(0) && outcome.stdout == "SGN_PEND_ONGOING\n";
        assert!(outcome.code().is_none() || is_ongoing, "{outcome}");
    }
    for _ in 0..AGENTS {
        gate.open_for_one();
    }
    for outcome in running.into_iter().map(Running::ends) {
        outcome.succeeds();
    }
    let mut person = Person::new(world, None);
    person.agents_have_ended();
    let reply = person.runs(&["resume", &root]);
    reply.prints("left: yes; right: no");
    assert_eq!(person.world.starts(), 2 * (1 + AGENTS), "each agent was started once and woken once");
    no_frame_ran_twice_at_a_time(&person.world);
    invariants::the_check_agrees(&person.world);
}
