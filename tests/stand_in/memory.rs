//! What an agent knows: its transcript, read from the beginning.

use std::collections::HashSet;

use serde_json::Value;

use crate::events::SYNTHETIC;
use crate::sections::{self, Request};
use crate::transcript::Mark;

/// The state of the interpreter. It is computed from the transcript before every step and held nowhere else.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The file that the first prompt named.
    pub(crate) task: Option<String>,
    /// What was read from it.
    pub(crate) instructions: Option<String>,
    /// The number of steps that are over.
    pub(crate) over: usize,
    /// Requests without a result.
    pub(crate) pending: Vec<String>,
    /// The last result, of a request or of another call.
    pub(crate) result: String,
    /// The results of all requests.
    pub(crate) results: Vec<String>,
    /// What it replied, unless it was given a result since. An agent that was killed before anybody heard it says it
    /// again.
    pub(crate) reply: Option<String>,
    /// The id that was printed last.
    pub(crate) last_id: String,
    /// Steps that have told the caller that they wait.
    pub(crate) announced: HashSet<usize>,
    /// How often the model has answered.
    pub(crate) answers: u32,
}

impl Memory {
    /// What the lines of a transcript amount to.
    pub(crate) fn of(lines: &[Value]) -> Self {
        let mut memory = Self::default();
        for line in lines {
            let mark: Mark = serde_json::from_value(line["standIn"].clone()).unwrap_or_default();
            let content = &line["message"]["content"];
            match (line["type"].as_str(), content.as_str()) {
                (Some("user"), Some(prompt)) => memory.hear(prompt),
                (Some("user"), None) => memory.take(content[0]["content"].as_str().unwrap_or_default(), &mark),
                (Some("assistant"), _) if line["message"]["model"] != SYNTHETIC => memory.say(&content[0], &mark),
                (Some("system"), _) => memory.pass(&mark),
                _ => {}
            }
        }
        memory
    }

    fn hear(&mut self, prompt: &str) {
        let first = prompt.lines().next().unwrap_or_default();
        let file = first.strip_prefix("Read ").and_then(|rest| rest.strip_suffix(" and follow its instructions."));
        // What a conversation held before it was forked for another task is over.
        if let Some(file) = file {
            *self = Self { task: Some(file.to_owned()), ..Self::default() };
        }
        let instructions = self.instructions.as_deref().unwrap_or_default();
        for section in sections::read(prompt, &self.pending, instructions, self.over) {
            if let Request::Forgotten(step) = section.of {
                self.over = self.over.max(step);
            }
            self.deliver(&section.of, section.result);
        }
    }

    fn pass(&mut self, mark: &Mark) {
        self.over = self.over.max(if mark.over { mark.step } else { 0 });
    }

    fn take(&mut self, output: &str, mark: &Mark) {
        self.pass(mark);
        if mark.step == 0 {
            self.instructions = Some(output.to_owned());
            return;
        }
        if let Some(id) = &mark.request {
            self.deliver(&Request::Known(id.clone()), output.to_owned());
            return;
        }
        let ids: Vec<String> = output.lines().filter_map(started).map(str::to_owned).collect();
        match ids.last() {
            Some(id) => self.last_id.clone_from(id),
            None => output.clone_into(&mut self.result),
        }
        self.pending.extend(ids);
    }

    fn say(&mut self, block: &Value, mark: &Mark) {
        self.answers += 1;
        if block["type"] == "text" {
            self.pass(mark);
            self.announced.insert(mark.step);
            self.reply = block["text"].as_str().filter(|_| mark.over).map(str::to_owned);
        }
    }

    fn deliver(&mut self, of: &Request, result: String) {
        self.pending.retain(|pending| *of != Request::Known(pending.clone()));
        self.reply = None;
        self.result.clone_from(&result);
        self.results.push(result);
    }
}

/// The id in a line `SGN_PEND_STARTED (ID)`.
fn started(line: &str) -> Option<&str> {
    line.trim().strip_prefix("SGN_PEND_STARTED (")?.strip_suffix(')')
}
