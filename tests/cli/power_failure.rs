//! The power fails: nothing runs any more, and files that nobody has synced are there in part, or filled with zeros.
//! The database is SQLite's to keep. Of all else, only what was really synced is left as it is: the program logs that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::disk::Disk;
use crate::gate::wait_until;
use crate::went_on::{last, say};
use crate::world::{World, files_below};

/// The possible states of a file that was written and not synced.
const DAMAGES: [fn(&Path); 4] = [
    |path| fs::write(path, "").expect("writable"),
    |path| {
        let text = fs::read(path).expect("readable");
        fs::write(path, &text[..text.len() / 2]).expect("writable");
    },
    |path| {
        let length = fs::metadata(path).expect("readable").len();
        fs::write(path, vec![0; usize::try_from(length).expect("small")]).expect("writable");
    },
    |path| fs::remove_file(path).expect("it is there"),
];

/// The files that a power failure may damage.
fn unsynced(world: &World) -> Vec<PathBuf> {
    let disk = Disk::of(world);
    let own = files_below(&world.state().join("frames")).into_iter().filter(|path| !disk.has_file(path));
    own.chain(world.transcripts()).collect()
}

type Failure = Box<dyn Fn(&World)>;

/// The effect of a power failure on everything that was not synced.
fn failures() -> Vec<Failure> {
    let damages = DAMAGES
        .map(|damage| -> Failure { Box::new(move |world| unsynced(world).iter().for_each(|path| damage(path))) });
    damages.into_iter().chain([Box::new(only_the_disk_is_left) as Failure]).collect()
}

/// Names, too, are those that were synced last.
fn only_the_disk_is_left(world: &World) {
    world.transcripts().iter().for_each(|path| fs::remove_file(path).expect("it is there"));
    Disk::of(world).is_all_that_is_left_of(&world.state());
}

#[test]
fn what_is_new_is_entered_where_it_is_looked_for() {
    let world = Disk::under(World::new());
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let (state, disk) = (world.state(), Disk::of(&world));
    let frames = state.join("frames");
    for entry in [&state, &state.join("agent-cli.db"), &frames, &frames.join(&id)] {
        assert!(disk.has_name(entry), "{}", entry.display());
    }
    assert!(disk.has_file(&world.kept(&id)), "the copy of its conversation");
    let damaged = unsynced(&world).into_iter().filter(|path| path.starts_with(&state));
    let names: BTreeSet<_> = damaged.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    assert_eq!(
        names,
        [
            world.kept(&id).with_extension("seen.json").file_name().unwrap().to_str().unwrap().to_owned(),
            "driving.lock".to_owned(),
            "err.log".to_owned(),
            "out.ndjson".to_owned()
        ]
        .into()
    );
}

#[test]
fn a_chain_that_waits_goes_on() {
    for suspends in [false, true] {
        for fail in failures() {
            let world = Disk::under(if suspends { World::with_hooks() } else { World::new() });
            world.file("root.md", "spawn child.md\nreply {result}\n");
            world.file("child.md", "ask When?\nreply {result}\n");
            let id = world.spawn_paused("root.md");
            fail(&world);
            world.answer("Jan 1st");
            world.run(&["resume", &id]).prints("Jan 1st");
            world.run(&["fsck"]).succeeds();
        }
    }
}

#[test]
fn an_agent_that_worked_goes_on_from_what_is_there() {
    for fail in failures() {
        let world = Disk::under(World::new());
        let gate = world.gate("gate");
        world.file("root.md", "ask When?\nonce run echo worked >> marks\nonce hold gate\nreply {results}\n");
        let id = world.spawn_paused("root.md");
        world.answer("Jan 1st");
        let runner = world.command(["resume", &id]).start();
        gate.reached_by(1);
        let agent = world.log().starts.pop().expect("an agent was started");
        runner.signal(Signal::KILL);
        runner.ends();
        kill_process(Pid::from_raw(agent.pid).expect("a process id"), Signal::KILL).expect("it lives");
        wait_until("the agent is dead", || !agent.is_alive());
        fail(&world);
        // The first may have no more to do than to find that out.
        let first = world.run(&["resume", &id]);
        let replied = first.stdout == "Jan 1st\n";
        let died = first.code() == Some(1) && first.stderr.contains("before the agent had finished");
        assert!(replied || died, "{first}");
        world.run(&["resume", &id]).prints("Jan 1st");
        world.run(&["fsck"]).succeeds();
    }
}

/// Steps of a runner between which the power fails: what is recorded must be on the disk before.
const POINTS: [&str; 11] = [
    "keep_copy.before", "keep_copy.within", "keep_copy.after", "seen.after", "end_attempt.within", "end_attempt.after",
    "remove_copy.after", "begin.after", "answered.after", "settings.after", "put_back.after",
];

#[test]
fn a_chain_goes_on_whenever_the_power_fails() {
    for suspends in [false, true] {
        for point in POINTS {
            let world = Disk::under(if suspends { World::with_hooks() } else { World::new() });
            world.file("root.md", "ask When?\nask Where?\nreply {results}\n");
            // The answer is read in the second command, and a transcript is put back in it.
            let id = world.spawn_paused("root.md");
            world.answer("Jan 1st");
            world.transcripts().iter().for_each(|path| fs::remove_file(path).expect("it is there"));
            world.command(["resume", &id]).with("AGENT_CLI_CRASH", point).run();
            kill_agents(&world);
            only_the_disk_is_left(&world);
            let goes_on = || {
                for (question, _) in world.questions() {
                    world.answer_to(&question, if question == "When?" { "Jan 1st" } else { "home" });
                }
                let outcome = world.run(&["resume", &id]);
                assert!(
                    outcome.code() == Some(0) || outcome.stderr.contains("before the agent had"),
                    "{point} {outcome}"
                );
                outcome.stdout
            };
            let replied = (0..6).map(|_| goes_on()).find(|printed| !printed.starts_with("SGN_") && !printed.is_empty());
            let replied = replied.unwrap_or_else(|| panic!("{point}: no reply"));
            assert!(replied.contains("Jan 1st") && replied.contains("home"), "{point}: {replied}");
            world.run(&["fsck"]).succeeds();
        }
    }
}

#[test]
fn what_a_person_said_in_the_session_of_an_agent_is_not_lost() {
    // A point that is not passed, and the one after the saved session, where nothing else has synced its folder.
    for point in ["none", "put_back.after"] {
        let world = Disk::under(World::with_hooks());
        world.file("root.md", "ask When?\nreply {result}\n");
        let id = world.spawn_paused("root.md");
        let transcript = world.transcripts().remove(0);
        say(&transcript, &last(&transcript), "what are you doing?");
        world.answer("Jan 1st");
        let resumed = world.command(["resume", &id]).with("AGENT_CLI_CRASH", point).run();
        assert_eq!(resumed.code(), if point == "none" { Some(0) } else { None }, "{resumed}");
        Disk::of(&world).is_all_that_is_left_of(transcript.parent().expect("a folder"));
        let is_session = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
        let transcripts = world.transcripts().into_iter().filter(|path| *path != transcript && is_session(path));
        let saved = transcripts.map(|path| fs::read_to_string(path).expect("readable"));
        assert_eq!(saved.filter(|text| text.contains("what are you doing?")).count(), 1, "{point}");
    }
}

fn kill_agents(world: &World) {
    for agent in world.log().starts.iter().filter(|agent| agent.is_alive()) {
        kill_process(Pid::from_raw(agent.pid).expect("a process id"), Signal::KILL).expect("it lives");
        wait_until("the agent is dead", || !agent.is_alive());
    }
}
