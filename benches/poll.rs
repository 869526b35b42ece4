//! The cost of a poll and of lists while chains wait: `agent-cli resume` of one of them, `resume --all`, `ls` and `questions`,
//! with 10,000 frames in the database, as ratios to the start and end of an empty program.
//!
//! ```sh
//! cargo bench --bench poll                # 10,000 frames
//! cargo bench --bench poll -- 100000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
mod support;

use std::process::{Command, Stdio};

use chains::{DEPTH, fill};

const FRAMES: usize = 10_000;
const RUNS: usize = 300;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let frames = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(FRAMES);
    println!("filling the database with {frames} frames in chains of {DEPTH}");
    let chain = fill(&state, frames).to_string();

    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).env("AGENT_CLI_STATE_DIR", &state).stdin(Stdio::null());
        command
    };
    let said = command(&["resume", &chain]).output().expect("the program can be started");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "SGN_PEND_ONGOING\n");

    let empty = support::empty_program(folder.path());
    for (name, arguments) in [
        ("resume ID", &["resume", &chain][..]),
        ("resume --all", &["resume", "--all"]),
        ("ls", &["ls", "--all-projects"]),
        ("questions", &["questions", "--all-projects"]),
    ] {
        support::compare(name, &empty, RUNS, |_| command(arguments));
    }
}
