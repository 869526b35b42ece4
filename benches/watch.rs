//! How fast `agent-cli watch` reacts to an answer, as a ratio to a person's `agent-cli resume`, and what it uses while nothing
//! happens, with 10,000 frames in the database. The agents cannot be started: the measurement ends when that is recorded.
//!
//! ```sh
//! cargo bench --bench watch                # 10,000 frames
//! cargo bench --bench watch -- 100000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
#[path = "support/process.rs"]
mod process;

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agent_cli::records::{FrameId, Store};
use chains::fill;
use process::{end, is_idle, used};
use serde_json::Value;

const FRAMES: usize = 10_000;
const RUNS: usize = 30;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(20);

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let frames = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(FRAMES);
    println!("filling the database with {frames} frames");
    fill(&state, frames);
    let store = Store::open(&state).expect("it was filled");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).env("AGENT_CLI_STATE_DIR", &state).env("AGENT_CLI_CLAUDE", "/nonexistent/claude");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let listed = command(&["questions", "--all-projects", "--json"]).stdout(Stdio::piped()).output();
    let listed: Vec<Value> = serde_json::from_slice(&listed.expect("it can be started").stdout).expect("JSON");
    let text = |question: &Value, name: &str| question[name].as_str().expect("a text").to_owned();
    let of = |question: &Value| (text(question, "id"), text(question, "agent"), text(question, "chain"));
    let mut asked = listed.iter().map(of);

    let mut watch = command(&["watch"]).spawn().expect("it can be started");
    is_idle(&watch);
    let before = used(&watch);
    thread::sleep(IDLE);
    let share = (used(&watch) - before) / IDLE.as_secs_f64() * 100.0;
    println!("{:<32} {share:.3} % of a core, over {} s", "watch while nothing happens", IDLE.as_secs());
    end(&mut watch);

    // Alternately, so that a change of the machine's speed affects both. `resume` comes first: watch does not continue a chain
    // that it has put off.
    let mut pairs = Vec::new();
    for _ in 0..RUNS {
        let (by_hand, at_once) = (asked.next().expect("enough chains"), asked.next().expect("enough chains"));
        answer(&command, &by_hand.0);
        let began = Instant::now();
        command(&["resume", &by_hand.2]).status().expect("it can be started");
        let resumed = began.elapsed();
        assert!(is_put_off(&store, &by_hand.1));

        let mut watch = command(&["watch"]).spawn().expect("it can be started");
        is_idle(&watch);
        answer(&command, &at_once.0);
        let began = Instant::now();
        while !is_put_off(&store, &at_once.1) {
            assert!(began.elapsed() < Duration::from_secs(30), "watch does not react");
            thread::sleep(Duration::from_micros(200));
        }
        pairs.push((began.elapsed(), resumed));
        end(&mut watch);
    }
    let median = |of: &dyn Fn(&(Duration, Duration)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[RUNS / 2]
    };
    println!("{:<32} {:.2} ms", "answer until watch continues", median(&|pair| pair.0.as_secs_f64() * 1000.0));
    println!("{:<32} {:.2} ms", "resume by hand", median(&|pair| pair.1.as_secs_f64() * 1000.0));
    let ratio = median(&|pair| pair.0.as_secs_f64() / pair.1.as_secs_f64());
    println!("{:<32} {ratio:.2} (medians of {RUNS} pairs)", "ratio");
}

fn answer(command: &impl Fn(&[&str]) -> Command, question: &str) {
    assert!(command(&["answer", question, "x"]).status().expect("it can be started").success());
}

/// Whether it is recorded that an agent could not be started.
fn is_put_off(store: &Store, frame: &str) -> bool {
    let frame: FrameId = frame.parse().expect("an id");
    let state = store.frame(frame).expect("the database").expect("it is there").state;
    serde_json::to_value(state).expect("JSON")["wait"]["for"] == "restart"
}
