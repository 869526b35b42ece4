//! A person stops this program while a tool of the real Claude Code runs.

use std::fs;

use rustix::process::Signal;

use crate::chain::Chain;
use crate::processes::{Background, Gate, wait_until};
use crate::support::{on_every_version, on_every_version_of_a_whole_run};

const BYPASS: [&str; 4] = ["spawn", "ins.md", "--permission-mode", "bypassPermissions"];

/// A chain whose agent waits at a gate, in a tool call that then ends so.
fn gated(version: &str, end: &str) -> (Chain, Gate) {
    let chain = Chain::new(version);
    let gate = Gate::new(chain.home.home().join("gate"));
    let command = format!("echo run >> runs; {}; {end}", gate.wait_command());
    chain.home.write("ins.md", &format!("run {command}\nreply {{result}}\n"));
    (chain, gate)
}

fn stopped_once(chain: &Chain, runner: &Background, signal: Signal) -> String {
    let root = chain.only_root();
    runner.signal(signal);
    let stop = chain.state().join("frames").join(&root).join("stop");
    wait_until("the agent is told to stop", || stop.exists());
    root
}

fn runs(chain: &Chain) -> String {
    fs::read_to_string(chain.home.project().join("runs")).unwrap()
}

on_every_version!(the_running_tool_finishes_and_is_not_repeated);

on_every_version_of_a_whole_run!(a_second_signal_kills_the_tool_which_is_named, a_tool_that_fails_finishes_too);

fn the_running_tool_finishes_and_is_not_repeated(version: &str) {
    let (chain, gate) = gated(version, "touch made");
    let runner = chain.start(&BYPASS);
    let tool = gate.reached();
    let root = stopped_once(&chain, &runner, Signal::INT);
    assert!(tool.lives());
    gate.open();
    let said = runner.ends();
    assert_eq!((said.code, said.out.as_str()), (Some(130), ""), "{said:?}");
    assert!(
        said.err.contains(&format!("stopping: waiting for the running tool of {} (Bash: ", &root[..8])),
        "{said:?}"
    );
    assert!(chain.home.project().join("made").exists());
    assert_eq!(chain.api.count(), 2, "the model is not asked any more");

    assert_eq!(chain.json(&["show", &root, "--json"])["status"], "cancelled");
    assert_eq!(chain.ok(&["resume", &root]), "go\n");
    assert_eq!((runs(&chain).as_str(), chain.api.count()), ("run\n", 3));
    let resumed = chain.api.requests()[2].conversation();
    assert_eq!(resumed.last_result(), Some("go"));
}

fn a_tool_that_fails_finishes_too(version: &str) {
    let (chain, gate) = gated(version, "touch made; exit 3");
    let runner = chain.start(&BYPASS);
    gate.reached();
    stopped_once(&chain, &runner, Signal::HUP);
    gate.open();
    assert_eq!(runner.ends().code, Some(130));
    assert!(chain.home.project().join("made").exists());
    assert_eq!((runs(&chain).as_str(), chain.api.count()), ("run\n", 2));
}

fn a_second_signal_kills_the_tool_which_is_named(version: &str) {
    let (chain, gate) = gated(version, "touch made");
    let runner = chain.start(&BYPASS);
    let tool = gate.reached();
    let root = stopped_once(&chain, &runner, Signal::INT);
    runner.signal(Signal::INT);
    assert_eq!(runner.ends().code, Some(130));
    tool.has_ended();
    assert!(!chain.home.project().join("made").exists());
    gate.open();
    assert_eq!(chain.ok(&["resume", &root]), "go\n");
    let requests = chain.api.requests();
    let resumed = requests[2].conversation();
    let prompt = resumed.last_user_text().unwrap();
    assert!(prompt.contains("may have taken effect, even if the conversation says that it was rejected"), "{prompt}");
    assert!(prompt.contains("\n- Bash: echo run >> runs; "), "{prompt}");
}
