//! Chains that are not resumed by their id: `watch` and `resume --all` alone drive them, several at a time, and are killed at
//! random instants together with agents and tools.

use std::fs;
use std::thread;

use agent_cli::records::{FrameState, Node, Store, chains};
use rustix::process::Signal;

use crate::chance::Chance;
use crate::extent::sample_or_all;
use crate::gate::wait_until;
use crate::history::{TOOL, no_frame_ran_twice_at_a_time};
use crate::invariants::{self, Recorded};
use crate::invocation::Running;
use crate::marked::{Kind, seen, victims};
use crate::person::store_of;
use crate::scenarios::LINGER;
use crate::world::World;

/// How many processes are killed in total, in a sample and in a whole run. A longer test sets its own number in the variable.
const KILLS: [usize; 2] = [12, 60];
const MORE_KILLS: &str = "AGENT_CLI_CRASH_KILLS";
/// The first seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How many rounds of a world have kills.
const ROUNDS_WITH_KILLS: u64 = 6;
/// The maximum number of rounds without kills that it takes to finish all chains.
const LAST_ROUNDS: usize = 60;
/// The chains of a world.
const CHAINS: u64 = 3;
/// The folder in which agents post questions.
const QUESTIONS: &str = "q";
/// The drivers that run at the same time.
const DRIVERS: u64 = 3;

#[test]
fn no_chain_is_forgotten_by_those_who_continue_all() {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let wanted = number(MORE_KILLS).unwrap_or_else(|| sample_or_all(KILLS[0], KILLS[1]));
    let mut killed = 0;
    for seed in number(SEED).unwrap_or(1).. {
        // A failing test prints its output: with the seed it can be repeated.
        println!("seed {seed}, {killed} kills before");
        killed += Trial::new(seed).run();
        if killed >= wanted {
            break;
        }
    }
}

/// Chains that wait in many ways, from their beginning to their end.
struct Trial {
    world: World,
    chance: Chance,
    roots: Vec<String>,
    /// The files that agents wait for.
    awaited: Vec<String>,
    killed: usize,
    recorded: Recorded,
}

impl Trial {
    fn new(seed: usize) -> Self {
        // Half of the agents pause inside of tool calls, half with signals.
        let lingers = if seed.is_multiple_of(3) { "0s" } else { "20s" };
        let world = if seed.is_multiple_of(2) { World::new() } else { World::with_hooks().with(LINGER, lingers) };
        fs::create_dir_all(world.project().join(QUESTIONS).join("pending")).expect("it can be made");
        let chance = Chance::new(seed as u64 ^ 0x5eed);
        Self { world, chance, roots: Vec::new(), awaited: Vec::new(), killed: 0, recorded: Recorded::new() }
    }

    fn run(mut self) -> usize {
        for number in 0..=self.chance.below(CHAINS) {
            let name = self.agent(&format!("c{number}"), 2);
            self.roots.push(name);
        }
        // The process that starts a chain may be killed, too: the drivers start what it had recorded.
        for root in self.roots.clone() {
            let spawn = self.world.command(["spawn", &root, "--questions-dir", QUESTIONS]).start();
            self.killed += kill_for_a_while(&self.world, &mut self.chance);
            let outcome = spawn.ends();
            assert!(matches!(outcome.code(), None | Some(0 | 1 | 4)), "{outcome}");
        }
        // All of them may have been killed before they had recorded anything.
        if store_of(&self.world).is_none() {
            return self.killed;
        }
        for _ in 0..=self.chance.below(ROUNDS_WITH_KILLS) {
            self.a_round();
        }
        self.finish();
        self.killed
    }

