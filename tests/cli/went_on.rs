//! A person continues the session that an agent waits in, or something else prevents it from continuing at its call.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::World;

/// An agent that waits in a suspended call, its id, and its transcript.
fn paused() -> (World, String, PathBuf) {
    let world = World::with_hooks();
    world.file("root.md", "run echo worked >> marks\nask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let transcripts = world.transcripts();
    (world, id, transcripts[0].clone())
}

fn lines(transcript: &Path) -> Vec<Value> {
    let text = fs::read_to_string(transcript).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write(transcript: &Path, lines: &[Value]) {
    fs::write(transcript, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// A person says something in a session, and gets a reply.
pub(crate) fn say(transcript: &Path, after: &Value, words: &str) -> Value {
    let mut all = lines(transcript);
    let mut parent = after.clone();
    for (kind, text) in [("user", words), ("assistant", "I wait.")] {
        let uuid = json!(format!("{kind} {words}"));
        all.push(json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": all[0]["sessionId"], "cwd": all[0]["cwd"],
            "message": {"role": kind, "id": words, "content": [{"type": "text", "text": text}]},
            "timestamp": "2031-01-01T00:00:00Z",
        }));
        parent = uuid;
    }
    write(transcript, &all);
    parent
}

pub(crate) fn last(transcript: &Path) -> Value {
    lines(transcript).pop().unwrap()["uuid"].clone()
}

/// The session that a warning names.
fn named(err: &str) -> String {
    let rest = err.split_once("claude --resume ").unwrap_or_else(|| panic!("no session is named: {err}")).1;
    rest[..36].to_owned()
}

#[test]
fn an_agent_goes_on_where_it_stopped_and_what_a_person_said_is_another_session() {
    let (world, id, transcript) = paused();
    let before = fs::read(&transcript).unwrap();
    say(&transcript, &last(&transcript), "what are you doing?");
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(0), @"
    note: [ID1:8] waits in session [ID1:8], which a person has continued: the next resume keeps that conversation as a separate session, and nothing is lost
    --- stderr
    hint: agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    world.answer("Jan 1st");
    let resumed = world.run(&["resume", &id]);
    resumed.prints("Jan 1st");
    let other = transcript.with_file_name(format!("{}.jsonl", named(&resumed.stderr)));
    assert!(
        resumed.stderr.contains(&format!("cd '{}' && claude --resume ", world.project().display())),
        "{}",
        resumed.stderr
    );
    let own = fs::read_to_string(&transcript).unwrap();
    assert!(own.contains("Jan 1st") && !own.contains("what are you doing?"), "{own}");
    let said = lines(&other);
    assert!(said.iter().all(|line| line["sessionId"] == named(&resumed.stderr)), "{said:?}");
    assert_eq!(said.len(), before.split(|byte| *byte == b'\n').count() - 1 + 2);
    assert_eq!(world.marks(), "worked\n");
    assert_eq!(world.starts(), 2);
    world.run(&["fsck"]).exits_with(0);
}

#[test]
fn what_a_person_says_after_that_goes_on_in_the_other_session() {
    let (world, id, transcript) = paused();
    let at = say(&transcript, &last(&transcript), "hello?");
    // Polls look at nothing.
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer("Jan 1st");
    let refused = world.command(["resume", &id]).with("STAND_IN_REFUSES", "Not logged in").run();
    let other = named(&refused.stderr);
    // The person's claude knows of nothing, and adds to the file.
    say(&transcript, &at, "still there?");
    let resumed = world.run(&["resume", &id]);
    resumed.prints("Jan 1st");
    assert_eq!(named(&resumed.stderr), other);
    let said = lines(&transcript.with_file_name(format!("{other}.jsonl")));
    let words: Vec<_> = said.iter().filter(|line| line["type"] == "user").map(|line| line["uuid"].clone()).collect();
    assert_eq!(words[words.len() - 2..], ["user hello?", "user still there?"]);
}

#[test]
fn notes_of_claude_are_no_session() {
    let (world, id, transcript) = paused();
    let mut all = lines(&transcript);
    all.push(json!({"type": "custom-title", "customTitle": "mine"}));
    write(&transcript, &all);
    world.answer("Jan 1st");
    let resumed = world.run(&["resume", &id]);
    resumed.prints("Jan 1st");
    assert_eq!(resumed.stderr, "");
}

#[test]
fn in_an_adopted_session_a_person_may_go_on() {
    const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";
    let world = World::new();
    world.file("root.md", "decide sign\nreply done\n");
    world.foreign_session(SESSION, "root.md");
    // It is adopted, and has no attempt itself.
    world.command(["resume", SESSION]).with("STAND_IN_REFUSES", "Not logged in").run().exits_with(4);
    let transcript = world.transcripts()[0].clone();
    say(&transcript, &last(&transcript), "a word");
    let went_on = fs::read(&transcript).unwrap();
    world.run(&["fsck"]).exits_with(0);
    world.file("sign", "now");
    let resumed = world.run(&["resume", SESSION]);
    resumed.prints("done");
    assert_eq!((resumed.stderr.as_str(), fs::read(&transcript).unwrap()), ("", went_on));
}

#[test]
fn what_a_call_cannot_return_comes_by_prompt_in_the_same_run() {
    let (world, id, _) = paused();
    world.answer("Jan 1st");
    let refusing = world.with("STAND_IN_WANTS_A_PROMPT", "Input must be provided");
    refusing.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(refusing.starts(), 5, "it pauses, is refused three times, and is given the answer");
    refusing.run(&["fsck"]).exits_with(0);
}

#[test]
fn the_session_of_an_agent_in_a_worktree_goes_on_itself() {
    let world = World::with_hooks();
    world.file("root.md", "call EnterWorktree {\"path\": \"/\"}\nask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md"]).started();
    let transcripts = world.transcripts();
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    assert_eq!(log.starts.len(), 2);
    assert!(!log.starts[1].argv.contains(&"--fork-session".to_owned()), "{:?}", log.starts[1].argv);
    assert_eq!(world.transcripts(), transcripts);
    world.run(&["fsck"]).exits_with(0);
}

#[test]
fn where_no_call_of_a_fork_is_run_the_session_itself_goes_on() {
    let (world, id, transcript) = paused();
    let world = world.with("STAND_IN_RUNS_NO_CALLS_OF_FORKS", "this session began as a copy");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    assert_eq!(log.starts.len(), 4, "it pauses, is refused in two forks, and goes on in place");
    assert!(!log.starts[3].argv.contains(&"--fork-session".to_owned()));
    assert!(
        log.starts
            .iter()
            .all(|start| start.session() == id && (!start.is_prompted() || start.pid == log.starts[0].pid))
    );
    assert_eq!(world.transcripts(), [transcript]);
    assert_eq!(world.marks(), "worked\n");
    world.run(&["fsck"]).exits_with(0);

    // This is known about the program now.
    world.file("again.md", "ask When?\nreply {result}\n");
    let id = world.run(&["spawn", "again.md"]).started();
    world.answer("Feb 1st");
    world.run(&["resume", &id]).prints("Feb 1st");
    assert_eq!(world.starts(), 6);
}

#[test]
fn a_refusal_that_a_prompt_does_not_help_against_is_reported_once() {
    let (world, id, _) = paused();
    world.answer("Jan 1st");
    let refused = |starts: usize, name: &str, message: &str| {
        let refused = world.command(["resume", &id]).with("STAND_IN_WANTS_A_PROMPT", message).with(name, message).run();
        refused.exits_with(4);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        assert_eq!(world.starts(), starts);
    };
    refused(5, "STAND_IN_REFUSES", "the second one fails as well");
    refused(6, "STAND_IN_REFUSES", "error: unknown option '--nonsense'");
    world.run(&["resume", &id]).prints("Jan 1st");
}

/// A line is missing in the middle, in both files.
#[test]
fn a_conversation_that_is_not_whole_is_not_gone_on_with() {
    let (world, id, transcript) = paused();
    let copy = world.kept(&id);
    let whole = fs::read(&copy).unwrap();
    let mut all = lines(&transcript);
    all.remove(2);
    all[2]["timestamp"] = json!("2031-01-01T00:00:00Z");
    write(&transcript, &all);
    write(&copy, &all);
    world.answer("Jan 1st");
    insta::assert_snapshot!(world.run(&["fsck"]).exits_with(1), @"
    problem: [ID1:8] cannot be resumed: the conversation of session [ID1:8] does not reach back to its beginning
    --- stderr
    hint: restore a backup of [ID1].jsonl to Claude Code's folder, or start the chain again
    --- exit status: 1
    ");
    let outcome = world.run(&["resume", &id]);
    outcome.exits_with(4);
    assert!(
        outcome.stderr.contains("which is not there") && !outcome.stderr.contains("nothing is lost"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("start again: cd '") && outcome.stderr.contains("agent-cli spawn '"),
        "{}",
        outcome.stderr
    );
    assert_eq!(world.starts(), 1, "claude is not started");
    // The copy is enough.
    fs::write(&copy, whole).unwrap();
    world.run(&["resume", &id]).prints("Jan 1st");
}
