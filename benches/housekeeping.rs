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

use agent_cli::records::Store;
use rusqlite::Connection;

use chains::{DEPTH, chain};

const FRAMES: usize = 50_000;
/// One of this many chains still waits for an answer.
const WAITS: usize = 5;

/// Columns that contain the id of a frame, an attempt or a request of the same chain.
const TABLES: [(&str, &[&str]); 7] = [
    ("chains", &["root"]),
    ("frames", &["id", "parent", "root", "checkpoint"]),
    ("attempts", &["id", "session", "frame", "resumed"]),
    ("requests", &["id", "frame", "attempt"]),
    ("answers", &["question"]),
    ("replies", &["frame"]),
    ("events", &["frame"]),
];

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
    fill(&state, frames / DEPTH);
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

/// Copies two chains that are created with the program itself: one that is done, and one that waits.
fn fill(state: &Path, chains: usize) {
    let store = Store::open(state).expect("the folder can be written to");
    let (done, waits) = (chain(&store, true), chain(&store, false));
    drop(store);
    let database = Connection::open(state.join("agent-cli.db")).expect("a database");
    database.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN").expect("own database");
    for (table, ids) in TABLES {
        let columns: Vec<String> = {
            let mut statement = database.prepare(&format!("PRAGMA table_info({table})")).expect("a table");
            let names = statement.query_map([], |row| row.get::<_, String>("name")).expect("columns");
            names.map(|name| name.expect("text")).filter(|name| name != "seq").collect()
        };
        let value = |name: &String| match ids.contains(&name.as_str()) {
            true => format!("printf('%08x', k.value) || substr(t.{name}, 9)"),
            false if table == "requests" && name == "detail" => {
                let child = "printf('%08x', k.value) || substr(t.child, 9)";
                format!("CASE WHEN t.child IS NULL THEN t.detail ELSE json_set(t.detail, '$.spawn.child', {child}) END")
            }
            false if table == "requests" && name == "state" => {
                let attempt = "printf('%08x', k.value) || substr(t.delivered_in, 9)";
                format!("json_replace(t.state, '$.attempt', {attempt})")
            }
            false => format!("t.{name}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        let of = match table {
            "answers" => {
                "t.question IN (SELECT r.id FROM requests AS r JOIN frames AS f ON f.id = r.frame WHERE f.root = ?1)"
            }
            "chains" | "frames" => "t.root = ?1",
            _ => "t.frame IN (SELECT id FROM frames WHERE root = ?1)",
        };
        let copy = format!(
            "WITH RECURSIVE k (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM k WHERE value < ?2)
             INSERT INTO {table} ({}) SELECT {} FROM k CROSS JOIN {table} AS t
             WHERE {of} AND (k.value % {WAITS} = 0) = ?3",
            columns.join(", "),
            values.join(", ")
        );
        for (root, is_waiting) in [(done, false), (waits, true)] {
            database.execute(&copy, (root.to_string(), chains as u32, is_waiting)).expect("rows can be copied");
        }
    }
    // The two originals are no longer needed.
    for (table, of) in [
        (
            "answers",
            "question IN (SELECT id FROM requests WHERE frame IN (SELECT id FROM frames WHERE root IN (?1, ?2)))",
        ),
        ("requests", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("attempts", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("replies", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("frames", "root IN (?1, ?2)"),
        ("chains", "root IN (?1, ?2)"),
    ] {
        database
            .execute(&format!("DELETE FROM {table} WHERE {of}"), (done.to_string(), waits.to_string()))
            .expect("rows");
    }
    database.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").ok();
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
