//! Hosts that share a server and run the same chains, while they are killed, suspended, lost, and cut off from the server at random, in
//! one direction or both, the network becomes slow, their disks become full, and the server crashes.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::chance::Chance;
use crate::marked::{Process, processes_of};
use crate::network::Network;
use crate::postgres;
use crate::small_disk::SmallDisk;

/// How many faults happen. A longer test sets its own number in the variable.
const MORE_FAULTS: &str = "AGENT_CLI_HOST_FAULTS";
/// The seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How many chains are unfinished at the same time.
const CHAINS: usize = 6;
/// Longer than all leases and interruptions, and than a chain rests after a full disk.
const PATIENCE: Duration = Duration::from_secs(400);
/// The longest interruption, in milliseconds: several leases.
const LONGEST: usize = 6000;
/// How often it is looked at what takes seconds.
const LOOK: Duration = Duration::from_millis(100);

/// A lease that ends soon, so that hosts that are cut off lose theirs.
pub(crate) const LEASE: &str = "lease = \"2s\"\n";
/// A command that nothing else may run at the same time, with the name of an agent for `AGENT`: two would be two claudes of the same
/// agent. A killed one leaves no lock behind. It takes longer than a lease, so that it still runs when another host may continue its
/// agent, unless something ends it.
pub(crate) const ALONE: &str = "flock -n -E 9 AGENT.lock sh -c 'echo AGENT works for 5 s: \
    $(date +%T.%N) $AGENT_CLI_ATTEMPT $AGENT_CLI_STATE_DIR >> work; sleep 5' || \
    echo AGENT works, too: $(date +%T.%N) $AGENT_CLI_ATTEMPT $AGENT_CLI_STATE_DIR >> overlaps";

/// `agent-cli` with arguments, in an environment.
pub(crate) type Program = Box<dyn Fn(&[&str]) -> Command>;

/// A machine on which agents run.
pub(crate) struct Host {
    pub(crate) machine: Machine,
    /// Commands on it.
    pub(crate) program: Program,
}

pub(crate) struct Machine {
    pub(crate) network: Network,
    /// Where its state is, or all it has. `None`: only root can fill it.
    pub(crate) disk: Option<SmallDisk>,
    pub(crate) state: PathBuf,
    pub(crate) home: PathBuf,
    /// Its `config.toml`.
    pub(crate) settings: String,
}

pub(crate) struct Trial {
    pub(crate) hosts: Vec<Host>,
    /// Commands of a person, which nothing disturbs.
    pub(crate) person: Program,
    /// Leaves a chain to any host and returns its id. The chain asks and replies.
    pub(crate) spawn: Box<dyn Fn(usize) -> String>,
    /// What each chain replies.
    pub(crate) reply: &'static str,
    /// Where agents work, and write that one runs twice.
    pub(crate) project: PathBuf,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    WorkerKilled,
    WorkerSuspended,
    /// Killed before it notices that it is cut off.
    CutOffAndKilled,
    CutOff,
    /// It does not learn what the server has done.
    NoReplies,
    SlowNetwork,
    FullDisk,
    /// The machine is lost with all that it had, and another one comes in its place.
    Replaced,
    ServerCrashed,
    ConnectionsEnded,
}

impl Fault {
    const ALL: [Self; 10] = [
        Self::WorkerKilled,
        Self::WorkerSuspended,
        Self::CutOffAndKilled,
        Self::CutOff,
        Self::NoReplies,
        Self::SlowNetwork,
        Self::FullDisk,
        Self::Replaced,
        Self::ServerCrashed,
        Self::ConnectionsEnded,
    ];
}

