//! A chain waits so long that Claude Code deletes its session, its folder moves, or it moves to another machine. What its agent
//! knew is still there, a large result of a tool with it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_chain_outlives_the_cleanup_of_claude_code, a_chain_outlives_its_folder_in_claude_code,
    a_chain_goes_to_another_home_and_project, a_chain_goes_with_a_moved_configuration
);

/// Has a large result, asks, and when it has the answer, reads the large result again.
fn model(said: &Conversation) -> Turn {
    match *said.result_texts() {
        [] => Turn::bash("cat large"),
        [_] => Turn::bash("agent-cli ask 'When?'"),
        [large, _] => {
            let place = large.split_once("saved to: ").and_then(|(_, rest)| rest.lines().next());
            place.map_or(Turn::text("the result was not large"), |place| {
                Turn::call("Read", json!({"file_path": place, "offset": 3000, "limit": 1}))
            })
        }
        [_, answer, read, ..] if read.contains("0123456789abcdef") => Turn::text(answer),
        [_, _, read, ..] => Turn::text(format!("it is lost: {read}")),
    }
}

/// A chain that has a large result and waits for an answer, and its root.
fn paused(version: &str) -> (Chain, String) {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("large", &"0123456789abcdef\n".repeat(3000));
    chain.home.write("ins.md", "Do what you do.\n");
    let root = chain.started(&["spawn", "ins.md"]);
    (chain, root)
}

fn goes_on(chain: &Chain, root: &str) {
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", root]), "Jan 1st\n");
    chain.ok(&["fsck"]);
}

fn a_chain_outlives_its_folder_in_claude_code(version: &str) {
    let (chain, root) = paused(version);
    fs::remove_dir_all(chain.home.home().join(".claude")).unwrap();
    goes_on(&chain, &root);
}

fn a_chain_outlives_the_cleanup_of_claude_code(version: &str) {
    let (chain, root) = paused(version);
    let claude = chain.home.home().join(".claude");
    let transcript = chain.home.transcript(&root).unwrap();
    let old = SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for file in files_below(&transcript.with_extension("")).iter().chain([&transcript]) {
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    fs::write(claude.join("settings.json"), json!({"cleanupPeriodDays": 30}).to_string()).unwrap();
    let _ = fs::remove_file(claude.join(".last-cleanup"));
    // Another session, which lives until the cleanup has come.
    let other = Chain::with_model(
        version,
        MessagesApi::start({
            let transcript = transcript.clone();
            move |_| {
                let deadline = Instant::now() + Duration::from_secs(120);
                while transcript.exists() && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Turn::text("done")
            }
        }),
    );
    chain.home.write("other.md", "x");
    let mut command = chain.command();
    command.env("ANTHROPIC_BASE_URL", other.api.url()).args(["spawn", "other.md"]);
    assert!(command.output().unwrap().status.success());
    assert!(!transcript.exists(), "Claude Code has cleaned it up");
    goes_on(&chain, &root);
}

fn a_chain_goes_with_a_moved_configuration(version: &str) {
    let (chain, root) = paused(version);
    let (old, new) = (chain.home.home().join(".claude"), chain.home.home().join("my config"));
    fs::rename(&old, &new).unwrap();
    chain.answer("Jan 1st");
    let output = chain.command().env("CLAUDE_CONFIG_DIR", &new).args(["resume", &root]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Jan 1st\n");
    assert!(!old.join("projects").exists());
}

fn a_chain_goes_to_another_home_and_project(version: &str) {
    let (there, root) = paused(version);
    let archive = there.home.home().join("chain.tar");
    there.ok(&["export", &root, "-o", archive.to_str().unwrap()]);
    let here = Chain::with_model(version, MessagesApi::start(model));
    let moved = format!("{}={}", there.home.project().display(), here.home.project().display());
    assert_eq!(here.ok(&["import", "--trust", archive.to_str().unwrap(), "--cwd", &moved]), format!("{root}\n"));
    drop(there);
    goes_on(&here, &root);
    let place = here.home.transcript(&root).unwrap().with_extension("").join("tool-results");
    assert_eq!(files_below(&place).len(), 1);
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
