//! `export` and `import`: a chain goes to another machine.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::gate::wait_until;
use crate::outcome::Outcome;
use crate::world::{World, files_below};

/// A chain that waits for an answer, its root, and what `export` writes of it.
pub(crate) fn exported() -> (World, String, String) {
    let world = World::new();
    world.file("root.md", "run pwd\nspawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let archive = world.run(&["export", &id]).succeeds().stdout.clone();
    (world, id, archive)
}

/// Another machine, with the files of the project where they were.
pub(crate) fn elsewhere(there: &World) -> World {
    let here = World::new();
    for file in files_below(&there.project()) {
        let name = file.strip_prefix(there.project()).expect("it is below");
        here.file(name, fs::read(&file).expect("readable"));
    }
    here
}

pub(crate) fn moved(there: &World, here: &World) -> String {
    format!("{}={}", there.project().display(), here.project().display())
}

pub(crate) fn import(here: &World, archive: &str, arguments: &[&str]) -> Outcome {
    here.command([&["import", "-", "--trust"], arguments].concat()).reads(archive).run()
}

/// The archive with its lines changed and the checksum made to fit.
pub(crate) fn forged(archive: &str, change: impl Fn(&mut Value)) -> String {
    let mut lines: Vec<Value> = archive.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.pop();
    lines.iter_mut().for_each(change);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut checksum = agent_cli::core::housekeeping::export_format::Checksum::default();
    checksum.add(text.as_bytes());
    let end = serde_json::json!({"end": {"lines": lines.len(), "checksum": checksum.text()}});
    format!("{text}{end}\n")
}

pub(crate) fn forged_row(archive: &str, table: &str, column: &str, value: &Value) -> String {
    forged(archive, |line| {
        if line["row"]["table"] == table {
            line["row"]["values"][column] = value.clone();
        }
    })
}

/// Nothing of a refused archive is there.
pub(crate) fn nothing_is_there(here: &World) {
    assert_eq!(here.run(&["ls", "--json"]).stdout, "[]\n");
    assert!(files_below(&here.state().join("frames")).is_empty());
    here.run(&["fsck"]).succeeds();
}

#[test]
fn a_chain_goes_on_on_another_machine() {
    let (there, id, archive) = exported();
    let here = elsewhere(&there);
    let outcome = import(&here, &archive, &["--cwd", &moved(&there, &here)]);
    assert_eq!(outcome.succeeds().stdout, format!("{id}\n"));
    here.run(&["fsck"]).succeeds();
    for file in files_below(&here.state()) {
        let mode = |path: &std::path::Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700), "{}", file.display());
    }
    drop(there);
    here.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    here.answer("Jan 1st");
    here.run(&["resume", &id]).prints("Jan 1st");
    assert!(here.log().starts.iter().all(|start| start.cwd == here.project().display().to_string()));
    here.run(&["fsck"]).succeeds();
    let events = here.run(&["show", &id, "--json"]).json()["events"].clone();
    assert!(events.as_array().is_some_and(|events| events.len() > 4), "{events}");
}

#[test]
fn what_is_imported_can_be_exported_and_is_the_same() {
    let (there, id, archive) = exported();
    let here = World::new();
    import(&here, &archive, &[]).succeeds();
    assert_eq!(here.run(&["export", &id]).stdout, archive);
    drop(there);
}

