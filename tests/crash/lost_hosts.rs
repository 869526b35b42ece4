//! Three hosts, whose clocks differ, share a server, while they are disturbed at random. If root runs it, they have networks of their own.
//! Without `AGENT_CLI_TEST_SERVER`, this checks nothing.

use std::rc::Rc;

use crate::extent::sample_or_all;
use crate::network::Network;
use crate::postgres;
use crate::skewed_clock::off_by;
use crate::small_disk::SmallDisk;
use crate::trial::{ALONE, Host, LEASE, Machine, Program, Trial};
use crate::world::World;

/// In a sample and in a whole run.
const FAULTS: [usize; 2] = [15, 40];
/// How far the clocks of the hosts are off, in seconds.
const CLOCKS: [&str; 3] = ["+0", "+240", "-240"];

#[test]
fn no_chain_is_lost_and_no_agent_runs_twice() {
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_none() {
        return;
    }
    let url = postgres::new_database();
    // Where all agents work.
    let project = Rc::new(World::with_hooks().with("AGENT_CLI_STORE", &url));
    let settings = format!("{LEASE}shared-directories = [\"{}\"]\n", project.project().display());
    let trial = Trial {
        hosts: CLOCKS.map(|clock| host(&url, clock, &settings)).into(),
        project: project.project(),
        person: program_of(&project),
        spawn: Box::new(move |number| spawn(&project, number)),
        reply: "inner said yes",
    };
    trial.run(Trial::wanted(sample_or_all(FAULTS[0], FAULTS[1])));
}

fn host(url: &str, clock: &str, settings: &str) -> Host {
    let network = Network::of_a_host(url);
    let disk = SmallDisk::new();
    let world = disk.as_ref().map_or_else(World::with_hooks, |disk| World::with_hooks_in(disk.path()));
    let world = world.within(network.enter()).with("AGENT_CLI_STORE", &network.url);
    let world = off_by(clock).into_iter().fold(world, |world, (name, value)| world.with(name, value));
    let machine = Machine { network, disk, state: world.state(), home: world.home(), settings: settings.to_owned() };
    machine.prepare();
    Host { machine, program: program_of(&Rc::new(world)) }
}

fn program_of(world: &Rc<World>) -> Program {
    let world = Rc::clone(world);
    Box::new(move |arguments| world.command(arguments).into_command())
}

/// An agent, which calls another one, which asks.
fn spawn(project: &World, number: usize) -> String {
    let alone = |name: &str| format!("run {}\n", ALONE.replace("AGENT", &format!("{name}{number}")));
    let inner = format!("{}ask Shall I?\nreply inner said {{result}}\n", alone("inner"));
    project.file(format!("inner{number}.md"), inner);
    let outer = format!("{}spawn inner{number}.md\nreply {{result}}\n", alone("outer"));
    let file = format!("outer{number}.md");
    project.file(&file, outer);
    project.run(&["spawn", &file, "--on", "any"]).succeeds().stdout.trim().to_owned()
}
