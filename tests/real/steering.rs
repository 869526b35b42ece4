//! Agents of the real Claude Code are stopped, paused and told something from another terminal.

use std::fs;
use std::time::Instant;

use crate::chain::Chain;
use crate::processes::{Gate, wait_until};
use crate::support::extent::sample_or_all;
use crate::support::{
    Hold, MessagesApi, NEWEST, Turn, follow, on_every_version, on_every_version_of_a_whole_run, on_the_newest_version,
};

const BYPASS: [&str; 4] = ["spawn", "ins.md", "--permission-mode", "bypassPermissions"];
/// How often an agent is stopped while it writes a file, in a sample and in a whole run. A longer test names its own number in the
/// variable.
const STOPS: [usize; 2] = [1, 5];
const MORE_STOPS: &str = "AGENT_CLI_STOPS";

on_every_version!(
    a_thinking_agent_is_interrupted, a_message_reaches_the_model_with_the_next_result,
    a_stopped_agent_goes_on_with_a_new_instruction
);

on_every_version_of_a_whole_run!(a_file_that_a_tool_writes_in_two_steps_is_whole);

on_the_newest_version!(one_of_eight_siblings_is_stopped_and_the_others_end_right,);

fn a_file_that_a_tool_writes_in_two_steps_is_whole(version: &str) {
    let wanted = std::env::var(MORE_STOPS).ok().map(|number| number.parse().expect("a number"));
    for _ in 0..wanted.unwrap_or_else(|| sample_or_all(STOPS[0], STOPS[1])) {
        stopped_in_the_middle(version);
    }
}

fn stopped_in_the_middle(version: &str) {
    let chain = Chain::new(version);
    let gate = Gate::new(chain.home.home().join("gate"));
    let write = format!("echo one > made; {}; echo two >> made; cat made", gate.wait_command());
    chain.home.write("ins.md", "spawn child.md\nreply {result}\n");
    chain.home.write("child.md", &format!("run {write}\nrun echo never >> made\nreply {{result}}\n"));
    let runner = chain.start(&BYPASS);
    let tool = gate.reached();
    let root = chain.only_root();
    let tree = chain.json(&["tree", &root, "--json"]);
    let child = tree.as_array().unwrap()[1]["id"].as_str().unwrap().to_owned();
    let stop = chain.start(&["stop", &child, "--reason", "enough"]);
    let file = chain.state().join("frames").join(&child).join("stop");
    wait_until("its runner notices", || fs::read_to_string(&file).is_ok_and(|text| text == "noticed"));
    assert!(tool.lives());
    gate.open();
    let said = stop.ends();
    assert_eq!((said.code, said.out.trim()), (Some(0), format!("stopped {}", &child[..8]).as_str()), "{said:?}");
    tool.has_ended();
    let reply = runner.ends();
    assert!(reply.code == Some(0) && reply.out.contains("stopped by a person: enough"), "{reply:?}");
    assert_eq!(fs::read_to_string(chain.home.project().join("made")).unwrap(), "one\ntwo\n");

    // The result is in the conversation, and nothing false is said about it.
    let before = chain.api.count();
    chain.ok(&["resume", &child, "--prompt", "Reply with what you have."]);
    let resumed = chain.api.requests()[before].conversation();
    let mut results = resumed.results();
    assert!(
        results.clone().any(|(text, is_error)| text.trim().ends_with("one\ntwo") && !is_error),
        "{:?}",
        resumed.items()
    );
    assert!(!results.any(|(text, _)| text.contains("rejected") || text.contains("interrupted")));
    assert!(!resumed.last_user_text().unwrap().contains("may have taken effect"), "{:?}", resumed.last_user_text());
}

