//! The person who resumes a chain, command by command, and what happens to one of the commands.

use std::fs;
use std::path::PathBuf;

use agent_cli::records::{Store, chains};

use crate::gate::wait_until;
use crate::invariants::{self, Recorded};
use crate::invocation::{Invocation, Running};
use crate::marked::processes_of;
use crate::outcome::Outcome;
use crate::world::World;

/// What happens to one of the commands.
#[derive(Clone, Debug)]
pub(crate) struct Accident {
    /// The number of the command, from 0.
    pub(crate) command: usize,
    /// Where.
    pub(crate) point: String,
    /// How many passages before it are harmless, and this one.
    pub(crate) number: usize,
}

/// A point that a process has passed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Passage {
    /// The point.
    pub(crate) point: String,
    /// The command of the program that passed it.
    pub(crate) command: String,
    /// Its process.
    pub(crate) process: u32,
}

/// The state directory as agent-cli keeps it; `None` while there is no database.
pub(crate) fn store_of(world: &World) -> Option<Store> {
    let state = world.state();
    state.join("agent-cli.db").exists().then(|| Store::open(&state).expect("a database"))
}

/// The chain that the person has started, if there is one.
pub(crate) fn root_of(world: &World) -> Option<String> {
    let roots = chains(&store_of(world)?);
    assert!(roots.len() <= 1 || detaches(world), "one chain was started");
    roots.last().map(|root| root.id.to_string())
}

/// The chains that its agents have detached.
pub(crate) fn detached(world: &World) -> Vec<String> {
    let roots = store_of(world).map(|store| chains(&store)).unwrap_or_default();
    roots.iter().rev().skip(1).map(|root| root.id.to_string()).collect()
}

fn detaches(world: &World) -> bool {
    fs::read_to_string(world.project().join("root.md")).is_ok_and(|text| text.contains("--detach"))
}

/// A person at a shell.
pub(crate) struct Person {
    /// Where everything happens.
    pub(crate) world: World,
    /// Whether background work of its agents may be endless.
    live_on: bool,
    accident: Option<Accident>,
    /// How many commands were run.
    pub(crate) commands: usize,
    /// How many of them ended with an error, apart from those with an accident.
    pub(crate) errors: usize,
    /// The process of the command with the accident.
    pub(crate) victim: Option<u32>,
    end: Option<Outcome>,
    /// Whether the person itself kills the command.
    kills: bool,
    recorded: Recorded,
}

impl Person {
    /// A person who will have an accident, or who has all points logged.
    pub(crate) fn new(world: World, accident: Option<Accident>) -> Self {
        let instructions = fs::read_to_string(world.project().join("root.md")).unwrap_or_default();
        Self {
            world,
            live_on: instructions.contains("beside "),
            accident,
            commands: 0,
            errors: 0,
            victim: None,
            end: None,
            kills: false,
            recorded: Recorded::new(),
        }
    }

    /// Runs a command, and waits until the agents that it leaves behind have ended their turns.
    pub(crate) fn runs(&mut self, args: &[&str]) -> Outcome {
        let command = self.world.command(args);
        let command = self.prepared(command);
        let running = command.start();
        let (pid, number) = (running.id(), self.commands);
        let outcome = running.ends();
        self.has_run(number, pid, &outcome);
        self.agents_have_ended();
        outcome
    }

    /// Spawns the root, or resumes it if there is one.
    pub(crate) fn carries_on(&mut self) -> Outcome {
        match self.root() {
            Some(root) => self.runs(&["resume", &root]),
            None => self.runs(&["spawn", "root.md"]),
        }
    }

    /// Answers all open questions.
    pub(crate) fn answers(&mut self, text: &str) {
        let open = self.store().map(|store| store.questions(None, true).expect("a database"));
        for question in open.into_iter().flatten() {
            self.runs(&["answer", &question.id.to_string(), text]);
        }
    }

