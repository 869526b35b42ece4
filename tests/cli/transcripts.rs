//! What happens to transcripts between a pause and a resume.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::World;

/// A frame that waits for an answer, and its transcript.
fn paused() -> (World, String, PathBuf) {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let transcripts = world.transcripts();
    assert_eq!(transcripts.len(), 1);
    (world, id, transcripts[0].clone())
}

#[test]
fn forty_pauses_leave_one_transcript_for_each_agent() {
    const PAUSES: usize = 40;
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", format!("{}reply {{result}}\n", "ask When?\n".repeat(PAUSES)));
    let id = world.spawn_paused("root.md");
    for number in 1..PAUSES {
        world.answer(&number.to_string());
        assert_eq!(world.run(&["resume", &id]).started(), id);
        assert_eq!(world.transcripts().len(), 2);
    }
    world.answer("last");
    world.run(&["resume", &id]).prints("last");
    assert_eq!(world.transcripts().len(), 2);
    world.run(&["fsck"]).succeeds();
}

#[track_caller]
fn survives(damage: impl Fn(&Path)) {
    let (world, id, transcript) = paused();
    damage(&transcript);
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let marks = world.marks();
    assert_eq!(marks, "worked\n", "nothing was done twice");
}

#[test]
fn a_transcript_that_was_cleaned_up_is_put_back() {
    survives(|transcript| fs::remove_file(transcript).expect("own file"));
    survives(|transcript| fs::remove_dir_all(transcript.parent().expect("a folder")).expect("own folder"));
}

#[test]
fn nothing_stays_beside_a_transcript_whose_restoring_was_killed() {
    let world = World::new();
    world.file("root.md", "ask When?\nonce die 9\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let resume = || world.command(["resume", &id]).with("STAND_IN_HOLDS_LINES", "1000");
    resume().with("AGENT_CLI_CRASH", "put_back.within").run();
    assert_eq!(world.transcripts().len(), 2, "one of them is not whole");
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.transcripts().len(), 1);
}

#[test]
fn a_torn_transcript_is_put_back() {
    survives(|transcript| {
        let text = fs::read(transcript).expect("readable");
        fs::write(transcript, &text[..text.len() - 10]).expect("own file");
    });
    survives(|transcript| {
        let text = fs::read(transcript).expect("readable");
        fs::write(transcript, &text[..text.len() / 2]).expect("own file");
    });
}

#[test]
fn an_emptied_transcript_is_put_back() {
    survives(|transcript| fs::write(transcript, "").expect("own file"));
}

#[test]
fn without_any_copy_the_frame_says_what_is_missing() {
    let (world, id, transcript) = paused();
    fs::remove_file(transcript).expect("own file");
    for copy in crate::world::files_below(&world.state().join("frames")) {
        if copy.extension().is_some_and(|extension| extension == "jsonl") {
            fs::remove_file(copy).expect("own file");
        }
    }
    world.answer("Jan 1st");
    let outcome = world.run(&["resume", &id]);
    assert_ne!(outcome.code(), Some(0));
    assert_eq!(outcome.stdout, "");
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: No conversation found with session ID: [ID1] ([ID1:8])
    hint: its transcript and the kept copy are gone: restore a backup of one of them, or start again: cd '[PROJECT]' && agent-cli spawn '[PROJECT]/root.md'
    --- exit status: 4
    ");
}

#[test]
fn only_checkpoints_are_kept() {
    let world = World::new();
    world.file("root.md", "ask One?\nask Two?\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("1");
    world.run(&["resume", &id]).started();
    world.answer("2");
    world.run(&["resume", &id]).prints("1; 2");
    let copies = crate::world::files_below(&world.state().join("frames"));
    let copies = copies.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    assert!(copies.count() <= 1);
}

#[test]
fn sessions_are_kept_where_the_user_keeps_them() {
    let world = World::new();
    let folder = world.project().join("config");
    let world = world.with("CLAUDE_CONFIG_DIR", &folder);
    world.switch_hooks_off();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    // Cron knows nothing of the variable.
    let world = world.without("CLAUDE_CONFIG_DIR");
    world.run(&["resume", &id]).prints("now");
    assert!(world.transcripts().is_empty());
    assert!(folder.join("projects").is_dir());
}
