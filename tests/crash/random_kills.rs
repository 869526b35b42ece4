//! Whatever runs is killed at random instants: runners, of which there may be several, agents, their tools and hooks. The tree is
//! resumed until there is a reply, with more trees until enough kills have happened.

use std::sync::Mutex;
use std::{mem, thread};

use agent_cli::records::{Store, chains};

use crate::chance::Chance;
use crate::extent::sample_or_all;
use crate::gate::wait_until;
use crate::history::no_frame_ran_twice_at_a_time;
use crate::invariants::{self, Recorded};
use crate::invocation::Running;
use crate::marked::{Kind, processes_of, seen};
use crate::outcome::Outcome;
use crate::person::{root_of, store_of};
use crate::scenarios::LINGER;
use crate::tree::{self, Tree};
use crate::world::World;

/// How many processes are killed in total, in a sample and in a whole run. A longer test sets its own number in the variable.
const KILLS: [usize; 2] = [12, 60];
const MORE_KILLS: &str = "AGENT_CLI_CRASH_KILLS";
/// The first seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How many trees are driven concurrently.
const THREADS: usize = 3;
/// How many kills a tree gets before it is left alone, in a sample and in a whole run.
const KILLS_OF_A_TREE: [usize; 2] = [6, 24];
/// The maximum number of rounds of a tree.
const ROUNDS: usize = 300;
/// The maximum number of runners that try to drive a tree at the same time.
const RUNNERS: u64 = 3;

#[test]
fn trees_survive_kills_at_random_instants() {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let wanted = number(MORE_KILLS).unwrap_or_else(|| sample_or_all(KILLS[0], KILLS[1]));
    let seeds = Mutex::new(number(SEED).unwrap_or(1)..);
    let killed = Mutex::new(Killed::default());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while killed.lock().expect("no panic").all() < wanted {
                    let seed = seeds.lock().expect("no panic").next().expect("there are more");
                    // A failing test prints its output: with the seed it can be repeated.
                    println!("seed {seed}, {} kills before", killed.lock().expect("no panic").all());
                    let here = Trial::new(seed).run();
                    killed.lock().expect("no panic").add(&here);
                }
            });
        }
    });
    println!("{:?}", killed.into_inner().expect("no panic"));
}

fn kills_of_a_tree() -> usize {
    sample_or_all(KILLS_OF_A_TREE[0], KILLS_OF_A_TREE[1])
}

/// How many were killed, by what they were.
#[derive(Clone, Debug, Default)]
struct Killed {
    trees: usize,
    runners: usize,
    agents: usize,
    tools: usize,
    starts: usize,
}

impl Killed {
    fn all(&self) -> usize {
        self.runners + self.agents + self.tools
    }

    fn add(&mut self, other: &Self) {
        self.trees += other.trees;
        self.runners += other.runners;
        self.agents += other.agents;
        self.tools += other.tools;
        self.starts += other.starts;
    }

    fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Runner => &mut self.runners,
            Kind::Agent => &mut self.agents,
            Kind::Tool => &mut self.tools,
        } += 1;
    }
}

/// One tree, from its beginning to its end.
struct Trial {
    world: World,
    chance: Chance,
    killed: Killed,
    recorded: Recorded,
    tree: Tree,
    suspends: bool,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{:?}\n{}", self.killed, self.story());
        }
    }
}

impl Trial {
    fn new(seed: usize) -> Self {
        // Half of the trees pause inside of tool calls, half with signals.
        let suspends = !seed.is_multiple_of(2);
        let lingers = if seed.is_multiple_of(3) { "0s" } else { "20s" };
        let world = if suspends { World::with_hooks().with(LINGER, lingers) } else { World::new() };
        let mut chance = Chance::new(seed as u64);
        let tree = [Tree::Children, Tree::Groups][chance.below(2) as usize];
        tree.write(&world);
        // Some killed agents leave a transcript without its last lines, or none.
        let held = ["0", "1", "3", "1000"][chance.below(4) as usize];
        let world = world.with("STAND_IN_HOLDS_LINES", held);
        let killed = Killed { trees: 1, ..Killed::default() };
        Self { world, chance, killed, recorded: Recorded::new(), tree, suspends }
    }

