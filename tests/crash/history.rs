//! What the stand-in's log says about who ran when. Every line is written before the event that it reports, or after the end of
//! it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::Value;

use crate::processes::Process;
use crate::world::World;

/// A step that takes a moment and logs when it is over, so that one which outlives its agent is noticed.
pub(crate) const TOOL: &str =
    r#"run sleep 0.03; printf '{"event":"tool","pid":%d,"attempt":"%s"}\n' $$ "$AGENT_CLI_ATTEMPT" >> "$STAND_IN_LOG""#;

/// Logs that a process is going to be killed.
pub(crate) fn tell_of_kill(world: &World, process: Process) {
    let path = world.state().with_file_name("stand-in.log");
    let mut log = OpenOptions::new().create(true).append(true).open(path).expect("the log can be written");
    let event = serde_json::json!({"event": "killed", "pid": process.pid.as_raw_nonzero().get()});
    log.write_all(format!("{event}\n").as_bytes()).expect("the log can be written");
}

/// Fails the test if an attempt of a frame began before the previous one had ended, by itself or by a kill of the test, or if a
/// tool of an earlier attempt was still running.
pub(crate) fn no_frame_ran_twice_at_a_time(world: &World) {
    let path = world.state().with_file_name("stand-in.log");
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut running: HashMap<String, i64> = HashMap::new();
    let (mut started, mut ended) = (HashSet::<i64>::new(), HashSet::<i64>::new());
    let mut over: HashSet<String> = HashSet::new();
    let mut attempts: HashMap<String, String> = HashMap::new();
    for event in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("the log is JSON lines")) {
        let pid = event["pid"].as_i64().expect("a process id");
        match event["event"].as_str() {
            Some("start") => {
                // A session that somebody else has started has none.
                let Some(frame) = event["env"]["AGENT_CLI_FRAME"].as_str().map(str::to_owned) else { continue };
                let attempt = event["env"]["AGENT_CLI_ATTEMPT"].as_str().expect("every agent has one").to_owned();
                // Process ids are reused. However, a process that has not started before may already be logged as killed: it
                // lives for another moment and writes this line.
                if !started.insert(pid) {
                    ended.remove(&pid);
                }
                if let Some(before) = running.insert(frame.clone(), pid) {
                    assert!(
                        before == pid || ended.contains(&before),
                        "{frame} began in {pid} while it ran in {before}\n{text}"
                    );
                }
                over.extend(attempts.insert(frame, attempt));
            }
            Some("end" | "killed") => {
                ended.insert(pid);
            }
            Some("tool") => {
                let attempt = event["attempt"].as_str().expect("an agent called it");
                assert!(!over.contains(attempt), "a tool of {attempt} outlived it");
            }
            _ => {}
        }
    }
}
