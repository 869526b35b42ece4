//! The power fails: nothing runs any more, and of files that nobody has synced any part is there, or zeros in its place.
//! The database is SQLite's to keep. Of all else, only what was really synced is left as it is: the program logs that.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::gate::wait_until;
use crate::world::{World, files_below};

/// What may become of a file that was written and not synced.
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

const SYNC_LOG: &str = "AGENT_CLI_SYNC_LOG";

/// A world whose programs log what they sync.
fn logging(world: World) -> World {
    let log = world.home().join("synced");
    world.with(SYNC_LOG, log)
}

/// What was synced: each file by its number and the time at which it was changed last, each directory by its number.
struct Synced(Vec<String>);

impl Synced {
    fn of(world: &World) -> Self {
        let log = fs::read_to_string(world.home().join("synced")).expect("something was synced");
        Self(log.lines().map(str::to_owned).collect())
    }

    fn has_dir(&self, path: &Path) -> bool {
        let number = fs::metadata(path).expect("it is there").ino().to_string();
        self.0.iter().any(|line| line.split(' ').next() == Some(&number))
    }

    /// Its content, and that it is there.
    fn has_file(&self, path: &Path) -> bool {
        let found = fs::metadata(path).expect("it is there");
        let line = format!("{} {}.{:09}", found.ino(), found.mtime(), found.mtime_nsec());
        self.0.contains(&line) && self.has_dir(path.parent().expect("a folder"))
    }
}

/// The files that a power failure may damage.
fn unsynced(world: &World) -> Vec<PathBuf> {
    let synced = Synced::of(world);
    let own = files_below(&world.state().join("frames")).into_iter().filter(|path| !synced.has_file(path));
    own.chain(world.transcripts()).collect()
}

#[test]
fn what_is_new_is_entered_where_it_is_looked_for() {
    let world = logging(World::new());
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let (state, synced) = (world.state(), Synced::of(&world));
    let frames = state.join("frames");
    for folder in [state.parent().expect("a folder"), &state, &frames, &frames.join(&id)] {
        assert!(synced.has_dir(folder), "{}", folder.display());
    }
    assert!(synced.has_file(&world.kept(&id)), "the copy of its conversation");
    let damaged = unsynced(&world).into_iter().filter(|path| path.starts_with(&state));
    let names: BTreeSet<_> = damaged.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    assert_eq!(
        names,
        [
            world.kept(&id).with_extension("seen.json").file_name().unwrap().to_str().unwrap().to_owned(),
            "err.log".to_owned(),
            "out.ndjson".to_owned()
        ]
        .into()
    );
}

#[test]
fn a_chain_that_waits_goes_on() {
    for suspends in [false, true] {
        for damage in DAMAGES {
            let world = logging(if suspends { World::with_hooks() } else { World::new() });
            world.file("root.md", "spawn child.md\nreply {result}\n");
            world.file("child.md", "ask When?\nreply {result}\n");
            let id = world.spawn_paused("root.md");
            unsynced(&world).iter().for_each(|path| damage(path));
            world.answer("Jan 1st");
            world.run(&["resume", &id]).prints("Jan 1st");
            world.run(&["fsck"]).succeeds();
        }
    }
}

#[test]
fn an_agent_that_worked_goes_on_from_what_is_there() {
    for damage in DAMAGES {
        let world = logging(World::new());
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
        unsynced(&world).iter().for_each(|path| damage(path));
        // The first may have no more to do than to find that out.
        let first = world.run(&["resume", &id]);
        let replied = first.stdout == "Jan 1st\n";
        let died = first.code() == Some(1) && first.stderr.contains("before the agent had finished");
        assert!(replied || died, "{first}");
        world.run(&["resume", &id]).prints("Jan 1st");
        world.run(&["fsck"]).succeeds();
    }
}
