//! A tree three levels below its root, in which each agent has three children, or five in a whole run.

use std::collections::HashMap;

use crate::PATIENCE;
use crate::chance::Chance;
use crate::extent::sample_or_all;
use crate::world::World;

const WIDTH: [usize; 2] = [3, 5];
const DEPTH: usize = 3;
/// How many agents may live at a time.
const PARALLEL: &str = "3";
/// The order of the answers follows from this.
const SEED: u64 = 1;

/// Writes the instructions of the agent at a place and of all below it. One leaf in three asks; the others reply their
/// place. Returns what the agent will reply when each question was answered with its own text and a star.
fn write(world: &World, width: usize, place: &str, depth: usize, leaves: &mut usize) -> String {
    if depth == DEPTH {
        *leaves += 1;
        let asks = leaves.is_multiple_of(3);
        world.file(
            format!("{place}.md"),
            if asks { format!("ask {place}\nreply {{result}}\n") } else { format!("reply {place}\n") },
        );
        return if asks { format!("{place}*") } else { place.to_owned() };
    }
    let children: Vec<String> = (1..=width).map(|child| format!("{place}{child}")).collect();
    let calls: Vec<String> = children.iter().map(|child| format!("spawn {child}.md")).collect();
    world.file(format!("{place}.md"), format!("{}\nreply [{{results}}]\n", calls.join(" ++ ")));
    let replies: Vec<String> = children.iter().map(|child| write(world, width, child, depth + 1, leaves)).collect();
    format!("[{}]", replies.join("; "))
}

#[test]
fn every_leaf_is_answered_and_every_reply_is_in_its_place() {
    let world = World::with_hooks();
    let mut leaves = 0;
    let width = sample_or_all(WIDTH[0], WIDTH[1]);
    let (parents, bottom) = (1 + width + width.pow(2), width.pow(3));
    let reply = write(&world, width, "t", 0, &mut leaves);
    let spawn = world.command(["spawn", "t.md", "--max-parallel", PARALLEL]).start();
    let id = spawn.ends_within(PATIENCE).started();
    let open: Vec<(String, String)> = world.questions();
    assert_eq!((leaves, open.len(), world.starts()), (bottom, bottom / 3, parents + bottom));

    println!("seed {SEED}");
    let mut chance = Chance::new(SEED);
    let mut left: HashMap<usize, _> = open.into_iter().enumerate().collect();
    while !left.is_empty() {
        // Some are answered at a time, others later.
        for _ in 0..=chance.below(9) {
            let mut keys: Vec<usize> = left.keys().copied().collect();
            keys.sort_unstable();
            let Some(key) = keys.get(chance.below(keys.len().max(1) as u64) as usize) else { break };
            let (question, id) = left.remove(key).expect("it is a key");
            world.run(&["answer", &id, &format!("{question}*")]).succeeds();
        }
        let resume = world.command(["resume", &id, "--max-parallel", PARALLEL]).start();
        let outcome = resume.ends_within(PATIENCE);
        let expected = if left.is_empty() { format!("{reply}\n") } else { "SGN_PEND_ONGOING\n".to_owned() };
        assert_eq!(outcome.succeeds().stdout, expected);
    }
    let log = world.log();
    assert!(log.most_alive() <= 3, "{}", log.most_alive());
    // The root, its children and their children were woken once, and so was each leaf that asked.
    assert_eq!(log.starts.len(), (parents + bottom) + parents + bottom / 3);
}