    /// Spawns the root in the background, and does something to it there.
    pub(crate) fn spawns_and(&mut self, act: impl FnOnce(&World, &mut Running<'_>)) -> Outcome {
        let command = self.world.command(["spawn", "root.md"]);
        let mut running = self.prepared(command).start();
        let (pid, number) = (running.id(), self.commands);
        act(&self.world, &mut running);
        let outcome = running.ends();
        self.kills = true;
        self.has_run(number, pid, &outcome);
        self.kills = false;
        outcome
    }

    /// Waits until no agent lives.
    pub(crate) fn agents_have_ended(&self) {
        wait_until("the agents end their turns", || {
            let ended = self.world.log().starts.iter().all(|start| !start.is_alive());
            if !ended && self.live_on {
                self.ends_what_lives_on();
            }
            ended
        });
        // They hold their leases until they have ended completely.
        wait_until("their processes end", || processes_of(&self.world.state()).is_empty());
    }

    /// Without its runner, an agent with background work stays alive until another command ends it, which is not reported.
    fn ends_what_lives_on(&self) {
        let Some(root) = self.root() else { return };
        self.world.run(&["resume", &root]);
    }

    pub(crate) fn root(&self) -> Option<String> {
        root_of(&self.world)
    }

    pub(crate) fn store(&self) -> Option<Store> {
        store_of(&self.world)
    }

    /// The points that were passed while a command ran, in order.
    pub(crate) fn passages(&self, command: usize) -> Vec<Passage> {
        let text = fs::read_to_string(self.log(command)).unwrap_or_default();
        let passage = |line: &str| {
            let mut words = line.split(' ');
            let mut next = || words.next().expect("three words").to_owned();
            let (point, command, process) = (next(), next(), next());
            Passage { point, command, process: process.parse().expect("a number") }
        };
        text.lines().map(passage).collect()
    }

    /// The passage at which it happened.
    pub(crate) fn fatal_passage(&self) -> Option<Passage> {
        let accident = self.accident.as_ref()?;
        let passages = self.passages(accident.command).into_iter();
        passages.filter(|passage| passage.point == accident.point).nth(accident.number - 1)
    }

    /// Fails the test unless the command was killed at its point, or reported the full disk with a hint.
    pub(crate) fn victim_ended_as_it_should(&self) {
        let (Some(accident), Some(end)) = (&self.accident, &self.end) else { return };
        if accident.point == "stop.full" && matches!(end.code(), Some(0 | 130)) {
            // Without the file that stops an agent after its tool, it is interrupted immediately, or after its next request if only
            // the budget is spent.
            assert!(end.stderr.contains("no storage space"), "{end}");
        } else if ["claim_notification.full", "end_notification.full"].contains(&accident.point.as_str()) {
            // The chain has nothing to do with it.
            assert!(
                end.stderr.contains("notifications are not sent for now") && end.stderr.contains("is full"),
                "{end}"
            );
        } else if accident.point.ends_with(".full") {
            end.exits_with(1);
            let said =
                ["is full", "no storage space", "there is no room"].iter().any(|words| end.stderr.contains(words));
            assert!(said && end.stderr.contains("hint: free some space"), "{end}");
        } else {
            assert_eq!(end.code(), None, "{end}");
        }
    }

    fn prepared<'a>(&self, command: Invocation<'a>) -> Invocation<'a> {
        let log = self.log(self.commands);
        let log = log.to_str().expect("UTF-8");
        match &self.accident {
            None => command.with("AGENT_CLI_CRASH_LOG", log),
            Some(accident) if accident.command == self.commands => command
                .with("AGENT_CLI_CRASH_LOG", log)
                .with("AGENT_CLI_CRASH", &format!("{}:{}", accident.point, accident.number)),
            Some(_) => command,
        }
    }

    fn has_run(&mut self, number: usize, pid: u32, outcome: &Outcome) {
        if self.accident.as_ref().is_some_and(|accident| accident.command == number) {
            (self.victim, self.end) = (Some(pid), Some(outcome.clone()));
        } else if outcome.code() != Some(0) {
            assert!(matches!(outcome.code(), Some(1 | 4 | 130)) || self.kills, "{outcome}");
            self.errors += 1;
        }
        self.commands += 1;
        if let Some(store) = self.store() {
            let now = invariants::recorded(&store);
            invariants::nothing_recorded_changed(&self.recorded, &now);
            self.recorded = now;
        }
    }

    fn log(&self, command: usize) -> PathBuf {
        self.world.state().with_file_name(format!("points.{command}"))
    }
}
