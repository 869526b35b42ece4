//! How long `ls`, `show`, `tree` and `questions` take, how soon the dashboard is drawn, and what it uses while nothing happens, with
//! 100,000 agents in the database: a fifth of the chains wait for an answer, the others are done.
//!
//! ```sh
//! cargo bench --bench lists                # 100,000 agents
//! cargo bench --bench lists -- 1000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
#[path = "../tests/support/pty.rs"]
#[allow(dead_code, reason = "a benchmark needs less than the tests")]
mod pty;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use chains::{DEPTH, copies};
use pty::{Screen, collect_screen, terminal};

const AGENTS: usize = 100_000;
/// The median of this many runs counts.
const RUNS: usize = 9;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(20);

fn main() {
    let agents = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(AGENTS);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (state, project) = (folder.path().join("state"), folder.path().join("project"));
    fs::create_dir(&project).expect("the folder can be written to");
    println!("filling the database with {agents} agents");
    copies(&state, agents / DEPTH);
    let database = Connection::open(state.join("agent-cli.db")).expect("a database");
    let project = fs::canonicalize(project).expect("it was made");
    database.execute("UPDATE frames SET cwd = ?1", [project.to_str()]).expect("own database");
    let waits = "SELECT root FROM frames WHERE root NOT IN (SELECT id FROM frames WHERE state LIKE '%done%') LIMIT 1";
    let id: String = database.query_row(waits, [], |row| row.get(0)).expect("a chain waits");
    drop(database);
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).current_dir(&project).env_clear().env("HOME", folder.path());
        command.env("AGENT_CLI_STATE_DIR", &state).env("PATH", "/usr/bin:/bin").env("TERM", "xterm-256color");
        command
    };
    for arguments in [&["--version"][..], &["ls"], &["show", &id], &["tree", &id], &["questions"]] {
        let mut times: Vec<_> = (0..RUNS).map(|_| time_of(command(arguments).stdin(Stdio::null()))).collect();
        times.sort();
        let name = arguments[0];
        println!("{name:<32} {:.1} ms", times[RUNS / 2].as_secs_f64() * 1000.0);
    }
    dashboard(&mut command(&[]));
}

fn time_of(command: &mut Command) -> Duration {
    let began = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.expect("it can be started");
    began.elapsed()
}

/// The time until a chain is drawn, and the share of a core that is used afterwards.
fn dashboard(command: &mut Command) {
    let (ours, theirs) = terminal(100, 30, true).expect("there are pseudo-terminals");
    let screen = Screen::new(100, 30);
    let collected = collect_screen(ours, screen.clone());
    let end = || theirs.try_clone().expect("a file can be cloned");
    let began = Instant::now();
    let mut shown = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it can be started");
    while !screen.text().contains("birthday") {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is drawn: {}", screen.text());
        thread::sleep(Duration::from_micros(500));
    }
    println!("{:<32} {:.1} ms", "dashboard, first drawing", began.elapsed().as_secs_f64() * 1000.0);
    thread::sleep(Duration::from_secs(2));
    let before = used(&shown);
    thread::sleep(IDLE);
    let share = (used(&shown) - before) / IDLE.as_secs_f64() * 100.0;
    println!("{:<32} {share:.3} % of a core, over {} s", "dashboard while nothing happens", IDLE.as_secs());
    shown.kill().expect("it runs");
    shown.wait().expect("it runs");
    drop(theirs);
    drop(collected.join());
}

/// The processor time of its threads so far, in seconds.
fn used(process: &Child) -> f64 {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten().flatten();
    let of = |path: &Path| fs::read_to_string(path).ok()?.split(' ').next()?.parse::<f64>().ok();
    threads.filter_map(|thread| of(&thread.path().join("schedstat"))).sum::<f64>() / 1e9
}
