//! `gc`: removes what finished long ago, and nothing else.

use std::fs;
use std::process::{Command, Stdio};

use crate::programs;
use crate::world::{World, files_below};

/// A world with a chain that is done, and its root.
fn done() -> (World, String) {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    (world, id)
}

fn gc(world: &World, arguments: &[&str]) -> serde_json::Value {
    let all = [&["gc", "--json"], arguments].concat();
    world.run(&all).succeeds().json()
}

/// A table with its sizes replaced: the sizes of transcripts depend on the length of paths.
fn sizeless(text: &str) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let is_size = |at: usize| words.get(at + 1).is_some_and(|unit| ["B", "kB", "MB"].contains(unit));
        let shown = words.iter().enumerate().map(|(at, word)| if is_size(at) { "[N]" } else { word });
        shown.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_chain_that_is_done_goes_with_all_its_files() {
    let (world, id) = done();
    assert_eq!(world.transcripts().len(), 2);
    insta::assert_snapshot!(sizeless(&world.run(&["gc", "--older-than", "0s", "--dry-run"]).to_string()), @"
    CHAIN STATE FOR AGENTS SIZE TASK
    [ID1:8] done [AGE] 2 [N] kB root.md
    --- stderr
    would remove 1 chain with 2 agents: [N] kB
    --- exit status: 0
    ");
    assert_eq!(world.transcripts().len(), 2, "nothing was removed");
    world.run(&["resume", &id]).prints("Jan 1st");
    let gone = gc(&world, &["--older-than", "0s"]);
    assert_eq!((&gone["chains"][0]["id"], &gone["chains"][0]["agents"]), (&id.clone().into(), &2.into()));
    assert!(gone["bytes"].as_u64() > Some(1000) && gone["dry_run"] == false, "{gone}");
    assert!(world.transcripts().is_empty());
    assert!(files_below(&world.state().join("frames")).is_empty());
    world.run(&["show", &id]).exits_with(3);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).stdout, "[]\n");
    insta::assert_snapshot!(world.run(&["gc", "--older-than", "0s"]), @"
    --- stderr
    nothing to remove
    --- exit status: 0
    ");
}

#[test]
fn the_database_shrinks() {
    let world = World::new();
    world.file("root.md", "bigreply 2000000\n");
    world.run(&["spawn", "root.md"]).succeeds();
    let size = || fs::metadata(world.state().join("agent-cli.db")).expect("a database").len();
    assert!(size() > 2_000_000);
    let gone = gc(&world, &["--older-than", "0s"]);
    assert!(size() < 500_000 && gone["database_bytes"].as_u64() > Some(1_500_000), "{gone}");
}

#[test]
fn what_is_recent_or_not_finished_stays() {
    let (world, _) = done();
    let waiting = world.spawn_paused("root.md");
    world.file("fails.md", "fail API Error: 400 boom\n");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    assert_eq!(gc(&world, &[])["chains"], serde_json::json!([]));
    assert_eq!(gc(&world, &["--older-than", "0s"])["chains"].as_array().map(Vec::len), Some(1));
    let gone = gc(&world, &["--older-than", "0s", "--failed"]);
    assert_eq!((gone["chains"].as_array().map(Vec::len), &gone["chains"][0]["status"]), (Some(1), &"failed".into()));
    world.answer("now");
    world.run(&["resume", &waiting]).prints("now");
}

#[test]
fn transcripts_that_agent_cli_did_not_make_stay() {
    let world = World::new();
    let session = "8a6f7c1e-0000-4000-8000-000000000001";
    world.file("foreign.md", "decide sign\nreply fine\n");
    world.foreign_session(session, "foreign.md");
    let before = world.transcripts();
    assert_eq!(before.len(), 1);
    world.file("sign", "");
    world.run(&["resume", session]).prints("fine");
    assert_eq!(world.transcripts().len(), 2);
    assert_eq!(gc(&world, &["--older-than", "0s"])["chains"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.transcripts(), before);
}

#[test]
fn a_session_that_somebody_carried_on_with_by_hand_stays() {
    let (world, _) = done();
    let transcript = world.transcripts().remove(0);
    let file = fs::File::options().append(true).open(&transcript).expect("own file");
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).expect("own file");
    gc(&world, &["--older-than", "0s"]);
    assert_eq!(world.transcripts(), [transcript]);
}

#[test]
fn what_a_killed_gc_has_left_behind_goes_next_time() {
    let (world, id) = done();
    let folder = world.state().join("frames").join(&id);
    let database = world.database();
    // The state after the rows of a tree were removed, and before its files were.
    database
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM frames; DELETE FROM replies; DELETE FROM attempts;
             DELETE FROM answers; DELETE FROM requests; DELETE FROM events; DELETE FROM chains;",
        )
        .expect("own database");
    drop(database);
    let gone = gc(&world, &[]);
    assert_eq!(gone["orphans"].as_array().map(Vec::len), Some(2), "{gone}");
    assert!(!folder.exists());
    assert!(files_below(&world.state().join("frames")).is_empty());
}