#[test]
fn a_file_is_written_whole_and_private() {
    let (there, id, archive) = exported();
    let file = there.project().join("chain.ndjson");
    insta::assert_snapshot!(there.run(&["export", &id[..8], "-o", "chain.ndjson"]), @"
    --- stderr
    the chain [ID1:8] is in chain.ndjson
    hint: agent-cli import chain.ndjson takes it up
    --- exit status: 0
    ");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), archive);
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let here = World::new();
    let outcome = here.run(&["import", file.to_str().expect("UTF-8"), "--json", "--trust"]);
    assert_eq!(outcome.succeeds().json()["id"], id.as_str());
    there.run(&["export", &id, "-o", "none/chain.ndjson"]).exits_with(1);
    there.run(&["export", "abcd1234"]).exits_with(3);
}

#[test]
fn what_is_here_already_is_refused() {
    let (there, _, archive) = exported();
    insta::assert_snapshot!(import(&there, &archive, &[]).exits_with(1), @"
    --- stderr
    error: [ID1] is here already
    hint: agent-cli show [ID1]
    --- exit status: 1
    ");
    there.answer("Jan 1st");
}

#[test]
fn a_chain_that_was_removed_can_be_imported_again() {
    let world = World::new();
    world.file("root.md", "reply fine\n");
    world.run(&["spawn", "root.md"]).prints("fine");
    let id = world.run(&["ls", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let archive = world.run(&["export", &id]).stdout;
    world.run(&["gc", "--older-than", "0s"]).succeeds();
    import(&world, &archive, &[]).succeeds();
    world.run(&["resume", &id]).prints("fine");
}

#[test]
fn a_directory_that_is_not_here_is_refused() {
    let (there, _, archive) = exported();
    let here = World::new();
    let old = there.project();
    drop(there);
    let said = import(&here, &archive, &[]).exits_with(1).stderr.clone();
    assert!(said.contains("which is not here") && said.contains(&format!("--cwd {}=DIR", old.display())), "{said}");
    nothing_is_there(&here);
    import(&here, &archive, &["--cwd", "elsewhere"]).exits_with(2);
}

#[test]
fn a_chain_that_runs_is_not_exported() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    insta::assert_snapshot!(world.run(&["export", &id, "-o", "x"]).exits_with(1), @"
    --- stderr
    error: the agent [ID1:8] is running
    hint: agent-cli resume [ID1:8] waits for it, or takes up what it left
    --- exit status: 1
    ");
    assert!(!world.project().join("x").exists());
    gate.open_for_one();
    spawn.ends().prints("done");
    world.run(&["export", &id]).succeeds();
}

#[test]
fn a_damaged_or_cut_archive_is_refused() {
    let (_there, _, archive) = exported();
    let here = World::new();
    let lines: Vec<&str> = archive.split_inclusive('\n').collect();
    for cut in [0, 1, lines.len() / 2, lines.len() - 1] {
        import(&here, &lines[..cut].concat(), &[]).exits_with(1);
    }
    insta::assert_snapshot!(import(&here, "#!/bin/sh\n", &[]).exits_with(1), @"
    --- stderr
    error: the archive cannot be imported: it is not a chain that agent-cli export wrote
    hint: export it again
    --- exit status: 1
    ");
    insta::assert_snapshot!(import(&here, &lines[..3].concat(), &[]).exits_with(1), @"
    --- stderr
    error: the archive cannot be imported: it is cut short
    hint: export it again
    --- exit status: 1
    ");
    let said = import(&here, &archive.replacen("When?", "Why??", 1), &[]).exits_with(1).stderr.clone();
    assert!(said.ends_with(": the checksum is another one\nhint: export it again\n"), "{said}");
    nothing_is_there(&here);
}

#[test]
fn a_hostile_archive_is_refused() {
    let (_there, id, archive) = exported();
    let here = World::new();
    let other = "8a6f7c1e-0000-4000-8000-000000000001";
    let cases = [
        forged_row(&archive, "frames", "id", &"../../x".into()),
        forged_row(&archive, "frames", "id", &"8A6F7C1E-0000-4000-8000-000000000001".into()),
        forged_row(&archive, "frames", "root", &other.into()),
        forged_row(&archive, "frames", "depth", &7.into()),
        forged_row(&archive, "frames", "status", &"done".into()),
        forged_row(&archive, "frames", "state", &"{}".into()),
        forged_row(&archive, "frames", "launch", &"[]".into()),
        forged_row(&archive, "frames", "checkpoint", &other.into()),
        forged_row(&archive, "frames", "x) VALUES (1); --", &1.into()),
        forged_row(&archive, "attempts", "frame", &other.into()),
        forged_row(&archive, "attempts", "ended", &Value::Null),
        forged_row(&archive, "requests", "attempt", &other.into()),
        forged_row(&archive, "events", "frame", &other.into()),
        forged(&archive, |line| {
            if line["row"]["table"] == "events" {
                line["row"]["table"] = "versions".into();
            }
        }),
        forged(&archive, |line| {
            if line["file"]["frame"] == id.as_str() {
                line["file"]["name"] = "../../../x.jsonl".into();
            }
        }),
        forged(&archive, |line| {
            if line["file"]["frame"] == id.as_str() {
                line["file"]["frame"] = other.into();
            }
        }),
        forged(&archive, |line| {
            if line["archive"].is_object() {
                line["archive"]["schema"] = 999.into();
            }
        }),
    ];
    for (at, case) in cases.iter().enumerate() {
        let outcome = import(&here, case, &[]);
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(1), ""), "case {at}: {outcome}");
    }
    nothing_is_there(&here);
    import(&here, &forged(&archive, |_| ()), &[]).succeeds();
}

#[test]
fn an_import_that_is_killed_leaves_nothing_that_stays() {
    let (there, id, archive) = exported();
    let fifo = there.project().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is a program").success());
    let mut pipe = fs::File::options().read(true).write(true).open(&fifo).expect("a fifo");
    let here = World::new();
    let import = here.command(["import", "--trust", fifo.to_str().expect("UTF-8")]).start();
    // All but the end.
    let cut = archive.trim_end().rfind('\n').expect("many lines");
    let writer = thread::spawn({
        let beginning = archive[..=cut].to_owned();
        move || {
            pipe.write_all(beginning.as_bytes()).expect("somebody reads");
            pipe
        }
    });
    let frames = here.state().join("frames");
    wait_until("the files are there", || files_below(&frames).len() == 2);
    import.signal(Signal::KILL);
    assert_eq!(import.ends().code(), None);
    drop(writer);
    assert_eq!(here.run(&["ls", "--json"]).stdout, "[]\n");
    here.run(&["import", "--trust", there.file("chain", &archive).to_str().expect("UTF-8")]).succeeds();
    let mut entries = fs::read_dir(&frames).expect("a folder").map(|entry| entry.expect("an entry").path());
    let stage = entries.find(|path| path.extension().is_some()).expect("what was left behind");
    here.run(&["gc"]).succeeds();
    assert!(stage.exists(), "another import may be filling it");
    let old = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    fs::File::open(&stage).expect("a folder").set_modified(old).expect("own folder");
    here.run(&["fsck"]).exits_with(1);
    here.run(&["gc"]).succeeds();
    assert!(!stage.exists());
    here.run(&["fsck"]).succeeds();
    here.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn a_chain_of_an_older_version_is_taken_up() {
    let (there, id, archive) = exported();
    let here = World::new();
    let older = forged(&archive, |line| {
        if line["archive"].is_object() {
            line["archive"]["schema"] = 1.into();
        }
        if let Some(values) = line.pointer_mut("/row/values").and_then(Value::as_object_mut) {
            // Columns that came later.
            values.retain(|column, _| !["suspended", "call", "to_return"].contains(&column.as_str()));
        }
    });
    import(&here, &older, &[]).succeeds();
    here.answer("now");
    here.run(&["resume", &id]).prints("now");
    drop(there);
}

#[test]
fn an_import_that_is_killed_or_finds_no_room_takes_up_nothing_or_all() {
    for point in ["import.before", "import.within", "import.full", "import.after"] {
        let (there, id, archive) = exported();
        let here = elsewhere(&there);
        let cwd = moved(&there, &here);
        let import = || here.command(["import", "-", "--trust", "--cwd", &cwd]).reads(archive.as_str());
        assert_ne!(import().with("AGENT_CLI_CRASH", point).run().code(), Some(0), "{point}");
        if point != "import.after" {
            here.run(&["tree", &id]).exits_with(3);
            import().run().succeeds();
        }
        here.run(&["fsck", "--repair"]).succeeds();
        here.answer("Jan 1st");
        here.run(&["resume", &id]).prints("Jan 1st");
    }
}
