//! Formats the events of agents as lines for people.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::cli::output::format::{cut, fitted};
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::events::event_words;
use crate::core::id::FrameId;
use crate::core::requests::approval::{self, Before};
use crate::core::text::wrap::{columns, wrapped};
use crate::core::text::{escape, extent};

/// The options for showing events.
#[derive(Debug)]
pub(crate) struct EventLines {
    /// Whether texts are shown completely.
    pub(crate) full: bool,
    /// The terminal's width. `None` if the lines do not go to a terminal.
    pub(crate) width: Option<usize>,
    pub(crate) zone: TimeZone,
    /// The names of the agents, if several agents are shown.
    pub(crate) names: Option<HashMap<FrameId, String>>,
}

/// How many lines of a text are shown by default.
const LINES: usize = 12;
/// The maximum width of an agent's name next to its id.
const NAME: usize = 16;

impl EventLines {
    /// Formats an event as escaped lines. `None` if the event is only shown in full, or means nothing to people.
    pub(crate) fn lines(&self, event: &AgentEvent) -> Option<String> {
        let (mark, text) = self.words(&event.what)?;
        let time = event.at.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let name = self.names.as_ref().map(|names| {
            let name = names.get(&event.frame).map_or_else(String::new, |name| format!(" {}", cut(name, NAME)));
            format!("{}{name}  ", event.frame.short())
        });
        let inside = if event.parent_tool_use_id.is_some() { "  " } else { "" };
        let prefix = format!("{time}  {}{inside}{mark}", name.unwrap_or_default());
        // On a narrow terminal, continuation lines begin near the left margin.
        let indent = match columns(&prefix) {
            wide if self.width.is_some_and(|width| wide * 3 > width) => 2,
            columns => columns,
        };
        let mut lines = Vec::new();
        for line in escape::block(text.trim_end()).lines() {
            let before = if lines.is_empty() { prefix.clone() } else { " ".repeat(indent) };
            let line = format!("{before}{line}").trim_end().to_owned();
            match self.width {
                Some(width) => lines.extend(wrapped(&line, width, indent)),
                None => lines.push(line),
            }
        }
        Some(if lines.is_empty() { format!("{}\n", prefix.trim_end()) } else { lines.join("\n") + "\n" })
    }

    /// The day of an event, because its line shows only the time.
    pub(crate) fn day(&self, at: Timestamp) -> Date {
        at.to_zoned(self.zone.clone()).date()
    }

    /// The prefix and the text. The text is not escaped yet.
    fn words(&self, what: &AgentEventKind) -> Option<(&'static str, String)> {
        Some(match what {
            AgentEventKind::Text { text } => ("", self.shown(text)),
            AgentEventKind::Thinking { text } if text.trim().is_empty() => return None,
            AgentEventKind::Thinking { text } if self.full => ("thinking: ", text.clone()),
            AgentEventKind::Thinking { text } => ("thinking: ", one(text)),
            AgentEventKind::ToolUse { name, input, .. } if self.full => ("> ", self.whole_call(name, input)),
            AgentEventKind::ToolUse { summary, .. } => ("> ", self.fitting(summary)),
            AgentEventKind::ToolResult { is_error, summary, content, .. } => {
                (if *is_error { "< error: " } else { "< " }, self.tool_result(summary, content))
            }
            AgentEventKind::RateLimit { status, .. } if status == "allowed" && !self.full => return None,
            AgentEventKind::RequestOver { .. } | AgentEventKind::Other { .. } if !self.full => return None,
            AgentEventKind::Task { status, .. } if status == "progress" && !self.full => return None,
            AgentEventKind::Result { is_error: true, text, .. } => ("", format!("error: {}", self.shown(text))),
            AgentEventKind::Message { by, instruction, text, .. } => {
                let what = if *instruction { "continued by" } else { "told by" };
                ("", format!("{what} {}: {}", sender(by), self.shown(text)))
            }
            AgentEventKind::Ended { message: Some(message), status, .. } => {
                ("", format!("{status}: {}", self.shown(message)))
            }
            other => ("", event_words::plain(other, &self.zone)?),
        })
    }

    fn tool_result(&self, summary: &str, content: &str) -> String {
        if self.full {
            return content.to_owned();
        }
        let hidden = extent::hidden(content.trim().lines().count(), 0, "");
        let more = hidden.map(|more| format!(" ({})", more.trim_start_matches("… "))).unwrap_or_default();
        let summary = if content.trim().is_empty() { "(no output)" } else { summary };
        format!("{}{more}", self.fitting(summary))
    }

    /// Whether a text is shown without cutting it.
    pub(crate) fn shows_all_of(&self, text: &str) -> bool {
        self.full || text.trim().lines().count() <= LINES
    }

    /// The text, cut unless all of it is shown.
    fn shown(&self, text: &str) -> String {
        let text = text.trim();
        if self.shows_all_of(text) {
            return text.to_owned();
        }
        let count = text.lines().count();
        let first: Vec<_> = text.lines().take(LINES - 1).collect();
        format!("{}\n… {} more lines (--full)", first.join("\n"), count + 1 - LINES)
    }

    fn whole_call(&self, name: &str, input: &Value) -> String {
        match input["command"].as_str() {
            Some(command) => format!("{name}: {command}"),
            // The prefix takes at most a third of the width.
            None => approval::view(name, input, &Before::Unknown, None, self.width.map(|width| width - width / 3)),
        }
    }

    /// A short line, cut to fit next to a prefix.
    fn fitting(&self, line: &str) -> String {
        const PREFIX: usize = 40;
        let most = self.width.map_or(usize::MAX, |width| width.saturating_sub(PREFIX).max(30));
        fitted(line, most.min(120))
    }
}

fn one(text: &str) -> String {
    escape::shortened(text.trim().lines().next().unwrap_or_default())
}

fn sender(by: &str) -> String {
    by.parse::<FrameId>().map_or_else(|_| "a person".to_owned(), |agent| format!("agent {}", agent.short()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::events::agent_event::VERSION;

    #[test]
    fn a_whole_edit_is_shown_as_a_change() {
        let input = json!({"file_path": "a.rs", "old_string": "one", "new_string": "two"});
        let what = AgentEventKind::ToolUse { id: "t".into(), name: "Edit".into(), summary: "Edit a.rs".into(), input };
        let event = AgentEvent {
            version: VERSION,
            at: Timestamp::UNIX_EPOCH,
            frame: FrameId::random(),
            attempt: None,
            parent_tool_use_id: None,
            context_tokens: None,
            cut: false,
            what,
        };
        let lines = |full| {
            let lines = EventLines { full, width: Some(80), zone: TimeZone::UTC, names: None };
            lines.lines(&event).unwrap()
        };
        assert_eq!(lines(false), "00:00:00  > Edit a.rs\n");
        insta::assert_snapshot!(lines(true), @"
        00:00:00  > Edit
                      file_path:
                      │  a.rs
                      change:
                      │ -one
                      │ +two
        ");
    }
}
