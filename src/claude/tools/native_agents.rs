//! The tools with which Claude Code starts agents of its own.

use std::collections::HashSet;
use std::io::{self, BufRead};

use serde_json::Value;

use crate::claude::json_lines::{blocks, json_lines};

/// Each call of these starts an agent. Older versions call it Task.
const AGENTS: [&str; 2] = ["Agent", "Task"];
/// A call of this starts as many as its script says.
const WORKFLOW: &str = "Workflow";

/// The names of all of them.
pub(crate) const ALL: [&str; 3] = [AGENTS[0], AGENTS[1], WORKFLOW];

/// Why a call of one of these tools is denied; `None`: it is not. `most`: how many agents may be started; `before`: how many calls
/// there were before it.
pub(crate) fn denial(tool: &str, most: u32, before: usize) -> Option<String> {
    let instead = "do the work yourself, or start an agent with agent-cli spawn";
    if tool == WORKFLOW {
        return Some(format!("workflows are switched off, because they start any number of agents: {instead}"));
    }
    if most == 0 {
        return Some(format!("agents of Claude Code's own are switched off: {instead}"));
    }
    let is_left = AGENTS.contains(&tool) && before < most as usize;
    (!is_left).then(|| format!("you have started as many agents of Claude Code's own as you may ({most}): {instead}"))
}

/// How many agents were started in the attempts that `printed` before the call with this id.
pub(crate) fn started_before(printed: impl BufRead, call: &str) -> io::Result<usize> {
    let mut started = HashSet::new();
    for event in json_lines::<Value>(printed) {
        for block in blocks(&event?).filter(|block| block["type"] == "tool_use") {
            if block["id"] == call {
                return Ok(started.len());
            }
            let is_of_agent = block["name"].as_str().is_some_and(|name| AGENTS.contains(&name));
            started.extend(block["id"].as_str().filter(|_| is_of_agent).map(str::to_owned));
        }
    }
    Ok(started.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}]}}}}"#
        )
    }

    #[test]
    fn calls_count_once_and_in_the_order_in_which_they_were_made() {
        let printed =
            [call("a", "Agent"), call("a", "Agent"), call("b", "Bash"), call("c", "Task"), call("d", "Agent")]
                .join("\n");
        let before = |id| started_before(printed.as_bytes(), id).unwrap();
        assert_eq!(["a", "b", "c", "d", "not yet printed"].map(before), [0, 1, 1, 2, 3]);
    }

    #[test]
    fn agents_are_denied_beyond_the_limit_and_workflows_always() {
        assert_eq!([0, 1].map(|before| denial("Agent", 2, before)), [None, None]);
        assert!(denial("Task", 2, 2).unwrap().contains("as you may (2)"));
        assert!(denial("Agent", 0, 0).is_some());
        assert!(denial("Workflow", 9, 0).is_some());
    }
}
