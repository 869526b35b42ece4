//! What `agent-cli serve` costs with 100,000 agents in the database, and how soon a browser has what it asks for: the first pages
//! of long lists, of a chain of 1,000 agents and of a conversation of 20 MB; what agents print, in 50 streams; the memory.
//!
//! ```sh
//! cargo bench --bench serve                # 100,000 agents
//! cargo bench --bench serve -- 10000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod process;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agent_cli::records::{Caller, Ending, FrameId, Lease, SessionId, Store};

use chains::{DEPTH, begin, copy, end, new_frame, wide};
use process::is_idle;

const AGENTS: usize = 100_000;
/// The chains that wait for an answer; the others are done.
const WAITING: usize = 10_000;
const WIDTH: usize = 1_000;
const LENGTH: usize = 20 << 20;
const WORKING: usize = 20;
const STREAMS: usize = 50;
const RUNS: usize = 30;
/// How long agents print, a line a second each.
const PRINTS: Duration = Duration::from_secs(20);

fn main() {
    let agents = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(AGENTS);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let (waiting, chains) = (WAITING.min(agents / DEPTH), agents / DEPTH);
    println!("filling the database with {chains} chains of {DEPTH} agents, of which {waiting} wait");
    copy(&state, chains - waiting, waiting);
    let store = Store::open(&state).expect("it was filled");

    let mut served = Served::start(&state);
    is_idle(&served.process);
    println!("{:<44} {:.1} MB", "memory at first", served.memory());

    let (wide, long) = (wide(&store, WIDTH), long(&store, &state));
    let pages = [
        ("list", "/".to_owned()),
        ("list of all", "/?show=all".to_owned()),
        ("list of those that wait", "/?show=waiting".to_owned()),
        ("list of those that need a person", "/?show=needs".to_owned()),
        ("list with a word", "/?q=ins1&show=all".to_owned()),
        ("tenth page of the list", "/?page=9".to_owned()),
        ("inbox", "/inbox".to_owned()),
        ("history", "/history".to_owned()),
        ("chain of 1,000 agents", format!("/chain/{wide}")),
        ("agent with a conversation of 20 MB", format!("/agent/{long}")),
    ];
    for (name, path) in &pages {
        let mut times: Vec<_> = (0..RUNS / 3).map(|_| served.page(path)).collect();
        times.sort_by_key(|(_, whole, _)| *whole);
        let ((first, whole, bytes), (_, worst, _)) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{name:<44} {:.0} ms, first byte {:.0} ms, at most {:.0} ms, {} kB",
            milliseconds(whole),
            milliseconds(first),
            milliseconds(worst),
            bytes >> 10
        );
    }
    is_idle(&served.process);
    println!("{:<44} {:.1} MB", "memory after these pages, idle", served.memory());

    let mut working: Vec<Working> = (0..WORKING).map(|_| Working::new(&store, &state)).collect();
    let mut seen = served.follow(&format!("/agent/{}", working[0].caller.frame));
    let mut latencies: Vec<Duration> = (0..RUNS).map(|run| latency(&mut working[0], &mut seen, run)).collect();
    latencies.sort();
    println!(
        "{:<44} {:.0} ms, at most {:.0} ms",
        "what an agent prints, until a browser has it",
        milliseconds(latencies[RUNS / 2]),
        milliseconds(latencies[RUNS - 1])
    );
    drop(seen);

    let agents = working.iter().map(|agent| agent.caller.frame);
    let of = agents.flat_map(|frame| [format!("/agent/{frame}"), format!("/chain/{frame}")]);
    let all: Vec<String> =
        ["/", "/inbox"].into_iter().map(str::to_owned).cycle().take(STREAMS - 2 * WORKING).chain(of).collect();
    for path in &all {
        let mut stream = served.follow(path);
        thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    }
    is_idle(&served.process);
    let (before, began) = (served.used(), Instant::now());
    let pause = Duration::from_secs(1) / WORKING as u32;
    for turn in 0.. {
        if began.elapsed() >= PRINTS {
            break;
        }
        working[turn % WORKING].print(&format!("line {turn}"));
        thread::sleep(pause);
    }
    let share = (served.used() - before) / began.elapsed().as_secs_f64() * 100.0;
    println!("{:<44} {share:.1} % of a core", format!("{STREAMS} streams, {WORKING} working agents"));
    let (before, began) = (served.used(), Instant::now());
    thread::sleep(PRINTS);
    let share = (served.used() - before) / began.elapsed().as_secs_f64() * 100.0;
    println!("{:<44} {share:.2} % of a core, {:.1} MB", format!("{STREAMS} streams, nothing happens"), served.memory());
    process::end(&mut served.process);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// How long it takes until a stream has what an agent prints.
