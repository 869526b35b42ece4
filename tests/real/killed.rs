//! This program or `claude` is killed, or asked to stop, at various moments.

use rustix::process::Signal;

use crate::chain::{Chain, TEMPLATE};
use crate::processes::{Background, Gate, wait_until};
use crate::support::{Conversation, Hold, MessagesApi, Turn, follow, on_every_version};

const BYPASS: [&str; 4] = ["spawn", "ins.md", "--permission-mode", "bypassPermissions"];

on_every_version!(
    claude_outlives_its_runner_and_its_work_is_used,
    a_tool_call_in_which_claude_was_killed_is_named_to_the_agent,
    an_interrupt_stops_a_request,
    a_termination_stops_a_tool,
    a_permission_that_is_asked_for_after_the_runner_was_killed_waits_for_an_answer,
);

/// A chain whose agents' answers are held back once they have read their instructions.
fn held(version: &str) -> (Chain, Hold) {
    let hold = Hold::new();
    let held = hold.clone();
    let api = MessagesApi::start(move |conversation: &Conversation| {
        let turn = follow(conversation);
        if conversation.last_result().is_some() { turn.held(&held) } else { turn }
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    (chain, hold)
}

/// A chain whose agent waits at a gate, in a tool call.
fn gated(version: &str) -> (Chain, Gate) {
    let chain = Chain::new(version);
    let gate = Gate::new(chain.home.home().join("gate"));
    chain.home.write("ins.md", &format!("run {}\nreply {{result}}\n", gate.wait_command()));
    (chain, gate)
}

fn claude_outlives_its_runner_and_its_work_is_used(version: &str) {
    let (chain, hold) = held(version);
    let runner = chain.start(&["spawn", "ins.md"]);
    chain.api.wait_until(|requests| requests.len() == 2);
    let claude = runner.claude();
    let root = chain.only_root();
    is_driven_elsewhere(&chain, &root);
    runner.killed();
    is_driven_elsewhere(&chain, &root);
    assert!(claude.lives());

    hold.release();
    claude.has_ended();
    assert_eq!(chain.started(&["resume", &root]), root);
    assert_eq!(chain.api.count(), 2, "it read and asked, each once");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 3);
}

/// A second run of the program leaves the chain to the first, or to the `claude` that the first has left behind.
fn is_driven_elsewhere(chain: &Chain, root: &str) {
    let before = chain.api.count();
    let said = chain.run(&["resume", root]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "SGN_PEND_ONGOING\n"), "{said:?}");
    assert!(said.err.contains("is running"), "{said:?}");
    assert_eq!(chain.api.count(), before);
}

fn a_tool_call_in_which_claude_was_killed_is_named_to_the_agent(version: &str) {
    let (chain, gate) = gated(version);
    let runner = chain.start(&BYPASS);
    let tool = gate.reached();
    chain.has_written(r#""command":"echo $$ >"#);
    runner.claude().kill();
    let said = runner.ends();
    let root = chain.only_root();
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains("error: claude was killed by signal 9"), "{said:?}");
    assert!(said.err.contains(&format!("hint: agent-cli resume {} continues", &root[..8])), "{said:?}");

    // Claude Code does not end its tools: the runner ends those that remain.
    tool.has_ended();
    let resumed = chain.start(&["resume", &root]);
    gate.open();
    assert_eq!(resumed.ends().out, "go\n");
    let requests = chain.api.requests();
    assert_eq!(requests.len(), 4, "it read once, and called the tool twice");
    let resumed = requests[2].conversation();
    let prompt = resumed.last_user_text().unwrap();
    assert!(prompt.contains("This tool call was made then and may have taken effect"), "{prompt}");
    assert!(prompt.contains("\n- Bash: echo $$ > "), "{prompt}");
}

fn an_interrupt_stops_a_request(version: &str) {
    let (chain, hold) = held(version);
    let runner = chain.start(&["spawn", "ins.md"]);
    chain.api.wait_until(|requests| requests.len() == 2);
    let root = stopped(&chain, runner, Signal::INT);
    hold.release();
    assert_eq!(chain.started(&["resume", &root]), root);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 4, "only the request that was stopped is made again");
}

fn a_termination_stops_a_tool(version: &str) {
    let (chain, gate) = gated(version);
    let runner = chain.start(&BYPASS);
    let tool = gate.reached();
    // The first one lets the tool finish.
    runner.signal(Signal::TERM);
    let stop = chain.state().join("frames").join(chain.only_root()).join("stop");
    wait_until("the agent is told to stop", || stop.exists());
    let root = stopped(&chain, runner, Signal::TERM);
    tool.has_ended();
    gate.open();
    assert_eq!(chain.ok(&["resume", &root]), "go\n");
}

/// Stops the chain as a person does, and returns its root.
fn stopped(chain: &Chain, runner: Background, signal: Signal) -> String {
    let claude = runner.claude();
    runner.signal(signal);
    let said = runner.ends();
    let root = chain.only_root();
    assert_eq!((said.code, said.out.as_str()), (Some(130), ""), "{said:?}");
    assert!(said.err.contains(&format!("hint: agent-cli resume {} continues", &root[..8])), "{said:?}");
    assert!(!claude.lives());
    root
}

fn a_permission_that_is_asked_for_after_the_runner_was_killed_waits_for_an_answer(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| match said.last_result() {
            Some(result) => Turn::text(result),
            None => Turn::bash("echo x >> made; echo ran").held(&held),
        }),
    );
    chain.home.write("ins.md", "Do what the model does.");
    let runner = chain.start(&["spawn", "ins.md", "--on-permission", "ask"]);
    chain.api.wait_until(|requests| requests.len() == 1);
    let claude = runner.claude();
    let root = chain.only_root();
    runner.killed();
    hold.release();
    claude.has_ended();
    assert_eq!(chain.started(&["resume", &root]), root);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert!(!chain.home.project().join("made").exists());
    chain.answer("allow");
    assert_eq!(chain.ok(&["resume", &root]), "ran\n");
    assert_eq!(std::fs::read_to_string(chain.home.project().join("made")).unwrap(), "x\n");
}
