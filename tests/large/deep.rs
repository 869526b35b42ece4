//! A chain much deeper than usual: a thousand agents in a whole run.

use std::fs;
use std::time::Instant;

use crate::PATIENCE;
use crate::extent::size;
use crate::world::World;

/// How deep the chain is, in a sample, in the rest and in a whole run. A longer test names its own number in the variable.
const DEPTH: [usize; 3] = [100, 400, 1000];
const OTHER_DEPTH: &str = "AGENT_CLI_LARGE_DEPTH";

/// How much memory, in kilobytes, the runner may use beyond its initial size.
const MORE_MEMORY: u64 = 16 * 1024;

/// Notes the memory of the runner: the parent of the `claude` whose tool this is.
const NOTE_MEMORY: &str = "run ps -o rss= -p $(ps -o ppid= -p $PPID) >> memory";

fn depth() -> usize {
    let other = std::env::var(OTHER_DEPTH);
    other.map_or_else(|_| size(DEPTH), |depth| depth.parse().expect("a depth"))
}

/// What the runner used at these moments, in kilobytes.
fn noted(world: &World) -> Vec<u64> {
    let noted = fs::read_to_string(world.project().join("memory")).expect("agents noted it");
    noted.lines().map(|line| line.trim().parse().expect("kilobytes")).collect()
}

#[test]
fn handoffs_collapse_when_the_last_agent_has_replied() {
    let depth = depth();
    let world = World::with_hooks();
    for level in 1..depth {
        let note = if level == 2 { NOTE_MEMORY } else { "" };
        world.file(format!("{level}.md"), format!("{note}\nspawn --handoff {}.md\nreply woken\n", level + 1));
    }
    world.file(format!("{depth}.md"), format!("{NOTE_MEMORY}\nask When?\n{NOTE_MEMORY}\nreply {{results}}\n"));

    let limit = depth.to_string();
    let began = Instant::now();
    let spawn = world.command(["spawn", "1.md", "--max-depth", &limit]).start();
    let id = spawn.ends_within(PATIENCE).started();
    let paused = began.elapsed();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer("Jan 1st");
    let began = Instant::now();
    world.command(["resume", &id]).start().ends_within(PATIENCE).prints("Jan 1st");
    println!("{depth} handoffs: {paused:?} to the pause, {:?} from the answer to the end", began.elapsed());
    assert_eq!((world.starts(), world.log().most_alive()), (depth + 1, 1));
    let agents = world.run(&["tree", &id, "--json"]).json();
    let agents = agents.as_array().expect("a list");
    assert!(agents.len() == depth && agents.iter().all(|agent| agent["status"] == "done"));
    assert_eq!(world.run(&["show", &id, "--json"]).json()["reply"], "Jan 1st");

    let memory = noted(&world);
    println!("memory of the runner at the top, at the end, and after the answer, in kilobytes: {memory:?}");
    assert!(memory.len() == 3 && memory.iter().max() < Some(&(memory[0] + MORE_MEMORY)), "{memory:?}");
}

#[test]
fn a_question_at_the_end_of_a_chain_is_answered_with_one_process_at_a_time() {
    let depth = depth();
    let world = World::with_hooks();
    for level in 1..depth {
        let note = if level == 2 { NOTE_MEMORY } else { "" };
        world.file(format!("{level}.md"), format!("{note}\nspawn {}.md\n{note}\nreply {{results}}\n", level + 1));
    }
    world.file(format!("{depth}.md"), format!("{NOTE_MEMORY}\nask When?\nreply {{result}}\n"));

    let limit = depth.to_string();
    let spawn = world.command(["spawn", "1.md", "--max-depth", &limit]).start();
    let id = spawn.ends_within(PATIENCE).started();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), depth);
    world.answer("Jan 1st");
    world.command(["resume", &id]).start().ends_within(PATIENCE).prints("Jan 1st");
    assert_eq!((world.starts(), world.log().most_alive()), (2 * depth, 1));

    let memory = noted(&world);
    println!("memory of the runner at the top, at the end, and at the top again, in kilobytes: {memory:?}");
    let [top, end, again] = memory[..] else { panic!("three agents noted it: {memory:?}") };
    assert!(end.max(again) < top + MORE_MEMORY, "{memory:?}");
}