    /// Writes the instructions of an agent and of those below it, and returns its file.
    fn agent(&mut self, name: &str, depth: u64) -> String {
        let file = format!("{name}.md");
        let mut steps = Vec::new();
        if depth > 0 {
            let children: Vec<String> =
                (0..=self.chance.below(2)).map(|number| self.agent(&format!("{name}-{number}"), depth - 1)).collect();
            match self.chance.below(6) {
                4 => steps.extend(children.iter().map(|child| format!("spawn --background {child}"))),
                // The last step if nothing fails.
                3 => steps.push(format!("spawn --handoff {}", children.join(" "))),
                5 => steps.push(format!("spawn --fork {}", children.join(" "))),
                0 => steps.push(format!("spawn {}", children.join(" "))),
                1 => steps.extend(children.iter().map(|child| format!("spawn {child}"))),
                _ => steps.extend(children.iter().map(|child| format!("spawn {child} &"))),
            }
        }
        steps.push(TOOL.to_owned());
        if depth == 0 || self.chance.below(2) == 0 {
            steps.push(self.pause(name));
        }
        steps.push(self.trouble());
        steps.push(format!("reply {name}"));
        self.world.file(&file, steps.join("\n") + "\n");
        file
    }

    /// A step in which an agent waits.
    fn pause(&mut self, name: &str) -> String {
        let file = format!("{name}.there");
        match self.chance.below(8) {
            0 => format!("ask {name}?"),
            1 => format!("run agent-cli ask '{name}?' --default no --option no --option yes --expires 1s"),
            2 => "wait --for 1s".to_owned(),
            3 => {
                self.awaited.push(file.clone());
                format!("wait --file {file}")
            }
            4 => {
                self.awaited.push(file.clone());
                format!("wait --command 'test -e {file}'")
            }
            5 => {
                let posted = format!("{QUESTIONS}/pending/{name}.json");
                format!("run echo '{{\"question\": \"{name}?\"}}' > {posted}\nend QUESTION_POSTED:{name}")
            }
            6 => format!("call ScheduleWakeup {{\"delaySeconds\": 60, \"prompt\": \"{name}\"}}\nend I look later."),
            _ => {
                self.awaited.push(file.clone());
                format!("wait --file {file} --command 'test -e {file}' --all")
            }
        }
    }

    /// An event that an agent meets once, and that only time ends.
    fn trouble(&mut self) -> String {
        match self.chance.below(6) {
            0 => "once api 529 Overloaded".to_owned(),
            1 => format!("once limit {}", jiff::Timestamp::now().as_second() + 1),
            _ => TOOL.to_owned(),
        }
    }

    fn a_round(&mut self) {
        let number = self.chance.below(DRIVERS);
        let drivers: Vec<bool> = (0..=number).map(|_| self.chance.below(2) == 0).collect();
        let world = &self.world;
        let start = |watches: bool| {
            let words: &[&str] = if watches { &["watch"] } else { &["resume", "--all"] };
            (world.command(words.iter().copied()).start(), watches)
        };
        let running: Vec<(Running<'_>, bool)> = drivers.into_iter().map(start).collect();
        let (chance, mut killed) = (&mut self.chance, 0);
        for _ in 0..4 {
            killed += kill_for_a_while(world, chance);
            act(world, chance, &self.awaited);
        }
        for (driver, watches) in running {
            if watches {
                driver.signal(Signal::TERM);
            }
            let outcome = driver.ends();
            assert!(matches!(outcome.code(), None | Some(0 | 1 | 4 | 130)), "{outcome}");
            assert!(!outcome.stderr.contains("locked") && !outcome.stderr.contains("panicked"), "{outcome}");
        }
        self.killed += killed;
        no_frame_ran_twice_at_a_time(&self.world);
        let now = invariants::recorded(&self.store());
        invariants::nothing_recorded_changed(&self.recorded, &now);
        self.recorded = now;
    }

    /// Does what only a person can do, and leaves the rest to `resume --all`.
    fn finish(&mut self) {
        wait_until("every agent ends", || victims(&self.world.state()).is_empty());
        for file in &self.awaited {
            self.world.file(file, "");
        }
        for round in 0.. {
            let unfinished = self.unfinished();
            if unfinished.is_empty() {
                break;
            }
            assert!(round < LAST_ROUNDS, "forgotten: {unfinished:?}\n{}", self.story());
            for (_, question) in self.world.questions() {
                // It may have expired since.
                self.world.run(&["answer", &question, "yes"]);
            }
            for paused in self.paused() {
                self.world.run(&["resume", &paused]);
            }
            self.world.time_passes(3600);
            let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.scheduled.at', '2026-01-01T00:00:00Z',
                         '$.wait.time', '2026-01-01T00:00:00Z')
                       WHERE kind = 'wait' AND status = 'open'";
            self.world.database().execute(sql, []).expect("it can be written");
            // A frame is left to its creator for a moment.
            let sql = "UPDATE frames SET created = created - 60000, since = since - 60000 WHERE status = 'ready'";
            self.world.database().execute(sql, []).expect("it can be written");
            let outcome = self.world.run(&["resume", "--all"]);
            assert!(matches!(outcome.code(), Some(0 | 1 | 4)), "{outcome}");
        }
        no_frame_ran_twice_at_a_time(&self.world);
        wait_until("every process ends", || victims(&self.world.state()).is_empty());
        invariants::the_check_agrees(&self.world);
    }

