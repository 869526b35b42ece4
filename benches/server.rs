//! Chains on a PostgreSQL server, next to the same chains in a file: a poll, `resume --all` and lists, as ratios in one run; and how many
//! chains hosts take from a server in a second. The server is started for this, on a socket of this machine.
//!
//! ```sh
//! cargo bench --bench server                # 10,000 agents
//! cargo bench --bench server -- 100000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
#[path = "../tests/support/postgres.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod postgres;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agent_cli::records::{Store, leave_to_any_host, take_any};
use chains::{DEPTH, fill, new_frame};

const AGENTS: usize = 10_000;
const RUNS: usize = 100;
/// How many chains wait for a host.
const FREE: usize = 400;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let agents = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(AGENTS);
    let [file, moved] = ["file", "moved"].map(|name| folder.path().join(name));
    println!("filling two databases with {agents} agents in chains of {DEPTH}");
    let chains = [&file, &moved].map(|state| fill(state, agents).to_string());
    let url = postgres::new_database();
    assert!(command(&moved, &["move", "--to", &url]).status().expect("the program can be started").success());
    postgres::execute(&url, "ANALYZE");
    compare([&file, &moved], &chains);
    for hosts in [1, 4, 16] {
        println!("{hosts:>2} hosts take {:.0} chains a second", taken(folder.path(), hosts));
    }
}

fn command(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
    command.args(arguments).env("AGENT_CLI_STATE_DIR", state).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Prints the medians of commands in the file and on the server, taken alternately.
fn compare(states: [&Path; 2], chains: &[String; 2]) {
    for (name, arguments) in [
        ("resume ID", ["resume", ""]),
        ("resume --all", ["resume", "--all"]),
        ("ls", ["ls", "--all-projects"]),
        ("questions", ["questions", "--all-projects"]),
    ] {
        let time = |at: usize| {
            let arguments = arguments.map(|word| if word.is_empty() { chains[at].as_str() } else { word });
            let began = Instant::now();
            assert!(command(states[at], &arguments).status().expect("the program can be started").success());
            began.elapsed()
        };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..RUNS {
            times.iter_mut().enumerate().for_each(|(at, times)| times.push(time(at)));
        }
        let [file, server] = times.map(median);
        println!(
            "{name:<14} file {:>7.2} ms   server {:>7.2} ms   {:.2} times",
            ms(file),
            ms(server),
            ms(server) / ms(file)
        );
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// How many chains that wait for a host so many hosts take in a second.
#[expect(clippy::cast_precision_loss, reason = "the counts are small")]
fn taken(folder: &Path, hosts: usize) -> f64 {
    let url = postgres::new_database();
    let stores: Vec<Store> = (0..hosts)
        .map(|number| {
            let state = folder.join(format!("host-{hosts}-{number}"));
            Store::use_server(&state, &url).expect("a server");
            Store::open(&state).expect("a server")
        })
        .collect();
    for _ in 0..FREE {
        leave_to_any_host(&stores[0], agent_cli::records::NewFrame { cwd: folder.to_owned(), ..new_frame() });
    }
    let began = Instant::now();
    let workers = stores.into_iter().map(|store| thread::spawn(move || while take_any(&store) {}));
    workers.collect::<Vec<_>>().into_iter().for_each(|worker| worker.join().expect("no panic"));
    FREE as f64 / began.elapsed().as_secs_f64()
}