impl Host {
    fn work(&self) -> Worker {
        let mut command = (self.program)(&["work"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Worker(command.spawn().expect("it can be started"))
    }
}

/// `agent-cli work`. A test that fails leaves nothing of it behind.
struct Worker(Child);

impl Worker {
    /// It is not given to another process before its end was noticed.
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("it is a child").is_some()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    pub(crate) fn prepare(&self) {
        let folder = self.home.join(".config/agent-cli");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).expect("its disk has room");
        fs::write(folder.join("config.toml"), &self.settings).expect("its disk has room");
    }

    /// Returns when the cause is gone.
    fn suffers(&self, fault: Fault, worker: Pid, time: Duration) {
        // It may have ended.
        let signal = |signal| {
            let _ = kill_process(worker, signal);
        };
        match fault {
            Fault::WorkerKilled => signal(Signal::KILL),
            Fault::WorkerSuspended => {
                signal(Signal::STOP);
                thread::sleep(time);
                signal(Signal::CONT);
            }
            Fault::CutOffAndKilled => {
                self.network.is_down(true);
                signal(Signal::KILL);
                thread::sleep(time);
                self.network.is_down(false);
            }
            Fault::CutOff => {
                self.network.is_down(true);
                thread::sleep(time);
                self.network.is_down(false);
            }
            Fault::NoReplies => {
                self.network.has_no_replies(true);
                thread::sleep(time);
                self.network.has_no_replies(false);
            }
            Fault::SlowNetwork => {
                self.network.is_slow(Duration::from_millis(50) + time / 20);
                thread::sleep(time);
                self.network.is_slow(Duration::ZERO);
            }
            Fault::FullDisk => {
                let Some(disk) = &self.disk else { return };
                disk.fill();
                thread::sleep(time);
                disk.clear();
            }
            Fault::Replaced => self.is_replaced(),
            Fault::ServerCrashed => postgres::crash(),
            Fault::ConnectionsEnded => postgres::end_connections(&self.network.url),
        }
    }

    fn is_replaced(&self) {
        // A process that becomes another program has no environment for a moment.
        let mut quiet = 0;
        while quiet < 3 {
            let processes = processes_of(&self.state);
            quiet = if processes.is_empty() { quiet + 1 } else { 0 };
            processes.into_iter().for_each(Process::kill);
        }
        for folder in [&self.state, &self.home.join(".claude")] {
            if let Err(error) = fs::remove_dir_all(folder) {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{}: {error}", folder.display());
            }
        }
        self.prepare();
    }
}

impl Trial {
    /// How many faults are wanted, and the seed.
    pub(crate) fn wanted(faults: usize) -> (usize, u64) {
        let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().expect("a number"));
        let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
        println!("seed {seed}");
        (number(MORE_FAULTS).map_or(faults, |number| usize::try_from(number).expect("it is small")), seed)
    }

    /// No chain is lost, no agent runs twice at the same time, and the records of all hosts are intact.
    pub(crate) fn run(self, (faults, seed): (usize, u64)) {
        let mut chance = Chance::new(seed);
        let mut chains = Vec::new();
        let mut workers: Vec<_> = self.hosts.iter().map(Host::work).collect();
        let mut number = 0;
        while number < faults {
            while self.unfinished().len() < CHAINS {
                chains.push((self.spawn)(chains.len()));
            }
            self.answer();
            let first = number;
            thread::scope(|scope| {
                let mut below = |end: usize| usize::try_from(chance.below(end as u64)).expect("it is small");
                let mut unharmed: Vec<_> =
                    self.hosts.iter().map(|host| &host.machine).zip(&workers).enumerate().collect();
                for _ in 0..=below(unharmed.len()) {
                    let (at, (machine, worker)) = unharmed.swap_remove(below(unharmed.len()));
                    let (fault, time) =
                        (Fault::ALL[below(Fault::ALL.len())], Duration::from_millis(below(LONGEST) as u64));
                    println!("{} fault {number} with {first}: {fault:?}, host {at}, {time:?}", Timestamp::now());
                    number += 1;
                    let worker = worker.pid();
                    scope.spawn(move || machine.suffers(fault, worker, time));
                }
            });
            thread::sleep(Duration::from_millis(chance.below(500)));
            self.keep_working(&mut workers);
            self.has_no_overlaps();
        }
        let since = Instant::now();
        loop {
            let unfinished = self.unfinished();
            if unfinished.is_empty() {
                break;
            }
            assert!(since.elapsed() < PATIENCE, "these are not done: {unfinished:#?}");
            self.keep_working(&mut workers);
            self.answer();
            thread::sleep(LOOK);
        }
        println!("{} chains were done {:?} after the last fault", chains.len(), since.elapsed());
        for chain in &chains {
            let shown = self.json(&["show", chain, "--json"]);
            assert_eq!((&shown["state"], &shown["reply"]), (&"done".into(), &self.reply.into()), "{shown:#}");
        }
        self.has_no_overlaps();
        for worker in &workers {
            let _ = kill_process(worker.pid(), Signal::TERM);
        }
        for mut worker in workers {
            within_patience("it ends", || worker.has_ended());
        }
        self.forget_hosts();
        for host in &self.hosts {
            succeeds((host.program)(&["fsck"]));
        }
    }

