//! Three hosts, whose clocks differ, share a server and run the same chains, while they are killed, suspended, lost, and cut off from the
//! server at random, in one direction or both, the network becomes slow, their disks become full, and the server crashes. If root runs it,
//! they have networks of their own. Without `AGENT_CLI_TEST_SERVER`, this checks nothing.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::chance::Chance;
use crate::extent::sample_or_all;
use crate::gate::wait_within;
use crate::invocation::Running;
use crate::network::Network;
use crate::postgres;
use crate::processes::{Process, processes_of};
use crate::skewed_clock::off_by;
use crate::small_disk::SmallDisk;
use crate::world::{World, write_config};

/// How many faults happen, in a sample and in a whole run. A longer test sets its own number in the variable.
const FAULTS: [usize; 2] = [15, 40];
const MORE_FAULTS: &str = "AGENT_CLI_HOST_FAULTS";
/// The seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How far the clocks of the hosts are off, in seconds.
const CLOCKS: [&str; HOSTS] = ["+0", "+240", "-240"];
const HOSTS: usize = 3;
/// How many chains are unfinished at the same time.
const CHAINS: usize = 6;
/// Longer than all leases and interruptions, and than a chain rests after a full disk.
const PATIENCE: Duration = Duration::from_secs(400);

/// A tool that nothing else may run at the same time: two would be two claudes of the same agent. A killed one leaves no lock behind. It takes
/// longer than a lease, so that it still runs when another host may continue its agent, unless something ends it.
const ALONE: &str = "run flock -n -E 9 AGENT.lock sh -c 'echo . >> AGENT.work; sleep 5' || echo overlap >> overlaps\n";

struct Host {
    world: World,
    network: Network,
    /// Where its home and its state are. `None`: only root can fill it.
    disk: Option<SmallDisk>,
    settings: String,
}

impl Host {
    /// The machine is lost with all that it had, and another one comes in its place.
    fn is_replaced(&self) {
        let state = self.world.state();
        loop {
            let processes = processes_of(&state);
            if processes.is_empty() {
                break;
            }
            processes.into_iter().for_each(Process::kill);
        }
        for folder in [&state, &self.world.home()] {
            fs::remove_dir_all(folder).expect("nothing uses it");
        }
        fs::create_dir(self.world.home()).expect("its disk has room");
        write_config(&self.world, &self.settings);
    }
}

#[test]
fn no_chain_is_lost_and_no_agent_runs_twice() {
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_none() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let faults = number(MORE_FAULTS).unwrap_or_else(|| sample_or_all(FAULTS[0], FAULTS[1]));
    let seed = number(SEED).unwrap_or_else(|| std::process::id() as usize);
    println!("seed {seed}");
    Trial::new(seed as u64).run(faults);
}

