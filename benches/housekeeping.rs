//! The time of `gc --dry-run`, `fsck` and `gc` with this many frames in the database, and with twice as many: twice the time
//! means linear.
//!
//! ```sh
//! cargo bench --bench housekeeping            # 50,000 and 100,000 frames
//! cargo bench --bench housekeeping -- 1000
//! ```

#[path = "support/chains.rs"]
#[allow(dead_code, reason = "each benchmark uses a part")]
mod chains;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use chains::{DEPTH, WAITS, copies};

const FRAMES: usize = 50_000;
fn main() {
    let frames = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(FRAMES);
    let [once, twice] = [frames, 2 * frames].map(measure);
    for (name, (one, two)) in ["gc --dry-run", "fsck", "gc"].into_iter().zip(once.into_iter().zip(twice)) {
        let (one, two) = (one.as_secs_f64(), two.as_secs_f64());
        println!("{name:<14} {frames} frames {one:.2} s, {} frames {two:.2} s, ratio {:.2}", 2 * frames, two / one);
    }
}

/// The time of each command, in the order in which they are run.
fn measure(frames: usize) -> [Duration; 3] {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let transcripts = folder.path().join("claude/projects/-project");
    fs::create_dir_all(&transcripts).expect("the folder can be written to");
    copies(&state, frames / DEPTH);
    write_files(&state, &transcripts);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).env("AGENT_CLI_STATE_DIR", &state);
        command.env("CLAUDE_CONFIG_DIR", folder.path().join("claude")).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let status = command.status().expect("the program can be started");
        assert!(status.success(), "{arguments:?}");
        began.elapsed()
    };
    let took = [run(&["gc", "--older-than", "0s", "--dry-run"]), run(&["fsck"]), run(&["gc", "--older-than", "0s"])];
    let database = Connection::open(state.join("agent-cli.db")).expect("a database");
    let stay: u32 = database.query_row("SELECT count(*) FROM frames", [], |row| row.get(0)).expect("it can be read");
    assert_eq!(stay as usize, (frames / DEPTH) / WAITS * DEPTH, "only what is done is removed");
    took
}

/// The content of the state directory for each frame, and of Claude Code's folder for each session.
fn write_files(state: &Path, transcripts: &Path) {
    let database = Connection::open(state.join("agent-cli.db")).expect("a database");
    let mut statement = database.prepare("SELECT id, checkpoint FROM frames").expect("a table");
    let mut rows = statement.query([]).expect("a table");
    while let Some(row) = rows.next().expect("a row") {
        let (id, session): (String, String) = (row.get(0).expect("an id"), row.get(1).expect("a session"));
        let folder = state.join("frames").join(id);
        fs::create_dir_all(&folder).expect("the folder can be written to");
        let write = |path: PathBuf| fs::write(path, "{}\n").expect("the folder can be written to");
        ["out.ndjson", "err.log", &format!("{session}.jsonl")].into_iter().for_each(|name| write(folder.join(name)));
        write(transcripts.join(format!("{session}.jsonl")));
    }
    drop(Command::new("chmod").args(["-R", "go="]).arg(state).status());
}
