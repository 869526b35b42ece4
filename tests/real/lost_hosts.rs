//! Three hosts with the real `claude` share a server, while they are disturbed at random. Without `AGENT_CLI_TEST_SERVER`, this checks
//! nothing.

use std::path::Path;
use std::rc::Rc;

use crate::network::Network;
use crate::postgres;
use crate::small_disk::SmallDisk;
use crate::support::extent::sample_or_all;
use crate::support::{Conversation, Item, MessagesApi, NEWEST, RealHome, Turn, claude};
use crate::trial::{ALONE, Host, LEASE, Machine, Program, Trial};

/// In a sample and in a whole run.
const FAULTS: [usize; 2] = [10, 20];
const HOSTS: usize = 3;
const REPLY: &str = "inner said yes";

/// An agent works, calls another one, which works and asks, and replies what that one has replied.
fn model(said: &Conversation) -> Turn {
    let text = said.items().iter().filter_map(|item| match item {
        Item::User(text) | Item::Result { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = text.collect::<Vec<_>>().join("\n");
    let name = said.task().split_whitespace().find_map(|word| Some(word.rsplit_once('/')?.1.split_once(".md")?.0));
    let Some(name) = name else { return Turn::text("there is no task") };
    let (command, reply) = match name.strip_prefix("outer") {
        Some(number) => (format!("agent-cli spawn inner{number}.md"), REPLY),
        None => ("agent-cli ask 'Shall I?'".to_owned(), "yes"),
    };
    let works = format!("{}; echo {name} has worked", ALONE.replace("AGENT", name));
    if !text.contains(&format!("{name} has worked")) {
        Turn::bash(&works)
    } else if text.lines().any(|line| line.trim() == reply) {
        Turn::text(REPLY)
    } else {
        Turn::bash(&command)
    }
}

#[test]
fn no_chain_is_lost_and_no_agent_runs_twice() {
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_none() {
        return;
    }
    let url = postgres::new_database();
    let api = MessagesApi::start(model);
    let person = Rc::new(RealHome::new(api.url()));
    let project = person.project().to_owned();
    let shared = format!("{LEASE}shared-directories = [\"{}\"]\n", project.display());
    let of_person = || program(&person, &project, &person.home().join("state"), &url);
    let (home, command) = (Rc::clone(&person), of_person());
    let spawn = move |number| {
        for name in ["outer", "inner"] {
            home.write(&format!("{name}{number}.md"), "Do what the model does.");
        }
        let file = format!("outer{number}.md");
        let mut spawn = command(&["spawn", &file, "--on", "any", "--permission-mode", "bypassPermissions"]);
        let spawned = spawn.output().expect("it can be started");
        assert!(spawned.status.success(), "{spawned:?}");
        String::from_utf8(spawned.stdout).expect("an id").trim().to_owned()
    };
    let trial = Trial {
        hosts: (0..HOSTS).map(|_| host(&url, RealHome::new(api.url()), &person, &shared)).collect(),
        project: project.clone(),
        person: of_person(),
        spawn: Box::new(spawn),
        reply: REPLY,
    };
    trial.run(Trial::wanted(sample_or_all(FAULTS[0], FAULTS[1])));
}

fn host(url: &str, home: RealHome, person: &RealHome, shared: &str) -> Host {
    let (network, home) = (Network::new(url), Rc::new(home));
    // Agents use the API of this machine, so that they have its network.
    let disk = SmallDisk::new();
    let state = disk.as_ref().map_or(home.home(), SmallDisk::path).join("state");
    let program = program(&home, person.project(), &state, &network.url);
    let machine = Machine { network, disk, state, home: home.home().to_owned(), settings: shared.to_owned() };
    machine.prepare();
    Host { machine, program }
}

/// Commands in the project that all hosts share.
fn program(home: &Rc<RealHome>, project: &Path, state: &Path, url: &str) -> Program {
    let (home, project, state, url) = (Rc::clone(home), project.to_owned(), state.to_owned(), url.to_owned());
    Box::new(move |arguments| {
        let mut command = home.command(env!("CARGO_BIN_EXE_agent-cli"));
        command.current_dir(&project).env("AGENT_CLI_CLAUDE", claude(NEWEST)).env("AGENT_CLI_STATE_DIR", &state);
        command.env("AGENT_CLI_STORE", &url).args(arguments);
        command
    })
}
