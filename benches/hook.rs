//! The cost of `agent-cli hook`, which Claude Code runs before each tool call that may be a request, as a ratio to the start
//! and end of an empty program.
//!
//! ```sh
//! cargo bench --bench hook
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use agent_cli::records::{Caller, Lease, SessionId, Store};

use chains::{begin, new_frame};

const RUNS: usize = 300;

/// A request, and a command that only mentions one.
const REQUEST: &str = "agent-cli ask 'When is your birthday?'";
const OTHER: &str = "git log --grep 'agent-cli ask'";

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    // The runner of an agent has the database open as long as the agent is running.
    let store = Store::open(&state).expect("the folder can be written to");
    let (caller, _lease) = running(&store);
    let hook = |command: &str, run: usize| {
        let mut hook = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        hook.arg("hook")
            .env("AGENT_CLI_STATE_DIR", &state)
            .env("AGENT_CLI_AGENT_ID", caller.frame.to_string())
            .env("AGENT_CLI_ATTEMPT", caller.attempt.to_string())
            .stdin(Stdio::from(input(folder.path(), command, run)));
        hook
    };
    // A warm-up run, which is not measured.
    let says = |command| hook(command, RUNS).output().expect("the program can be started").stdout;
    assert!(String::from_utf8_lossy(&says(REQUEST)).contains("\"defer\""));
    assert!(says(OTHER).is_empty());

    let empty = support::empty_program(folder.path());
    support::compare("a request, recorded and deferred", &empty, RUNS, |run| hook(REQUEST, run));
    support::compare("another command, let through", &empty, RUNS, |run| hook(OTHER, run));
}

/// The input of the hook: a new call each time.
fn input(folder: &Path, command: &str, run: usize) -> File {
    let file = folder.join("input.json");
    let call = serde_json::json!({
        "session_id": "4f2c1a90-0000-4000-8000-000000000000",
        "transcript_path": "/project/4f2c1a90.jsonl",
        "cwd": folder,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Ask the user"},
        "tool_use_id": format!("toolu_{run}"),
    });
    fs::write(&file, call.to_string()).expect("the folder can be written to");
    File::open(file).expect("it was just written")
}

/// A running agent, and the lease on its frame: its output file exists and is empty.
fn running(store: &Store) -> (Caller, Lease) {
    let frame = store.create(&new_frame(), None).expect("a frame can be made");
    let lease = Lease::try_take(store.dir(), frame).expect("the folder can be written to");
    (begin(store, frame, SessionId::from(frame)), lease.expect("nobody else has it"))
}
