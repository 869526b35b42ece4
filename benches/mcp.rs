//! How long `agent-cli mcp` takes from its start to its first answer, compared with `agent-cli --version`, and what a session that
//! follows a chain of 1,000 agents costs each time it looks.
//!
//! ```sh
//! cargo bench --bench mcp
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod process;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use agent_cli::records::Store;
use serde_json::{Value, json};

use chains::wide;

const RUNS: usize = 60;
const WIDTH: usize = 1_000;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let root = wide(&Store::open(&state).expect("the folder can be written to"), WIDTH);

    // Alternately, so that a change of the machine's speed affects both.
    let pairs: Vec<_> = (0..RUNS).map(|_| (first_answer(&state), version())).collect();
    let median = |times: Vec<Duration>| milliseconds(middle(times));
    println!("{:<32} {:.2} ms", "start to the first answer", median(pairs.iter().map(|pair| pair.0).collect()));
    println!("{:<32} {:.2} ms", "--version", median(pairs.iter().map(|pair| pair.1).collect()));
    let mut ratios: Vec<f64> = pairs.iter().map(|(one, other)| one.as_secs_f64() / other.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    println!("{:<32} {:.2} (median of {RUNS} pairs)", "ratio", ratios[RUNS / 2]);

    let mut server = Server::start(&state);
    server.begin();
    let mut look = |method: &str, arguments: &Value| {
        let began = Instant::now();
        let answer = server.ask(method, arguments);
        assert!(answer["error"].is_null(), "{answer}");
        (began.elapsed(), answer)
    };
    let task = json!({ "taskId": root.to_string() });
    let (_, answer) = look("tasks/get", &task);
    assert_eq!(answer["result"]["status"], "input_required", "{answer}");
    let times = (0..RUNS).map(|_| look("tasks/get", &task).0).collect();
    println!("{:<32} {:.2} ms", format!("tasks/get of {WIDTH} agents"), median(times));
    process::is_idle(&server.process);
    let before = process::used(&server.process);
    (0..RUNS).for_each(|_| drop(server.ask("tasks/get", &task)));
    let used = (process::used(&server.process) - before) / RUNS as f64;
    println!("{:<32} {:.2} ms", "its CPU time", used * 1000.0);
    process::end(&mut server.process);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn version() -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
    command.arg("--version").stdout(Stdio::null());
    let began = Instant::now();
    assert!(command.status().expect("the program can be started").success());
    began.elapsed()
}

fn first_answer(state: &Path) -> Duration {
    let began = Instant::now();
    let mut server = Server::start(state);
    server.begin();
    let took = began.elapsed();
    process::end(&mut server.process);
    took
}

/// The server, and what it prints.
struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    fn start(state: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.arg("mcp").env("AGENT_CLI_STATE_DIR", state).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().expect("the program can be started");
        let (input, output) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        Self { process, input, output: BufReader::new(output), asked: 0 }
    }

    fn begin(&mut self) {
        let client = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": {} },
            "clientInfo": { "name": "bench", "version": "1" },
        });
        let answer = self.ask("initialize", &client);
        assert!(answer["error"].is_null(), "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).expect("it prints"), 0, "the server has ended");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == id {
                return answer;
            }
        }
    }
}
