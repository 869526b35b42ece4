//! Every point of every command, passed for the first time and for the second: the process that passes it dies, or finds the disk
//! full, and the person continues. A sample passes every point once, and the rest five times more.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use agent_cli::failpoint::{STEPS, Step, name};

use crate::extent::{Extent, extent};
use crate::invariants::{self, Allowance, Measure};
use crate::person::{Accident, Person};
use crate::scenarios::{SCENARIOS, Scenario};

/// Chooses cases by a part of their names, to try one again.
const ONLY: &str = "AGENT_CLI_CRASH_ONLY";
/// Most of a case is waiting for processes and disks.
const THREADS: usize = 6;
/// How many passages of a point by one kind of command are tried if everything is tried.
const TIMES: usize = 2;

/// One accident in one scenario.
struct Case {
    scenario: &'static Scenario,
    accident: Accident,
    peaceful: Measure,
}

#[test]
fn whatever_step_a_process_dies_in_the_chain_goes_on() {
    let peaceful = SCENARIOS.iter().map(peaceful);
    let (cases, passed): (Vec<_>, Vec<_>) = peaceful.unzip();
    every_point_is_passed(&passed.concat());
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut queue = VecDeque::from(of_this_run(cases.into_iter().flatten().collect()));
    queue.retain(|case| case.name().contains(&only));
    println!("{} cases", queue.len());
    let (count, queue, failed) = (queue.len(), Mutex::new(queue), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = { queue.lock().expect("no panic").pop_front() } {
                    if catch_unwind(AssertUnwindSafe(|| case.run())).is_err() {
                        failed.lock().expect("no panic").push(case.name());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{} of {count} cases failed: {failed:#?}", failed.len());
}

/// How many cases of each point the rest after a sample has.
const REST: usize = 5;

/// All cases, or some of each point: the first case of the first point, the second of the second, and so on, so that the sample includes
/// every scenario and command. The rest after it has others, evenly spread.
fn of_this_run(cases: Vec<Case>) -> Vec<Case> {
    let extent = if std::env::var_os(ONLY).is_some() { Extent::All } else { extent() };
    if extent == Extent::All {
        return cases;
    }
    let mut points: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases {
        points.entry(case.accident.point.clone()).or_default().push(case);
    }
    let some = |(at, cases): (usize, Vec<Case>)| {
        let numbers = match extent {
            Extent::Rest => 1..=REST,
            _ => 0..=0,
        };
        let chosen = numbers.map(|number| (at + number * cases.len() / (REST + 1)) % cases.len());
        let mut chosen = chosen.collect::<BTreeSet<_>>();
        if extent == Extent::Rest {
            chosen.remove(&(at % cases.len()));
        }
        let numbered = cases.into_iter().enumerate();
        numbered.filter(move |(number, _)| chosen.contains(number)).map(|(_, case)| case)
    };
    points.into_values().enumerate().flat_map(some).collect()
}

/// Plays a scenario without accidents. Returns its cases and the points that were passed.
fn peaceful(scenario: &'static Scenario) -> (Vec<Case>, Vec<String>) {
    let mut person = Person::new((scenario.world)(), None);
    let reply = (scenario.play)(&mut person);
    assert!(scenario.replies.contains(&reply.as_str()), "{}: {reply}", scenario.name);
    let peaceful = invariants::measure(&person);
    invariants::hold(&person, peaceful, Allowance::Commands);
    let (mut cases, mut passed) = (Vec::new(), Vec::new());
    for command in 0..person.commands {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut times: HashMap<(String, String), usize> = HashMap::new();
        for passage in person.passages(command) {
            let number = numbers.entry(passage.point.clone()).or_default();
            let times = times.entry((passage.point.clone(), passage.command.clone())).or_default();
            (*number, *times) = (*number + 1, *times + 1);
            let enough = if passage.point.ends_with(".full") { 1 } else { TIMES };
            if *times <= enough {
                let accident = Accident { command, point: passage.point.clone(), number: *number };
                cases.push(Case { scenario, accident, peaceful });
            }
            passed.push(passage.point);
        }
    }
    (cases, passed)
}

fn every_point_is_passed(passed: &[String]) {
    let passed: BTreeSet<&str> = passed.iter().map(String::as_str).collect();
    // `tests/cli` kills the commands that move whole trees, those of hosts that share a server, and those that push and fetch worktrees, at each of
    // their points. The note of a silence is one
    // transaction, which comes when it comes.
    let elsewhere = |step: Step| {
        let moves = matches!(step, Step::Remove | Step::RemoveWorktree | Step::Import | Step::SetServer);
        let hosts = matches!(
            step,
            Step::Renew | Step::Drain | Step::Forget | Step::Take | Step::KeepCopies | Step::ChangeRights
        );
        let remotes = matches!(step, Step::PushWorktree | Step::FetchWorktree);
        moves || hosts || remotes || step == Step::NoteStall
    };
    let chains = STEPS.iter().filter(|(step, ..)| !elsewhere(*step));
    let points = chains.flat_map(|(step, _, moments)| moments.iter().map(|moment| name(*step, *moment)));
    let missed: Vec<String> = points.filter(|point| !passed.contains(point.as_str())).collect();
    assert!(missed.is_empty(), "no scenario passes {missed:?}");
}

impl Case {
    fn name(&self) -> String {
        let Accident { command, point, number } = &self.accident;
        format!("{}/{command}/{point}:{number}", self.scenario.name)
    }

    fn run(&self) {
        let mut person = Person::new((self.scenario.world)(), Some(self.accident.clone()));
        let reply = (self.scenario.play)(&mut person);
        let fatal = person.fatal_passage().expect("the point is passed as often as in peace");
        if person.victim == Some(fatal.process) {
            person.victim_ended_as_it_should();
        }
        assert!(self.scenario.replies.contains(&reply.as_str()), "{reply}");
        let allowance = match fatal.command.as_str() {
            _ if person.victim == Some(fatal.process) => Allowance::Commands,
            "hook" => Allowance::OneMoreStart,
            _ => Allowance::CalledAgain,
        };
        invariants::hold(&person, self.peaceful, allowance);
    }
}
