//! The runner, and now and then an agent, is killed at random instants, and the tree carried on, until a number of kills is reached.

use std::collections::{BTreeMap, HashSet};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::chance::Chance;
use crate::gate::wait_until;
use crate::history::{every_transcript_has_an_attempt, no_frame_ran_twice_at_a_time};
use crate::outcome::Outcome;
use crate::tree::{self, REPLY};
use crate::world::World;

/// How many runs are killed in all. A longer test names its own number in the variable.
const KILLS: u64 = 40;
const MORE_KILLS: &str = "AGENT_CLI_CRASH_KILLS";
/// How many kills a tree meets before it is left in peace.
const KILLS_OF_A_TREE: u64 = 12;

#[test]
fn trees_survive_kills_at_random_instants() {
    let wanted = std::env::var(MORE_KILLS).map_or(KILLS, |number| number.parse().expect("a number of kills"));
    let (mut seed, mut kills) = (0, 0);
    while kills < wanted {
        seed += 1;
        // A failing test shows what it has printed: with the seed it can be tried again.
        println!("seed {seed}, {kills} kills before");
        kills += Trial::new(seed).run();
    }
}

/// One tree, from its beginning to its end.
struct Trial {
    world: World,
    chance: Chance,
    kills: u64,
    /// The agents that the test has killed.
    killed: HashSet<i32>,
    /// The answers that it has given, by their questions.
    given: BTreeMap<String, usize>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let world = World::new();
        tree::write(&world);
        Self { world, chance: Chance::new(seed), kills: 0, killed: HashSet::new(), given: BTreeMap::new() }
    }

    /// Returns how many runs were killed.
    fn run(mut self) -> u64 {
        let replied = |outcome: &Outcome| outcome.stdout == format!("{REPLY}\n");
        wait_until("the root replies", || {
            let outcome = self.a_run();
            no_frame_ran_twice_at_a_time(&self.world, &self.killed);
            match outcome.code() {
                None => self.kills += 1,
                // A frame that was killed is an error of this run, and carried on by the next.
                Some(0 | 1) => tree::answer_one(&self.world, &mut self.given),
                Some(_) => panic!("{outcome}"),
            }
            replied(&outcome)
        });
        let root = tree::root(&self.world).expect("it has replied");
        self.world.run(&["resume", &root]).prints(REPLY);
        tree::each_was_answered_once(&self.given);
        wait_until("agents end", || self.world.log().starts.iter().all(|start| !start.is_alive()));
        every_transcript_has_an_attempt(&self.world, &root);
        self.kills
    }

    /// Carries the tree on, and kills the runner at some instant, if it still runs then; in one of three cases its
    /// agents too.
    fn a_run(&mut self) -> Outcome {
        let run = match tree::root(&self.world) {
            Some(root) => self.world.command(["resume", &root]).start(),
            None => self.world.command(["spawn", "root.md"]).start(),
        };
        if self.kills == KILLS_OF_A_TREE {
            return run.ends();
        }
        // The instant is what is tried out here: nothing is waited for.
        thread::sleep(self.chance.instant());
        run.signal(Signal::KILL);
        let outcome = run.ends();
        if self.chance.below(3) == 0 {
            self.kill_agents();
        }
        outcome
    }

    fn kill_agents(&mut self) {
        for start in self.world.log().starts.iter().filter(|start| start.is_alive()) {
            // It may end by itself at this very moment.
            if kill_process(Pid::from_raw(start.pid).expect("a process id"), Signal::KILL).is_ok() {
                self.killed.insert(start.pid);
            }
        }
    }
}