    /// The chains that are not finished.
    fn unfinished(&self) -> Vec<String> {
        let store = self.store();
        let is_finished = |state: &FrameState| matches!(state, FrameState::Done | FrameState::Failed { .. });
        let unfinished = chains(&store).into_iter().filter(|root| !is_finished(&nodes(&store, root.id)[0].state));
        unfinished.map(|root| root.id.to_string()).collect()
    }

    fn paused(&self) -> Vec<String> {
        let store = self.store();
        let all = chains(&store).into_iter().flat_map(|root| nodes(&store, root.id));
        all.filter(|node| matches!(node.state, FrameState::Paused { .. } | FrameState::Cancelled))
            .map(|node| node.id.to_string())
            .collect()
    }

    fn store(&self) -> Store {
        store_of(&self.world).expect("there are chains")
    }

    /// All records, to find out what went wrong.
    fn story(&self) -> String {
        let store = self.store();
        chains(&store).iter().map(|root| invariants::story(&store, &root.id.to_string())).collect()
    }
}

/// The agents of a chain, parents first.
fn nodes(store: &Store, root: agent_cli::records::FrameId) -> Vec<Node> {
    let tree = store.tree(root).expect("a database");
    let mut nodes: Vec<Node> = tree.leaves_up().into_iter().cloned().collect();
    nodes.reverse();
    nodes
}

/// Kills some of what runs, and returns how many.
fn kill_for_a_while(world: &World, chance: &mut Chance) -> usize {
    let mut killed = 0;
    for _ in 0..chance.below(4) {
        // The random instant is what is being tested, so this waits for nothing.
        thread::sleep(chance.instant());
        for found in victims(&world.state()) {
            let Some(process) = seen(found.pid, &world.state()) else { continue };
            let one_in = if process.kind == Kind::Runner { 6 } else { 4 };
            if chance.below(one_in) == 0 {
                process.kill();
                killed += 1;
            }
        }
    }
    killed
}

/// Something that a person does.
fn act(world: &World, chance: &mut Chance, awaited: &[String]) {
    let Some(store) = store_of(world) else { return };
    let all: Vec<Node> = chains(&store).iter().flat_map(|root| nodes(&store, root.id)).collect();
    let Some(any) = all.get(chance.below(all.len().max(1) as u64) as usize) else { return };
    let id = any.id.to_string();
    let outcome = match chance.below(6) {
        0 | 1 => match world.questions().first() {
            Some((_, question)) => world.run(&["answer", question, "yes"]),
            None => return,
        },
        2 => {
            answer_in_a_file(world);
            return;
        }
        3 => {
            let missing = awaited.iter().find(|file| !fs::exists(world.project().join(file)).expect("readable"));
            missing.into_iter().for_each(|file| drop(world.file(file, "")));
            return;
        }
        4 => world.run(&["stop", &id, "--no-wait", "--reason", "a person stops it"]),
        _ => world.run(&["pause", &id, "--no-wait"]),
    };
    // Its subject may have ended since.
    assert!(matches!(outcome.code(), Some(0..=3)) && !outcome.stderr.contains("panicked"), "{outcome}");
}

/// Answers a posted question as a dashboard would.
fn answer_in_a_file(world: &World) {
    let questions = world.project().join(QUESTIONS);
    let posted = fs::read_dir(questions.join("pending")).expect("it was made").next();
    let Some(name) = posted.map(|entry| entry.expect("readable").file_name()) else { return };
    fs::create_dir_all(questions.join("answered")).expect("it can be made");
    fs::write(questions.join("answered").join(name), r#"{"answer": "yes"}"#).expect("it can be written");
}
