//! `export` and `import`: a chain moves to another machine.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::forgery::forged;
use crate::gate::wait_until;
use crate::outcome::Outcome;
use crate::world::{World, files_below};

/// A chain that waits for an answer, its root, and its export.
pub(crate) fn exported() -> (World, String, Vec<u8>) {
    let world = World::new();
    world.file("root.md", "run pwd\nspawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let archive = export(&world, &id);
    (world, id, archive)
}

/// The export of a chain.
pub(crate) fn export(world: &World, id: &str) -> Vec<u8> {
    world.run(&["export", id]).succeeds().stdout.clone().into_bytes()
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

pub(crate) fn import(here: &World, archive: &[u8], arguments: &[&str]) -> Outcome {
    here.command([&["import", "-", "--trust"], arguments].concat()).reads(archive).run()
}

/// Nothing of a refused archive remains.
pub(crate) fn nothing_is_there(here: &World) {
    assert_eq!(here.run(&["ls", "-ap", "--json"]).stdout, "[]\n");
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
    assert!(export(&here, &id) == archive);
    drop(there);
}

/// Claude Code keeps tasks, plans and subagents next to the conversation, and large results of tools.
#[test]
fn what_an_agent_has_besides_its_conversation_goes_with_it() {
    let there = World::new();
    let beside = "run cd $HOME/.claude; s=$CLAUDE_CODE_SESSION_ID; project=$(echo projects/*); \
        mkdir -p tasks/$s plans $project/$s/subagents $project/$s/tool-results; \
        echo one > tasks/$s/1.json; echo 7 > tasks/$s/.highwatermark; echo 'a plan' > plans/calm-plan.md; \
        echo '{\"slug\":\"calm-plan\"}' >> $project/$s.jsonl; echo other > plans/other.md; \
        echo '{\"cwd\":\"'$OLDPWD'\"}' > \"$project/$s/subagents/agent one.jsonl\"; \
        printf '\\377\\000\\n' > $project/$s/tool-results/b1.txt; echo \"see $PWD/$project/$s/tool-results/b1.txt\"\n";
    there.file("root.md", "spawn child.md\nreply root: {result}\n");
    there.file("child.md", format!("{beside}ask When?\nreply {{result}}\n"));
    let id = there.spawn_paused("root.md");
    let archive = there.file("chain.tar", "");
    there.run(&["export", &id, "-o", "chain.tar"]).succeeds();
    let archive = fs::read(archive).expect("an archive");

    // Another home, another project, another state directory.
    let here = elsewhere(&there);
    import(&here, &archive, &["--cwd", &moved(&there, &here)]).succeeds();
    assert!(!here.home().join(".claude/tasks").exists());
    here.answer("Jan 1st");
    here.run(&["resume", &id]).prints("root: Jan 1st");
    let child = here.log().starts.iter().map(|start| start.session().to_owned()).find(|session| *session != id);
    let child = child.expect("two agents");
    let claude = here.home().join(".claude");
    let project =
        fs::read_dir(claude.join("projects")).expect("projects").next().expect("one").expect("an entry").path();
    for (file, content) in [
        (claude.join(format!("tasks/{child}/1.json")), b"one\n".to_vec()),
        (claude.join(format!("tasks/{child}/.highwatermark")), b"7\n".to_vec()),
        (claude.join("plans/calm-plan.md"), b"a plan\n".to_vec()),
        (project.join(format!("{child}/tool-results/b1.txt")), b"\xff\0\n".to_vec()),
        (
            project.join(format!("{child}/subagents/agent one.jsonl")),
            format!("{{\"cwd\":\"{}\"}}\n", here.project().display()).into_bytes(),
        ),
    ] {
        assert_eq!(fs::read(&file).ok(), Some(content), "{}", file.display());
    }
    assert!(!claude.join("plans/other.md").exists());
    let conversation = fs::read_to_string(project.join(format!("{child}.jsonl"))).expect("a transcript");
    let named = format!("see {}", project.join(format!("{child}/tool-results/b1.txt")).display());
    assert!(conversation.contains(&named), "it names where they are now, {named}: {conversation}");
    here.run(&["fsck"]).succeeds();
}

#[test]
fn a_file_is_written_whole_and_private() {
    let (there, id, archive) = exported();
    let file = there.project().join("chain.tar");
    insta::assert_snapshot!(there.run(&["export", &id[..8], "-o", "chain.tar"]), @"
    --- stderr
    exported [ID1:8] to chain.tar
    hint: agent-cli import chain.tar imports it
    --- exit status: 0
    ");
    assert_eq!(fs::read(&file).expect("it is there"), archive);
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let here = World::new();
    let outcome = here.run(&["import", file.to_str().expect("UTF-8"), "--json", "--trust"]);
    assert_eq!(outcome.succeeds().json()["id"], id.as_str());
    there.run(&["export", &id, "-o", "none/chain.tar"]).exits_with(1);
    there.run(&["export", "abcd1234"]).exits_with(3);
}

#[test]
fn what_is_here_already_is_refused() {
    let (there, _, archive) = exported();
    insta::assert_snapshot!(import(&there, &archive, &[]).exits_with(1), @"
    --- stderr
    error: [ID1] already exists here
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
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let archive = export(&world, &id);
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
    assert!(
        said.contains("which does not exist here") && said.contains(&format!("--cwd {}=DIR", old.display())),
        "{said}"
    );
    nothing_is_there(&here);
    let gone = here.project().join("gone");
    let moved = format!("{}={}", old.display(), gone.display());
    let said = import(&here, &archive, &["--cwd", &moved]).exits_with(1).stderr.clone();
    let why =
        format!("worked in {}, and {}, which --cwd names for it, does not exist\n", old.display(), gone.display());
    let expected = [why, format!("--cwd {}=DIR", old.display())];
    assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
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
    hint: agent-cli resume [ID1:8] shows its status, and continues it if its runner has died
    --- exit status: 1
    ");
    assert!(!world.project().join("x").exists());
    gate.open_for_one();
    spawn.ends().prints("done");
    world.run(&["export", &id]).succeeds();
}

#[test]
fn an_import_that_is_killed_leaves_nothing_that_stays() {
    let (there, id, archive) = exported();
    let fifo = there.project().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is a program").success());
    let mut pipe = fs::File::options().read(true).write(true).open(&fifo).expect("a fifo");
    let here = World::new();
    let import = here.command(["import", "--trust", fifo.to_str().expect("UTF-8")]).start();
    // All but the checksums, which are in three blocks with their header, before two that are empty.
    let cut = archive.len() - 5 * 512;
    let writer = thread::spawn({
        let beginning = archive[..cut].to_owned();
        move || {
            pipe.write_all(&beginning).expect("somebody reads");
            pipe
        }
    });
    let frames = here.state().join("frames");
    wait_until("the files are there", || files_below(&frames).len() == 2);
    import.signal(Signal::KILL);
    assert_eq!(import.ends().code(), None);
    drop(writer);
    assert_eq!(here.run(&["ls", "-ap", "--json"]).stdout, "[]\n");
    here.run(&["import", "--trust", there.file("chain", &archive).to_str().expect("UTF-8")]).succeeds();
    let mut entries = fs::read_dir(&frames).expect("a folder").map(|entry| entry.expect("an entry").path());
    let stage = entries.find(|path| path.extension().is_some()).expect("what was left behind");
    here.run(&["gc"]).succeeds();
    assert!(stage.exists(), "another import may be filling it");
    let old = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    fs::File::open(&stage).expect("a folder").set_modified(old).expect("own folder");
    let found = here.run(&["fsck"]);
    assert!(found.succeeds().stdout.starts_with("note: nothing uses "), "{found}");
    here.run(&["gc"]).succeeds();
    assert!(!stage.exists());
    here.run(&["fsck"]).succeeds();
    here.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn a_chain_of_an_older_version_is_taken_up() {
    let (there, id, archive) = exported();
    let here = World::new();
    let older = forged(&archive, |path, value| match (path, value) {
        ("manifest.json", value) => value["schema"] = 1.into(),
        // Columns that came later.
        (_, Value::Object(row)) => {
            row.retain(|column, _| !["suspended", "call", "to_return"].contains(&column.as_str()));
        }
        _ => {}
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
        let import = || here.command(["import", "-", "--trust", "--cwd", &cwd]).reads(archive.as_slice());
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