struct Trial {
    chance: Chance,
    hosts: Vec<Host>,
    /// Where all agents work.
    project: World,
    chains: Vec<String>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let url = postgres::new_database();
        let project = World::with_hooks().with("AGENT_CLI_STORE", &url);
        let settings = format!("lease = \"2s\"\nshared-directories = [\"{}\"]\n", project.project().display());
        let host = |clock: &str| {
            let network = Network::of_a_host(&url);
            let disk = SmallDisk::new();
            let world = disk.as_ref().map_or_else(World::with_hooks, |disk| World::with_hooks_in(disk.path()));
            let world = world.within(network.enter()).with("AGENT_CLI_STORE", &network.url);
            let world = off_by(clock).into_iter().fold(world, |world, (name, value)| world.with(name, value));
            write_config(&world, &settings);
            Host { world, network, disk, settings: settings.clone() }
        };
        let hosts = CLOCKS.map(host).into();
        Self { chance: Chance::new(seed), hosts, project, chains: Vec::new() }
    }

    fn run(mut self, faults: usize) {
        let hosts = std::mem::take(&mut self.hosts);
        let mut workers: Vec<_> = hosts.iter().map(work).collect();
        for fault in 0..faults {
            while self.unfinished().len() < CHAINS {
                self.spawn();
            }
            self.answer();
            let at = usize::try_from(self.chance.below(HOSTS as u64)).expect("it is small");
            let (host, time) = (&hosts[at], Duration::from_millis(self.chance.below(6000)));
            let kind = self.chance.below(10);
            println!("fault {fault}: kind {kind}, host {at}");
            match kind {
                0 => workers[at].kill(),
                1 => {
                    host.network.is_down(true);
                    thread::sleep(time);
                    host.network.is_down(false);
                }
                2 => {
                    workers[at].signal(Signal::STOP);
                    thread::sleep(time);
                    workers[at].signal(Signal::CONT);
                }
                3 => {
                    // It is cut off, and killed before it notices.
                    host.network.is_down(true);
                    workers[at].kill();
                    thread::sleep(time);
                    host.network.is_down(false);
                }
                4 => {
                    host.network.is_slow(Duration::from_millis(50 + self.chance.below(250)));
                    thread::sleep(time);
                    host.network.is_slow(Duration::ZERO);
                }
                5 => {
                    let Some(disk) = &host.disk else { continue };
                    disk.fill();
                    thread::sleep(time);
                    disk.clear();
                }
                6 => {
                    // It does not learn what the server has done.
                    host.network.has_no_replies(true);
                    thread::sleep(time);
                    host.network.has_no_replies(false);
                }
                7 => host.is_replaced(),
                8 => postgres::crash(),
                _ => postgres::end_connections(&host.network.url),
            }
            thread::sleep(Duration::from_millis(self.chance.below(500)));
            for (host, worker) in hosts.iter().zip(&mut workers) {
                if !worker.is_alive() {
                    *worker = work(host);
                }
            }
        }
        let since = Instant::now();
        let mut unfinished = self.unfinished();
        while !unfinished.is_empty() {
            assert!(since.elapsed() < PATIENCE, "these are not done: {unfinished:#?}");
            for (host, worker) in hosts.iter().zip(&mut workers) {
                if !worker.is_alive() {
                    *worker = work(host);
                }
            }
            self.answer();
            unfinished = self.unfinished();
        }
        println!("{} chains were done {:?} after the last fault", self.chains.len(), since.elapsed());
        for chain in &self.chains {
            let shown = self.project.run(&["show", chain, "--json"]).json();
            assert_eq!((&shown["state"], &shown["reply"]), (&"done".into(), &"inner said yes".into()), "{shown:#}");
        }
        let overlaps = fs::read_to_string(self.project.project().join("overlaps")).unwrap_or_default();
        assert_eq!(overlaps, "", "an agent ran on two hosts at once");
        for mut worker in workers {
            worker.signal(Signal::TERM);
            wait_within(PATIENCE, "it ends", || !worker.is_alive());
        }
        self.forget_lost_hosts();
        for host in &hosts {
            host.world.run(&["fsck"]).succeeds();
        }
    }

    fn forget_lost_hosts(&self) {
        let others = || {
            let hosts = self.project.run(&["hosts", "--json"]).succeeds().json();
            let hosts = hosts.as_array().expect("a list").clone();
            hosts.into_iter().filter(|host| host["is_here"] == false).collect::<Vec<_>>()
        };
        wait_within(PATIENCE, "all leases end", || others().iter().all(|host| host["lease_ends"].is_null()));
        for host in others() {
            self.project.run(&["hosts", "forget", host["host"].as_str().expect("a name"), "--yes"]).succeeds();
        }
        assert_eq!(others(), Vec::<Value>::new());
    }

    /// Leaves a chain to any host: an agent, which calls another one, which asks.
    fn spawn(&mut self) {
        let number = self.chains.len();
        let alone = |name: &str| ALONE.replace("AGENT", &format!("{name}{number}"));
        let inner = format!("{}ask Shall I?\n{}reply inner said {{result}}\n", alone("inner"), "");
        self.project.file(format!("inner{number}.md"), inner);
        let outer = format!("{0}spawn inner{number}.md\nreply {{result}}\n", alone("outer"));
        let file = format!("outer{number}.md");
        self.project.file(&file, outer);
        let id = self.project.run(&["spawn", &file, "--on", "any"]).succeeds().stdout.trim().to_owned();
        self.chains.push(id);
    }

    fn answer(&self) {
        for (_, question) in self.project.questions() {
            // Its agent may have been lost in the meantime.
            self.project.run(&["answer", &question, "yes"]);
        }
    }

    fn unfinished(&self) -> Vec<Value> {
        let listed = self.project.run(&["ls", "--all", "--all-projects", "--json"]).succeeds().json();
        let chains = listed.as_array().expect("a list").clone();
        chains.into_iter().filter(|chain| chain["state"] != "done").collect()
    }
}

fn work(host: &Host) -> Running<'_> {
    host.world.command(["work"]).start()
}
