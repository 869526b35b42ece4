//! Agents in the background: eight of them take 5 s each, beside a caller that takes 5 s, and at most four run at a time. Prints how long
//! the chain took in such rounds, of which nine agents need at least 2.25, and how long the new agents took to start.
//!
//! ```sh
//! cargo bench --bench background            # 3 times
//! cargo bench --bench background -- 10
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use support::{Conversation, MessagesApi, NEWEST, RealHome, Turn, claude};

const TIMES: usize = 3;
const CHILDREN: usize = 8;
const WORKS: Duration = Duration::from_secs(5);

fn main() {
    let times = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(TIMES);
    let (program, api) = (claude(NEWEST), MessagesApi::start(model));
    for _ in 0..times {
        let home = RealHome::new(api.url());
        let agent_cli = |arguments: &[&str]| {
            let mut command = home.command(env!("CARGO_BIN_EXE_agent-cli"));
            command.args(arguments).env("AGENT_CLI_CLAUDE", &program);
            command.env("AGENT_CLI_STATE_DIR", home.home().join("state"));
            printed(command)
        };
        let began = Instant::now();
        let spawn = ["spawn", "--prompt", "call", "--max-parallel", "4", "--permission-mode", "bypassPermissions"];
        let reply = agent_cli(&spawn);
        let rounds = began.elapsed().as_secs_f64() / WORKS.as_secs_f64();
        assert_eq!(reply.matches("is done:").count(), CHILDREN, "{reply}");
        let chains: Value = serde_json::from_str(&agent_cli(&["ls", "--all", "--json"])).expect("a list");
        let root = chains[0]["id"].as_str().expect("an id");
        let tree: Value = serde_json::from_str(&agent_cli(&["tree", root, "--json"])).expect("a tree");
        let starts = tree.as_array().into_iter().flatten().skip(1).map(|agent| {
            let shown = agent_cli(&["show", agent["id"].as_str().expect("an id"), "--json"]);
            let shown: Value = serde_json::from_str(&shown).expect("an agent");
            let time = |value: &Value| value.as_str().and_then(|time| time.parse::<Timestamp>().ok()).expect("a time");
            time(&shown["sessions"][0]["began"]).duration_since(time(&shown["created"]))
        });
        // Those that find a place at once.
        let first = starts.min().expect("an agent in the background");
        println!("{rounds:.2} rounds; the first agent began {} ms after it was called", first.as_millis());
    }
}

/// The caller calls all others in one message, works, and joins them.
fn model(said: &Conversation) -> Turn {
    let (results, work) = (said.result_texts(), format!("sleep {}", WORKS.as_secs()));
    match (said.task().contains("child"), results.as_slice()) {
        (true, []) | (false, [_, _, _, _, _, _, _, _]) => Turn::bash(&work),
        (true, _) => Turn::text("done"),
        (false, []) => {
            let call = || "agent-cli spawn --background --prompt child";
            (1..CHILDREN).fold(Turn::bash(call()), |turn, _| turn.and_bash(call()))
        }
        (false, [ids @ .., _]) if results.len() == CHILDREN + 1 => {
            let ids: String = ids.iter().map(|id| format!(" --agent {}", id.trim())).collect();
            Turn::bash(&format!("agent-cli wait{ids} --all"))
        }
        (false, [.., replies]) => Turn::text(*replies),
    }
}

fn printed(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
