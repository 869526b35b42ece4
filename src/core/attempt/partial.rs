//! What an agent has done so far: the result of a stopped agent.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use crate::core::attempt::signal::Signal;
use crate::core::events::agent_event::AgentEventKind;
use crate::core::events::call_line;
use crate::core::steering::stop_order::Stop;
use crate::core::text::escape;

/// What an agent has done so far, in bounded memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Partial {
    /// Its last text.
    said: Option<String>,
    /// The last tools that it used, the newest last.
    last: VecDeque<String>,
    /// How many it used.
    used: usize,
    /// The files that its tools wrote by name, and those of its subagents.
    files: BTreeSet<String>,
    /// How many more there were.
    more_files: usize,
}

/// The most tool calls that are named.
const MOST_CALLS: usize = 20;
/// The most files.
const MOST_FILES: usize = 50;
/// The maximum number of characters of its last text.
const MOST_SAID: usize = 4_000;

impl Partial {
    /// Processes the next event. `of_subagent`: whether a subagent caused it.
    pub(crate) fn absorb(&mut self, happening: &AgentEventKind, of_subagent: bool) {
        match happening {
            // A signal would tell its parent that the agent waits.
            AgentEventKind::Text { text } if Signal::on_a_line(text).is_some() => {}
            AgentEventKind::Text { text } if !of_subagent && !text.trim().is_empty() => self.said = Some(text.clone()),
            AgentEventKind::ToolUse { name, input, .. } => {
                if !of_subagent {
                    self.used += 1;
                    self.last.push_back(call_line::for_agents(name, input));
                    if self.last.len() > MOST_CALLS {
                        self.last.pop_front();
                    }
                }
                if let Some(file) = written(name, input).filter(|file| !self.files.contains(file)) {
                    if self.files.len() < MOST_FILES {
                        self.files.insert(file);
                    } else {
                        self.more_files += 1;
                    }
                }
            }
            _ => {}
        }
    }

    /// The report to the parent of a stopped agent. The agent's own words come last, so that nothing in them can be taken for
    /// this program's.
    pub(crate) fn report(&self, stop: &Stop) -> String {
        let mut parts = vec![stop.in_words()];
        parts.push(match (self.used, self.last.len()) {
            (0, _) => "It used no tools.".to_owned(),
            (used, named) if used > named => format!("The last {named} of {used} tool calls:{}", list(&self.last)),
            _ => format!("The tool calls that it made:{}", list(&self.last)),
        });
        if !self.files.is_empty() {
            let more = if self.more_files > 0 { format!("\n- and {} more", self.more_files) } else { String::new() };
            parts.push(format!("The files that its tools wrote by name:{}{more}", list(&self.files)));
        }
        if let Some(said) = &self.said {
            let kept: String = said.chars().take(MOST_SAID).collect();
            let cut = if kept.len() < said.len() { "…" } else { "" };
            parts.push(format!("What it said last:\n{kept}{cut}"));
        }
        parts.join("\n\n")
    }
}

fn list<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    lines.into_iter().map(|line| format!("\n- {}", escape::one_line(line))).collect()
}

/// The file that a tool of Claude Code writes: Write, Edit and similar ones. What commands write is unknown.
fn written(tool: &str, input: &Value) -> Option<String> {
    let name = if tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
    let writes = matches!(tool, "Write" | "Edit" | "MultiEdit" | "NotebookEdit");
    input[name].as_str().filter(|_| writes).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::core::id::FrameId;
    use crate::core::steering::stop_order::{By, StopKind};

    fn used(name: &str, input: Value) -> AgentEventKind {
        let summary = format!("{name}: {input}");
        AgentEventKind::ToolUse { id: "toolu_1".into(), name: name.into(), summary, input }
    }

    fn stop() -> Stop {
        let of = FrameId(Uuid::nil());
        let reason = Some("wrong branch".into());
        Stop { how: StopKind::Stop, now: false, by: By::Person, reason, of, report: None }
    }

    #[test]
    fn a_parent_learns_what_was_done() {
        let mut partial = Partial::default();
        partial.absorb(&AgentEventKind::Text { text: "Let me see.".into() }, false);
        partial.absorb(&used("Bash", json!({"command": "make\nall"})), false);
        partial.absorb(&used("Write", json!({"file_path": "/srv/a"})), false);
        partial.absorb(&used("Read", json!({"file_path": "/srv/b"})), false);
        partial.absorb(&used("Edit", json!({"file_path": "/srv/c"})), true);
        partial.absorb(&AgentEventKind::Text { text: "I am a subagent.".into() }, true);
        partial.absorb(&AgentEventKind::Text { text: "Half done.\nstopped by a person".into() }, false);
        partial.absorb(&AgentEventKind::Text { text: " ".into() }, false);
        partial.absorb(&AgentEventKind::Text { text: "SGN_PEND_STARTED (4f2c1a90)".into() }, false);
        insta::assert_snapshot!(partial.report(&stop()), @r#"
        stopped by a person: wrong branch

        The tool calls that it made:
        - Bash: make⏎all
        - Write: {"file_path":"/srv/a"}
        - Read: {"file_path":"/srv/b"}

        The files that its tools wrote by name:
        - /srv/a
        - /srv/c

        What it said last:
        Half done.
        stopped by a person
        "#);
        assert_eq!(Partial::default().report(&stop()), "stopped by a person: wrong branch\n\nIt used no tools.");
    }

    #[test]
    fn it_is_bounded() {
        let mut partial = Partial::default();
        for n in 0..1000 {
            partial.absorb(&used("Write", json!({"file_path": format!("/srv/{n}")})), false);
        }
        partial.absorb(&AgentEventKind::Text { text: "é".repeat(100_000) }, false);
        let report = partial.report(&stop());
        assert!(report.len() < 16_000, "{}", report.len());
        assert!(report.contains("The last 20 of 1000 tool calls:") && report.contains("\n- and 950 more"));
        assert!(report.ends_with('…'));
    }
}
