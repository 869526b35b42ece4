//! What the stand-in's log says about who ran when. Every line is written before the event that it reports, or after the end of
//! it.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde_json::Value;

use crate::world::World;

/// A step that takes a moment and logs its end, so that one which outlives its agent is noticed.
pub(crate) const TOOL: &str =
    r#"run sleep 0.03; printf '{"event":"tool","pid":%d,"attempt":"%s"}\n' $$ "$AGENT_CLI_ATTEMPT" >> "$STAND_IN_LOG""#;

/// Fails the test if an attempt of a frame began while the previous one lived, or if a tool of an earlier attempt was still running.
pub(crate) fn no_frame_ran_twice_at_a_time(world: &World) {
    let path = world.state().with_file_name("stand-in.log");
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut latest: HashMap<String, Start> = HashMap::new();
    let mut over: HashSet<String> = HashSet::new();
    for event in text.lines().filter_map(event_in) {
        match event["event"].as_str() {
            Some("start") => {
                // A session that was started elsewhere has none.
                let Some(frame) = event["env"]["AGENT_CLI_AGENT_ID"].as_str().map(str::to_owned) else { continue };
                let start = Start::new(&event);
                if let Some(before) = latest.get(&frame) {
                    // The second process has seen the other, whatever the order of their lines.
                    let saw = start.others.contains(&before.pid) || before.others.contains(&start.pid);
                    assert!(!saw, "{frame} began in {} while it ran in {}\n{text}", start.pid, before.pid);
                }
                over.extend(latest.insert(frame, start).map(|before| before.attempt));
            }
            Some("tool") => {
                let attempt = event["attempt"].as_str().expect("an agent called it");
                assert!(!over.contains(attempt), "a tool of {attempt} outlived it");
            }
            _ => {}
        }
    }
}

/// The event in a line of the log. A process that is killed while it writes leaves only a part of a line, which the next line
/// follows directly.
fn event_in(line: &str) -> Option<Value> {
    let is_event = |event: &Value| event["event"].is_string();
    let whole = |(at, _)| serde_json::from_str(&line[at..]).ok().filter(is_event);
    line.match_indices("{\"").find_map(whole)
}

#[test]
fn a_line_that_was_cut_short_hides_no_other() {
    let event = r#"{"event":"tool","env":{"event":"x"},"pid":1}"#;
    let of = |line: &str| event_in(line).map(|event| event["event"].clone());
    assert_eq!(of(event), Some("tool".into()));
    assert_eq!(of(&format!("{}{event}", &event[..20])), Some("tool".into()));
    assert_eq!(of(&event[..20]), None);
}

/// What a process of an agent logged when it started.
struct Start {
    pid: i64,
    attempt: String,
    /// The processes of agents that lived at that moment.
    others: Vec<i64>,
}

impl Start {
    fn new(event: &Value) -> Self {
        let others = event["others"].as_array().expect("a list");
        Self {
            pid: event["pid"].as_i64().expect("a process id"),
            attempt: event["env"]["AGENT_CLI_ATTEMPT"].as_str().expect("every agent has one").to_owned(),
            others: others.iter().map(|pid| pid.as_i64().expect("a process id")).collect(),
        }
    }
}
