//! What the stand-in's log says of who ran when.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde_json::Value;

use crate::world::World;

/// Fails the test if an attempt of a frame began before the one before it had ended, by itself or by a kill of the test.
pub(crate) fn no_frame_ran_twice_at_a_time(world: &World, killed: &HashSet<i32>) {
    let path = world.state().with_file_name("stand-in.log");
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut running: HashMap<String, i64> = HashMap::new();
    let mut ended: HashSet<i64> = killed.iter().map(|pid| i64::from(*pid)).collect();
    for event in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("the log is JSON lines")) {
        let pid = event["pid"].as_i64().expect("a process id");
        match event["event"].as_str() {
            Some("start") => {
                // A session that somebody else has started has none.
                let Some(frame) = event["env"]["AGENT_CLI_FRAME"].as_str().map(str::to_owned) else { continue };
                if let Some(before) = running.insert(frame.clone(), pid) {
                    assert!(ended.contains(&before), "{frame} began in {pid} while it ran in {before}");
                }
            }
            Some("end") => {
                ended.insert(pid);
            }
            _ => {}
        }
    }
}

/// Fails the test if there is a transcript of a session that no frame of the tree had.
pub(crate) fn every_transcript_has_an_attempt(world: &World, root: &str) {
    let frames = world.run(&["tree", root, "--json"]).json();
    let mut known = HashSet::new();
    for frame in frames.as_array().expect("a list of frames") {
        let shown = world.run(&["show", frame["id"].as_str().expect("an id"), "--json"]).json();
        let sessions = shown["sessions"].as_array().expect("a list of sessions").iter();
        known.extend(sessions.map(|session| session["id"].as_str().expect("an id").to_owned()));
    }
    for transcript in world.transcripts() {
        let session = transcript.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        assert!(known.contains(session), "nobody knows {}", transcript.display());
    }
}