    fn run(mut self) -> Killed {
        let mut rounds = 0;
        while !self.a_round() {
            no_frame_ran_twice_at_a_time(&self.world);
            rounds += 1;
            assert!(rounds < ROUNDS, "there is no reply");
        }
        no_frame_ran_twice_at_a_time(&self.world);
        let store = store_of(&self.world).expect("it has replied");
        let root = root_of(&self.world).expect("it has replied");
        self.world.run(&["resume", &root]).succeeds();
        wait_until("every process ends", || processes_of(&self.world.state()).is_empty());
        self.killed.starts = self.world.starts();
        invariants::every_answer_was_delivered_once(&self.world, &store);
        invariants::every_transcript_is_known(&self.world, &store);
        invariants::the_check_agrees(&self.world);
        // Only an agent whose call was killed may have made a request again, with everything that follows. An agent that was
        // killed itself is started once more.
        let times = 1 + self.killed.tools;
        let questions = store.questions(None, false).expect("a database").len();
        assert!(questions <= times * tree::QUESTIONS, "{questions} questions");
        let starts = times * self.tree.starts(self.suspends) + self.killed.agents;
        assert!(self.killed.starts <= starts);
        mem::take(&mut self.killed)
    }

    /// Resumes the tree with several runners at once, and kills some of what runs. Returns whether the root has replied.
    fn a_round(&mut self) -> bool {
        let Self { world, chance, killed, .. } = self;
        let root = chains(&Store::open(&world.state()).expect("a database")).pop();
        let runners: Vec<Running<'_>> = match root {
            Some(root) => {
                (0..=chance.below(RUNNERS)).map(|_| world.command(["resume", &root.id.to_string()]).start()).collect()
            }
            None => vec![world.command(["spawn", "root.md"]).start()],
        };
        while killed.all() < kills_of_a_tree() {
            // The random instant is what is being tested, so this waits for nothing.
            thread::sleep(chance.instant());
            for found in processes_of(&world.state()) {
                let Some(process) = seen(found.pid, &world.state()) else { continue };
                // There are many runners, and tools end quickly.
                let one_in = match process.kind {
                    Kind::Runner => 6,
                    Kind::Agent => 3,
                    Kind::Tool => 2,
                };
                if chance.below(one_in) == 0 {
                    process.kill();
                    killed.count(process.kind);
                }
            }
            if chance.below(2) == 0 {
                break;
            }
        }
        let outcomes: Vec<_> = runners.into_iter().map(Running::ends).collect();
        for outcome in &outcomes {
            // A killed claude is an error of this run, and the next one continues.
            assert!(matches!(outcome.code(), None | Some(0 | 1 | 4)), "{outcome}");
            assert!(!outcome.stderr.contains("locked") && !outcome.stderr.contains("panicked"), "{outcome}");
        }
        let store = store_of(&self.world).expect("a round opens it");
        let now = invariants::recorded(&store);
        invariants::nothing_recorded_changed(&self.recorded, &now);
        self.recorded = now;
        self.answer(&store);
        let replied = |outcome: &&Outcome| !outcome.stdout.is_empty() && !outcome.stdout.starts_with("SGN_");
        let reply = outcomes.iter().find(replied);
        reply.is_some_and(|outcome| {
            let reply = self.tree.said(&outcome.stdout, self.killed.tools > 0);
            assert_eq!(reply, self.tree.reply());
            true
        })
    }

    /// Answers the first open question, and sometimes kills that command, too.
    fn answer(&mut self, store: &Store) {
        let Some(question) = store.questions(None, true).expect("a database").into_iter().next() else { return };
        let answer = tree::answer_to(&question.question);
        let answering = self.world.command(["answer", &question.id.to_string(), answer]).start();
        let peaceful = self.killed.all() >= kills_of_a_tree() || self.chance.below(4) > 0;
        if !peaceful {
            thread::sleep(self.chance.instant() / 20);
            answering.kill();
            self.killed.count(Kind::Runner);
        }
        let outcome = answering.ends();
        assert!(matches!(outcome.code(), None | Some(0)), "{outcome}");
    }

    /// All records of its chain.
    fn story(&self) -> String {
        let (store, root) = (store_of(&self.world), root_of(&self.world));
        store.zip(root).map_or_else(String::new, |(store, root)| invariants::story(&store, &root))
    }
}