fn latency(agent: &mut Working, seen: &mut BufReader<TcpStream>, run: usize) -> Duration {
    let text = format!("latency {run}.");
    thread::sleep(Duration::from_millis(200 + run as u64 * 7));
    let began = Instant::now();
    agent.print(&text);
    let mut line = String::new();
    while !line.contains(&text) {
        line.clear();
        assert_ne!(seen.read_line(&mut line).expect("an event"), 0, "the stream has ended");
    }
    began.elapsed()
}

/// An agent with a long conversation.
fn long(store: &Store, state: &Path) -> FrameId {
    let mut agent = Working::new(store, state);
    let mut text = String::new();
    while text.len() < LENGTH {
        text += &line(&format!("{} {}", text.len(), "All work and no play. ".repeat(80)));
    }
    agent.output.write_all(text.as_bytes()).expect("it can be written to");
    end(store, agent.caller, Ending::Reply("done".into()));
    agent.caller.frame
}

/// What `claude` prints for a message.
fn line(text: &str) -> String {
    format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n")
}

/// An agent that works.
struct Working {
    caller: Caller,
    output: File,
    _lease: Lease,
}

impl Working {
    fn new(store: &Store, state: &Path) -> Self {
        let frame = store.create(&new_frame(), None).expect("a frame can be made");
        let lease = Lease::try_take(store.dir(), frame).expect("the folder can be written to");
        let caller = begin(store, frame, SessionId::from(frame));
        let output = state.join("frames").join(frame.to_string()).join("out.ndjson");
        let output = File::options().append(true).open(output).expect("the lease has made it");
        Self { caller, output, _lease: lease.expect("nobody else has it") }
    }

    fn print(&mut self, text: &str) {
        self.output.write_all(line(text).as_bytes()).expect("it can be written to");
    }
}

/// A server in which a browser has logged in.
struct Served {
    process: Child,
    port: u16,
    cookie: String,
}

impl Served {
    fn start(state: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("AGENT_CLI_STATE_DIR", state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("it can be started");
        let mut link = String::new();
        let output = process.stdout.as_mut().expect("it has one");
        BufReader::new(output).read_line(&mut link).expect("it prints a link");
        let (port, path) =
            link.trim().strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once('/')).expect("a link");
        let mut served = Self { process, port: port.parse().expect("a port"), cookie: String::new() };
        let mut answer = String::new();
        served.sent(&format!("/{path}"), "").read_to_string(&mut answer).expect("an answer");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("it lets the browser in");
        served.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        served
    }

    fn sent(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let host = format!("host: 127.0.0.1:{}\r\ncookie: {}\r\n{headers}", self.port, self.cookie);
        write!(stream, "GET {path} HTTP/1.1\r\n{host}connection: close\r\n\r\n").expect("it reads");
        stream
    }

    /// The time until the first byte and the last one, and how many there are.
    fn page(&self, path: &str) -> (Duration, Duration, usize) {
        let began = Instant::now();
        let mut stream = self.sent(path, "");
        let mut bytes = vec![0; 12];
        stream.read_exact(&mut bytes).expect("an answer");
        let first = began.elapsed();
        assert_eq!(bytes, b"HTTP/1.1 200", "{path}");
        stream.read_to_end(&mut bytes).expect("an answer");
        (first, began.elapsed(), bytes.len())
    }

    /// A stream that has sent its first event.
    fn follow(&self, path: &str) -> BufReader<TcpStream> {
        let mut stream = BufReader::new(self.sent(&format!("/live?of={path}"), "accept: text/event-stream\r\n"));
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(stream.read_line(&mut line).expect("an event"), 0, "{path}: no stream");
        }
        stream
    }

    /// The memory that it has to itself and shares, in megabytes. Only Linux reports it.
    fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok()).unwrap_or_default() / 1024.0
    }

    /// The seconds of CPU time that it has used, also in threads that have ended.
    fn used(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        (ticks(11) + ticks(12)) / 100.0
    }
}