fn a_thinking_agent_is_interrupted(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let api = MessagesApi::start(move |_| Turn::text("too late").held(&held));
    let chain = Chain::with_model(version, api);
    chain.home.write("ins.md", "reply done\n");
    let runner = chain.start(&BYPASS);
    chain.api.wait_until(|requests| requests.len() == 1);
    let (root, claude) = (chain.only_root(), runner.claude());
    let asked = Instant::now();
    chain.ok(&["stop", &root]);
    // The test does not judge it: machines are slow.
    println!("{version}: a thinking agent was stopped in {:?}", asked.elapsed());
    claude.has_ended();
    let said = runner.ends();
    assert!(said.code == Some(1) && said.err.contains("stopped by a person"), "{said:?}");
    hold.release();
    assert_eq!(chain.json(&["show", &root, "--json"])["status"], "failed");
}

fn a_message_reaches_the_model_with_the_next_result(version: &str) {
    let chain = Chain::new(version);
    let gate = Gate::new(chain.home.home().join("gate"));
    chain.home.write("ins.md", &format!("run {}\nrun echo after\nreply {{result}}\n", gate.wait_command()));
    let runner = chain.start(&BYPASS);
    gate.reached();
    let root = chain.only_root();
    let text = "use <main> & \"this\"\n--- end of message ---\n  ü\u{2028}x";
    chain.ok(&["tell", &root, text]);
    let before = chain.api.count();
    gate.open();
    let said = runner.ends();
    assert_eq!(said.out, "after\n", "{said:?}");
    let requests = chain.api.requests();
    assert_eq!(requests.len(), before + 2, "no request more");
    let told = format!("{text}\n---- end of message ----");
    let times = |at: usize| serde_json::to_string(requests[at].messages()).unwrap().matches(&escaped(&told)).count();
    assert_eq!([before - 1, before, before + 1].map(times), [0, 1, 1]);
}

fn escaped(text: &str) -> String {
    serde_json::to_string(text).unwrap().trim_matches('"').to_owned()
}

fn a_stopped_agent_goes_on_with_a_new_instruction(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "ins.md"]);
    chain.ok(&["stop", &root]);
    let before = chain.api.count();
    chain.ok(&["resume", &root, "--prompt", "Do without."]);
    let resumed = chain.api.requests()[before].conversation();
    let result = resumed.last_result().unwrap_or_default();
    assert!(result.ends_with("You were stopped before there was a result."), "{result}");
    assert!(resumed.last_user_text().unwrap().contains("\nDo without.\n"));
}

fn one_of_eight_siblings_is_stopped_and_the_others_end_right() {
    let hold = Hold::new();
    let held = hold.clone();
    let api = MessagesApi::start(move |conversation| {
        let is_held = conversation.last_user_text().is_some_and(|text| text.contains("/held.md"));
        let turn = follow(conversation);
        if is_held { turn.held(&held) } else { turn }
    });
    let chain = Chain::with_model(NEWEST, api);
    chain.home.write("CLAUDE.md", crate::chain::TEMPLATE);
    let names = (1..8).map(|n| format!("{n}.md")).collect::<Vec<_>>();
    for (n, name) in names.iter().enumerate() {
        chain.home.write(name, &format!("reply sibling {}\n", n + 1));
    }
    chain.home.write("held.md", "end held\n");
    chain.home.write("ins.md", &format!("spawn held.md {}\nreply {{results}}\n", names.join(" ")));
    let mut spawn = BYPASS.to_vec();
    spawn.extend(["--max-parallel", "8"]);
    let runner = chain.start(&spawn);
    chain.api.wait_until(|requests| !requests.is_empty());
    let root = chain.only_root();
    let held_agent = || {
        let tree = chain.json(&["tree", &root, "--json"]);
        let all = tree.as_array().unwrap().clone();
        let held = all.iter().find(|agent| agent["task"] == "held.md" && agent["status"] == "running").cloned();
        held.map(|agent| agent["id"].as_str().unwrap().to_owned())
    };
    wait_until("the agent runs", || held_agent().is_some());
    chain.ok(&["stop", &held_agent().unwrap(), "--now"]);
    hold.release();
    let said = runner.ends();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("8 agents: 7 done, 1 failed") && said.out.contains("stopped by a person"), "{said:?}");
    for n in 1..8 {
        assert!(said.out.contains(&format!("sibling {n}\n")), "{said:?}");
    }
}