#[test]
fn orphans_of_attempts_go_and_the_chain_goes_on() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let folder = world.state().join("frames").join(&id);
    let (result, kept) = (folder.join("result-x.tmp"), world.kept(&id));
    fs::write(&result, "x").expect("own folder");
    let would = gc(&world, &["--dry-run"]);
    assert_eq!(would["orphans"], serde_json::json!([result]), "{would}");
    assert!(result.exists() && kept.exists());
    gc(&world, &[]);
    assert!(!result.exists() && kept.exists());
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn a_frame_whose_agent_still_lives_stays() {
    let (world, id) = done();
    let output = world.state().join("frames").join(&id).join("out.ndjson");
    let held = fs::File::options().append(true).open(&output).expect("own file");
    held.lock().expect("nobody else runs it");
    // This process would be a runner above gc.
    let agent = Command::new("sh").args(["-c", "read line"]).stdin(Stdio::piped()).stdout(held).spawn();
    let mut agent = agent.expect("there is a shell");
    let gone = gc(&world, &["--older-than", "0s"]);
    assert_eq!((&gone["chains"], &gone["running"]), (&serde_json::json!([]), &serde_json::json!([id])));
    world.run(&["resume", &id]).prints("Jan 1st");
    drop(agent.stdin.take());
    agent.wait().expect("it ends");
    assert_eq!(gc(&world, &["--older-than", "0s"])["running"], serde_json::json!([]));
}

#[test]
fn an_age_that_cannot_be_is_refused() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["gc", "--older-than=-3d"]), @"
    --- stderr
    error: invalid value '-3d' for '--older-than <DURATION>': give weeks, days, hours, minutes or seconds, for example 90s, 2h or 3d

    For more information, try '--help'.
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["gc", "--older-than", "soon"]), @"
    --- stderr
    error: invalid value 'soon' for '--older-than <DURATION>': give weeks, days, hours, minutes or seconds, for example 90s, 2h or 3d

    For more information, try '--help'.
    --- exit status: 2
    ");
}

#[test]
fn a_removal_that_is_killed_or_finds_no_room_is_done_by_the_next() {
    for point in ["remove.before", "remove.within", "remove.after", "remove.before:2", "remove.after:2"] {
        let (world, id) = done();
        let killed = world.command(["gc", "--older-than", "0s"]).with("AGENT_CLI_CRASH", point).run();
        assert_eq!(killed.code(), None, "{point}: {killed}");
        // Its chain is complete, or gone.
        match point {
            "remove.before" | "remove.within" => world.run(&["resume", &id]).prints("Jan 1st"),
            _ => world.run(&["resume", &id]).exits_with(3),
        };
        gc(&world, &["--older-than", "0s"]);
        world.run(&["fsck"]).succeeds();
        assert!(files_below(&world.state().join("frames")).is_empty(), "{point}");
    }
    let (world, id) = done();
    world.command(["gc", "--older-than", "0s"]).with("AGENT_CLI_CRASH", "remove.full").run().exits_with(1);
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(gc(&world, &["--older-than", "0s"])["chains"][0]["id"], id);
}

#[test]
fn a_chain_that_waits_is_no_noise() {
    for world in [World::new(), World::with_hooks()] {
        world.file("root.md", "spawn child.md\nreply {result}\n");
        world.file("child.md", "ask When?\nreply {result}\n");
        let id = world.spawn_paused("root.md");
        let routine = ["settings.json", "permission-tool.json", "answered.jsonl"];
        let is_of_attempt = |path: &std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_str().expect("text");
            routine.contains(&name) || name.ends_with(".tmp")
        };
        let files = || files_below(&world.state().join("frames")).into_iter().filter(is_of_attempt).collect::<Vec<_>>();
        assert_eq!(files(), [""; 0].map(std::path::PathBuf::from));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.run(&["gc"]), @"
            --- stderr
            nothing to remove
            --- exit status: 0
            ");
        }
        // Files that a killed attempt has not removed are counted but not listed.
        let settings = world.state().join("frames").join(&id).join("settings.json");
        fs::write(&settings, "{}").expect("own folder");
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.run(&["gc"]), @"
            --- stderr
            removed 0 chains with 0 agents and 1 orphaned file: 2 B
            --- exit status: 0
            ");
        }
        assert!(!settings.exists());
        world.answer("now");
        world.run(&["resume", &id]).prints("now");
        assert_eq!(files(), [""; 0].map(std::path::PathBuf::from));
    }
}

#[test]
fn a_chain_is_removed_however_few_files_may_be_open() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "--max-parallel", "8"].into_iter().chain(["root.md"; 60]).collect::<Vec<_>>()).started();
    let limited = format!("ulimit -n 64; exec {} rm last --yes", programs::agent_cli().display());
    world.program("/bin/sh", ["-c", limited.as_str()]).run().succeeds();
    assert_eq!(world.run(&["ls", "-ap", "--json"]).stdout, "[]\n");
}
