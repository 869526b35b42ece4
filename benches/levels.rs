//! What a level of a chain costs: four agents, each of which starts the next, beside a `claude -p` that starts the next one with
//! Bash. Both make the same requests to the scripted API, and take turns.
//!
//! ```sh
//! cargo bench --bench levels            # 7 rounds
//! cargo bench --bench levels -- 20
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{Conversation, MessagesApi, NEWEST, RealHome, Turn, claude};

const ROUNDS: usize = 7;
const DEPTH: u32 = 4;
const REPLY: &str = "Jan 1st";

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let program = claude(NEWEST);
    let started = program.display().to_string();
    let plain = move |depth| format!("'{started}' -p 'depth {depth}' --permission-mode bypassPermissions");
    let plain_first = plain(1);
    let chained = |depth| format!("agent-cli spawn --prompt 'depth {depth}'");
    let (of_plain, of_chain) = (MessagesApi::start(model(plain)), MessagesApi::start(model(chained)));
    let (plain_home, home) = (RealHome::new(of_plain.url()), RealHome::new(of_chain.url()));
    let agent_cli = |linger: &str| {
        let mut command = home.command(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(["spawn", "--prompt", "depth 1", "--linger", linger]);
        command.env("AGENT_CLI_CLAUDE", &program).env("AGENT_CLI_STATE_DIR", home.home().join("state"));
        command
    };
    let nested = || {
        let mut command = plain_home.command("sh");
        command.args(["-c", &plain_first]);
        command
    };
    let mut took: [Vec<Duration>; 3] = Default::default();
    for _ in 0..=rounds {
        took[0].push(run(nested()));
        took[1].push(run(agent_cli("20s")));
        took[2].push(run(agent_cli("0")));
    }
    let medians = took.map(|times| median(times.into_iter().skip(1).collect()));
    for (name, time) in ["claude -p in claude -p", "lingering", "suspended"].into_iter().zip(medians) {
        println!("{name:<24} {:.2} s, ratio {:.2}", time.as_secs_f64(), time.as_secs_f64() / medians[0].as_secs_f64());
    }
}

/// Agents that are told how deep they are: each starts the next, and the last replies.
fn model(start: impl Fn(u32) -> String + Send + Sync + 'static) -> impl Fn(&Conversation) -> Turn + Send + Sync {
    move |conversation| {
        let depth = conversation.user_texts().find_map(|text| text.trim().strip_prefix("depth ")?.parse::<u32>().ok());
        match (conversation.results().next(), depth) {
            (Some((text, _)), _) => Turn::text(text.trim()),
            (None, Some(DEPTH)) => Turn::text(REPLY),
            (None, Some(depth)) => Turn::bash(&start(depth + 1)),
            (None, None) => Turn::text("I was told nothing."),
        }
    }
}

fn run(mut command: Command) -> Duration {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("the program can be started");
    let took = began.elapsed();
    let reply = String::from_utf8_lossy(&output.stdout);
    assert_eq!(reply.trim(), REPLY, "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