    fn has_no_overlaps(&self) {
        let text = |name: &str| fs::read_to_string(self.project.join(name)).unwrap_or_default();
        let overlaps = text("overlaps");
        let Some(agent) = overlaps.split_whitespace().next() else { return };
        let work = text("work");
        let work: Vec<_> = work.lines().filter(|line| line.starts_with(&format!("{agent} "))).collect();
        let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
        let chains = self.json(&["ls", "--all", "--all-projects", "--json"]);
        let of_agent = |chain: &&Value| number(chain["task"].as_str().unwrap_or_default()) == number(agent);
        let chain = chains.as_array().expect("a list").iter().find(of_agent).expect("its chain");
        let records = self.json(&["show", chain["id"].as_str().expect("an id"), "--json"]);
        panic!("an agent ran twice at the same time: {overlaps}{work:#?}\n{records:#}");
    }

    fn keep_working(&self, workers: &mut [Worker]) {
        for (host, worker) in self.hosts.iter().zip(workers) {
            if worker.has_ended() {
                *worker = host.work();
            }
        }
    }

    fn answer(&self) {
        let questions = self.json(&["questions", "--all-projects", "--json"]);
        for question in questions.as_array().expect("a list") {
            // Its agent may have been lost in the meantime.
            let _ = output((self.person)(&["answer", question["id"].as_str().expect("an id"), "yes"]));
        }
    }

    fn unfinished(&self) -> Vec<Value> {
        let listed = self.json(&["ls", "--all", "--all-projects", "--json"]);
        listed.as_array().expect("a list").iter().filter(|chain| chain["state"] != "done").cloned().collect()
    }

    fn forget_hosts(&self) {
        let others = || {
            let hosts = self.json(&["hosts", "--json"]);
            let hosts = hosts.as_array().expect("a list").iter().filter(|host| host["is_here"] == false);
            hosts.cloned().collect::<Vec<_>>()
        };
        within_patience("all leases end", || others().iter().all(|host| host["lease_ends"].is_null()));
        for host in others() {
            succeeds((self.person)(&["hosts", "forget", host["host"].as_str().expect("a name"), "--yes"]));
        }
        assert_eq!(others(), Vec::<Value>::new());
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&succeeds((self.person)(arguments))).expect("it prints JSON")
    }
}

/// What a command has printed.
struct Said {
    success: bool,
    out: String,
    err: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.out, self.err)
    }
}

fn output(mut command: Command) -> Said {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Said { success: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
}

fn succeeds(command: Command) -> String {
    let shown = format!("{command:?}");
    let said = output(command);
    assert!(said.success, "{shown}: {said}");
    said.out
}

fn within_patience(what: &str, mut happens: impl FnMut() -> bool) {
    let since = Instant::now();
    while !happens() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        thread::sleep(LOOK);
    }
}
