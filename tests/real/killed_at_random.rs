//! Runners and `claude` are killed at random instants, and the chain is resumed until there is a reply.

use std::collections::HashSet;
use std::thread;

use agent_cli::records::{Node, Store, chains};

use crate::chain::Chain;
use crate::chance::Chance;
use crate::processes::wait_until;
use crate::support::extent::{is_whole, sample_or_all};
use crate::support::{Kind, NEWEST, OLDER, processes_of, victims};

/// How many processes are killed in total, in a sample and in a whole run. A longer test sets its own number in the variable.
const KILLS: [usize; 2] = [3, 10];
const MORE_KILLS: &str = "AGENT_CLI_CRASH_KILLS";
/// The first seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How many kills a chain meets before it is left in peace.
const KILLS_OF_A_CHAIN: [usize; 2] = [3, 5];
/// The maximum number of rounds of a chain.
const ROUNDS: usize = 60;
/// The requests of a chain of four with one question, when nothing dies.
const REQUESTS: usize = 12;
/// The most requests of one turn in it: to read the instructions, and to act on them.
const REQUESTS_OF_A_TURN: usize = 2;
/// How much longer a turn of the real program takes.
const SLOWER: u32 = 10;

#[derive(Debug, Default)]
struct Killed {
    chains: usize,
    runners: usize,
    agents: usize,
    tools: usize,
    requests: usize,
}

#[test]
fn a_chain_survives_kills_at_random_instants() {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let wanted = number(MORE_KILLS).unwrap_or_else(|| sample_or_all(KILLS[0], KILLS[1]));
    let mut killed = Killed::default();
    let mut seed = number(SEED).unwrap_or(1);
    while killed.runners + killed.agents + killed.tools < wanted {
        // A failing test shows its output: with the seed it can be repeated.
        println!("seed {seed}, before: {killed:?}");
        let here = one_chain(seed);
        killed.chains += 1;
        killed.runners += here.runners;
        killed.agents += here.agents;
        killed.tools += here.tools;
        killed.requests += here.requests;
        seed += 1;
    }
    println!("{killed:?}");
}

fn one_chain(seed: usize) -> Killed {
    let mut chance = Chance::new(seed as u64);
    let chain = Chain::new(if is_whole() && seed.is_multiple_of(3) { OLDER } else { NEWEST });
    chain.birthday();
    let mut killed = Killed::default();
    let mut reply = None;
    for _ in 0..ROUNDS {
        let store = Store::open(&chain.state()).unwrap();
        let root = chains(&store).pop().map(|root| root.id.to_string());
        let running = match &root {
            Some(root) => chain.start(&["resume", root]),
            None => chain.start(&["spawn", "ins1.md"]),
        };
        if killed.runners + killed.agents + killed.tools < sample_or_all(KILLS_OF_A_CHAIN[0], KILLS_OF_A_CHAIN[1]) {
            // The instant is what is being tested: this waits for nothing.
            thread::sleep(chance.instant() * SLOWER);
            let mut found = victims(&chain.state());
            // There is always a runner, and seldom a tool.
            let wanted = [Kind::Runner, Kind::Agent, Kind::Agent, Kind::Tool][chance.below(4) as usize];
            if found.iter().any(|process| process.kind == wanted) {
                found.retain(|process| process.kind == wanted);
            }
            if let Some(victim) = found.pop() {
                victim.kill();
                *match victim.kind {
                    Kind::Runner => &mut killed.runners,
                    Kind::Agent => &mut killed.agents,
                    Kind::Tool => &mut killed.tools,
                } += 1;
            }
        }
        let said = running.ends();
        assert!(matches!(said.code, None | Some(0 | 1 | 4)), "{said:?}");
        // A claude without its runner finishes its turn.
        wait_until("every process ends", || processes_of(&chain.state()).is_empty());
        for question in store.questions(None, true).unwrap() {
            chain.ok(&["answer", &question.id.to_string(), "Jan 1st"]);
        }
        if !said.out.is_empty() && !said.out.starts_with("SGN_") {
            reply = Some(said.out);
            break;
        }
    }
    killed.requests = chain.api.count();
    let store = Store::open(&chain.state()).unwrap();
    let questions = store.questions(None, false).unwrap().len();
    assert_eq!(reply.as_deref(), Some("Jan 1st\n"), "{killed:?}\n{}", story(&store));
    if killed.agents + killed.tools == 0 {
        assert_eq!((killed.requests, repeated(&chain), questions), (REQUESTS, 0, 1), "{killed:?}");
    }
    // A killed call may be made again, with everything that follows. A turn that was cut short is repeated.
    let times = 1 + killed.tools;
    let most = times * REQUESTS + killed.agents * REQUESTS_OF_A_TURN;
    assert!(killed.requests <= most && questions <= times, "{questions} questions: {killed:?}\n{}", story(&store));
    killed
}

/// All records, to find out what went wrong.
fn story(store: &Store) -> String {
    let roots = chains(store);
    let nodes =
        roots.iter().flat_map(|root| store.tree(root.id).unwrap().leaves_up().into_iter().cloned().collect::<Vec<_>>());
    let told = |node: Node| {
        let events = store.events(node.id, 0).unwrap().into_iter();
        let events = events.map(|event| format!("\n  {} {:?}", event.at, event.entry));
        format!("{} {}{}", node.id, node.title, events.collect::<String>())
    };
    nodes.map(told).collect::<Vec<_>>().join("\n")
}

/// How many requests had the conversation of an earlier one, whose answer was lost.
fn repeated(chain: &Chain) -> usize {
    let mut seen = HashSet::new();
    let requests = chain.api.requests();
    requests.iter().filter(|request| !seen.insert(format!("{:?}", request.conversation()))).count()
}
