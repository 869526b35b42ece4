//! What must be true after anything has died: the model that the program is compared with.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use agent_cli::records::{FrameId, RequestKind, Store, chains};
use serde_json::Value;

use crate::gate::wait_until;
use crate::history::no_frame_ran_twice_at_a_time;
use crate::marked::processes_of;
use crate::person::Person;
use crate::world::{World, files_below};

/// Records, by what they are about. None of them ever changes.
pub(crate) type Recorded = BTreeMap<String, String>;

/// The result of a chain in which nothing dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) starts: usize,
    pub(crate) questions: usize,
    pub(crate) commands: usize,
    pub(crate) errors: usize,
}

/// How a chain that met an accident may differ from one that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// Only in the number of commands.
    Commands,
    /// A hook died, so that a call ran which should have been suspended again: its result may be delivered by another start.
    OneMoreStart,
    /// A program that an agent had called died or failed, and the agent called it again.
    CalledAgain,
}

/// Records in the database that must not change.
pub(crate) fn recorded(store: &Store) -> Recorded {
    let mut recorded = Recorded::new();
    for frame in frames(store) {
        for attempt in store.attempts(frame).expect("a database") {
            if let Some(outcome) = attempt.outcome {
                let end = format!("{outcome} {:?} {:?} {:?}", attempt.message, attempt.kept, attempt.ended);
                recorded.insert(format!("end of {}", attempt.id), end);
            }
        }
        if let Some(reply) = store.replies(frame).expect("a database").reply {
            recorded.insert(format!("reply of {frame}"), reply);
        }
    }
    for question in store.questions(None, false).expect("a database") {
        if let Some(answer) = question.answer {
            recorded.insert(format!("answer to {}", question.id), format!("{answer} {:?}", question.answered));
        }
    }
    recorded
}

/// Fails the test if a record was lost or has changed.
pub(crate) fn nothing_recorded_changed(before: &Recorded, after: &Recorded) {
    for (what, was) in before {
        assert_eq!(after.get(what), Some(was), "the {what}");
    }
}

/// The result of the chain.
pub(crate) fn measure(person: &Person) -> Measure {
    let questions = person.store().map_or(0, |store| store.questions(None, false).expect("a database").len());
    Measure { starts: person.world.starts(), questions, commands: person.commands, errors: person.errors }
}

/// Compares a chain that has replied with one without accidents.
pub(crate) fn hold(person: &Person, peaceful: Measure, allowance: Allowance) {
    let world = &person.world;
    let store = person.store().expect("a database");
    let found = measure(person);
    let times = if allowance == Allowance::CalledAgain { 2 } else { 1 };
    let polls = found.commands.saturating_sub(peaceful.commands);
    assert!(found.questions <= times * peaceful.questions, "asked too often: {found:?}, not {peaceful:?}");
    let more = polls + usize::from(allowance == Allowance::OneMoreStart);
    assert!(found.starts <= times * peaceful.starts + more, "started too often: {found:?}, not {peaceful:?}");
    assert!(found.errors <= peaceful.errors, "failed too often: {found:?}, not {peaceful:?}");
    assert!(store.questions(None, true).expect("a database").is_empty(), "every question is answered");
    every_answer_was_delivered_once(world, &store);
    no_frame_ran_twice_at_a_time(world);
    every_transcript_is_known(world, &store);
    nothing_is_left_over(person);
    the_check_agrees(world);
}

/// Each answer occurs once in the conversation of the agent that asked.
pub(crate) fn every_answer_was_delivered_once(world: &World, store: &Store) {
    let mut asked: BTreeMap<FrameId, (usize, String)> = BTreeMap::new();
    for question in store.questions(None, false).expect("a database") {
        let entry = asked.entry(question.frame).or_default();
        let default = question.expired.map(|_| "(This is the default: no answer".to_owned());
        let answer = question.answer.or(default).expect("it is answered, or has expired");
        // The agent gets a plan's answer in the words of its tool.
        let text = if matches!(question.kind, RequestKind::Plan(_)) {
            "User has approved your plan.".to_owned()
        } else {
            answer
        };
        *entry = (entry.0 + 1, text);
    }
    for (frame, (count, answer)) in asked {
        let session = store.frame(frame).expect("a database").expect("it asked").session;
        let name = format!("{session}.jsonl");
        let transcript = world.transcripts().into_iter().find(|path| path.ends_with(&name)).expect("a transcript");
        let text = fs::read_to_string(transcript).expect("a readable file");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let (mut returned, mut cut_short) = (0, 0);
        for line in lines.filter(|line| line["type"] == "user") {
            let content = &line["message"]["content"];
            let times = content.to_string().matches(&answer).count();
            *(if content[0]["is_error"] == true { &mut cut_short } else { &mut returned }) += times;
        }
        // A call that was killed after it had printed the answer: the agent gets the answer again, or has asked again itself.
        let delivered = returned..=returned + cut_short;
        assert!(
            delivered.contains(&count),
            "{frame} asked {count} times and got {answer:?} {delivered:?} times\n{text}"
        );
    }
}

/// There is no transcript of a session that no frame had.
pub(crate) fn every_transcript_is_known(world: &World, store: &Store) {
    let mut known = HashSet::new();
    for frame in frames(store) {
        known.insert(frame.to_string());
        known.extend(store.attempts(frame).expect("a database").into_iter().map(|attempt| attempt.session.to_string()));
    }
    for transcript in world.transcripts() {
        let session = transcript.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        assert!(known.contains(session), "nobody knows {}", transcript.display());
    }
}

/// A process that dies here has recorded the outcome, and has not yet deleted what is no longer needed.
const DELETES: [&str; 3] = ["end_attempt.after", "remove_copy.before", "remove_copy.after"];

/// There is no process, and no file that only exists within a step.
fn nothing_is_left_over(person: &Person) {
    let world = &person.world;
    wait_until("every process ends", || processes_of(&world.state()).is_empty());
    if person.fatal_passage().is_some_and(|fatal| DELETES.contains(&fatal.point.as_str())) {
        return;
    }
    for folder in [world.state(), world.home()] {
        for file in files_below(&folder) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            assert!(!name.ends_with(".tmp") && !name.ends_with(".new"), "{} is left over", file.display());
        }
    }
}

/// The program's own check of the state directory only finds files that a killed process had no time to delete, and deletes
/// them.
pub(crate) fn the_check_agrees(world: &World) {
    let found = world.run(&["fsck", "--json"]).json();
    for finding in found["findings"].as_array().expect("a list") {
        assert!(finding["note"] == true || finding["kind"] == "orphan", "{finding}");
    }
    world.run(&["fsck", "--repair"]).succeeds();
}

/// All records of a chain, to find out what went wrong.
pub(crate) fn story(store: &Store, root: &str) -> String {
    let root: FrameId = root.parse().expect("an id");
    let tree = store.tree(root).expect("a database");
    let mut lines = Vec::new();
    for node in tree.leaves_up() {
        let reply = store.replies(node.id).expect("a database").reply;
        lines.push(format!("{} {} {reply:?}", node.id, node.title));
        for event in store.events(node.id, 0).expect("a database") {
            lines.push(format!("  {} {:?}", event.at, event.entry));
        }
    }
    lines.join("\n")
}

fn frames(store: &Store) -> Vec<FrameId> {
    let roots = chains(store);
    let trees = roots.iter().map(|root| store.tree(root.id).expect("a database"));
    trees.flat_map(|tree| tree.leaves_up().into_iter().map(|node| node.id).collect::<Vec<_>>()).collect()
}
