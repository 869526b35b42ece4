//! What an agent knows: its transcript, read from the beginning.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::bash;
use crate::deferral;
use crate::events::SYNTHETIC;
use crate::sections::{self, Request};
use crate::summary::{self, Known};
use crate::transcript::Mark;

/// The state of the interpreter. It is computed from the transcript before every step and held nowhere else.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The file that the first prompt named.
    pub(crate) task: Option<String>,
    /// Results in prompts from before the instructions were read.
    told: Vec<String>,
    /// What was read from it.
    pub(crate) instructions: Option<String>,
    /// The number of steps that are over.
    pub(crate) over: usize,
    /// Requests without a result.
    pub(crate) pending: Vec<String>,
    /// Agents in its background without a result.
    pub(crate) beside: Vec<String>,
    /// The last result, of a request or of another call.
    pub(crate) result: String,
    /// The results of all requests.
    pub(crate) results: Vec<String>,
    /// Its reply, unless it was given a result since. An agent that was killed before anybody received the reply repeats it.
    pub(crate) reply: Option<String>,
    /// The id that was printed last.
    pub(crate) last_id: String,
    /// Steps whose calls have no result yet, although they were closed.
    pub(crate) without_result: HashSet<usize>,
    /// Steps that told the caller that they wait.
    pub(crate) announced: HashSet<usize>,
    /// How often the model has answered.
    pub(crate) answers: u32,
    /// Steps whose calls were killed and are repeated.
    again: Vec<usize>,
    /// Its calls, and the steps that they belong to.
    calls: HashMap<String, Mark>,
    /// Calls that a hook has deferred: they are requests.
    deferred: HashSet<String>,
    /// The message that came last.
    message: Value,
}

impl Memory {
    /// The state that the lines of a transcript lead to.
    pub(crate) fn of(lines: &[Value]) -> Self {
        let mut memory = Self::default();
        for line in lines {
            let mark: Option<Mark> = serde_json::from_value(line["standIn"].clone()).ok();
            let content = &line["message"]["content"];
            match (line["type"].as_str(), content.as_str()) {
                (Some("user"), Some(prompt)) => memory.hear(prompt),
                (Some("user"), None) => memory.take(&content[0], mark),
                (Some("assistant"), _) if line["message"]["model"] != SYNTHETIC => {
                    memory.answers += u32::from(memory.message != line["message"]["id"]);
                    memory.message = line["message"]["id"].clone();
                    memory.say(&content[0], &mark.unwrap_or_default());
                }
                (Some("system"), _) => memory.pass(&mark.unwrap_or_default()),
                (Some("attachment"), _) => memory.deferred.extend(deferral::marked(line).map(str::to_owned)),
                _ => {}
            }
        }
        memory
    }

    fn hear(&mut self, prompt: &str) {
        let first = prompt.lines().next().unwrap_or_default();
        let file = first.strip_prefix("Read ").and_then(|rest| rest.strip_suffix(" and follow its instructions."));
        // The earlier conversation of a fork for another task does not count.
        if let Some(file) = file {
            *self = Self { task: Some(file.to_owned()), ..Self::default() };
        }
        if let Some(Known { over, pending, results }) = summary::known(prompt) {
            let last_id = pending.last().cloned().unwrap_or_default();
            *self = Self { task: self.task.take(), over, pending, results, last_id, ..Self::default() };
        }
        match self.instructions {
            Some(_) => self.be_told(prompt),
            None => self.told.push(prompt.to_owned()),
        }
    }

    fn be_told(&mut self, prompt: &str) {
        let instructions = self.instructions.as_deref().unwrap_or_default();
        let open = [self.pending.as_slice(), &self.beside].concat();
        for section in sections::read(prompt, &open, instructions, self.over, &self.again) {
            if section.of == Request::Again {
                continue;
            }
            if let Request::Forgotten(step) = section.of {
                self.over = self.over.max(step);
            }
            self.deliver(&section.of, section.result);
        }
    }

    fn pass(&mut self, mark: &Mark) {
        self.over = self.over.max(if mark.over { mark.step } else { 0 });
    }

    /// A result without a mark was added to the transcript by somebody else.
    fn take(&mut self, block: &Value, mark: Option<Mark>) {
        let output = block["content"].as_str().unwrap_or_default();
        let call = block["tool_use_id"].as_str().unwrap_or_default();
        let was_deferred = mark.is_none() || self.deferred.contains(call);
        let mark = mark.or_else(|| self.calls.get(call).cloned()).unwrap_or_default();
        if output.starts_with("This call has no result yet.") {
            self.without_result.insert(mark.step);
            return;
        }
        self.pass(&mark);
        if mark.step == 0 {
            self.instructions = Some(output.to_owned());
            for prompt in std::mem::take(&mut self.told) {
                self.be_told(&prompt);
            }
            return;
        }
        if let Some(id) = &mark.request {
            self.deliver(&Request::Known(id.clone()), output.to_owned());
            return;
        }
        let ids: Vec<String> = output.lines().filter_map(started).map(str::to_owned).collect();
        if !mark.over && bash::is_worth_another_try(output) {
            self.again.push(mark.step);
            return;
        }
        match ids.last() {
            Some(id) => self.last_id.clone_from(id),
            None if was_deferred => self.deliver(&Request::Called, output.to_owned()),
            None => output.clone_into(&mut self.result),
        }
        if let Some(id) = in_background(output) {
            self.last_id = id.to_owned();
            self.beside.push(id.to_owned());
        }
        self.pending.extend(ids);
    }

    fn say(&mut self, block: &Value, mark: &Mark) {
        if let Some(call) = block["id"].as_str() {
            self.calls.insert(call.to_owned(), mark.clone());
        }
        if block["type"] == "text" {
            self.pass(mark);
            self.announced.insert(mark.step);
            self.reply = block["text"].as_str().filter(|_| mark.over).map(str::to_owned);
        }
    }

    fn deliver(&mut self, of: &Request, result: String) {
        let is_open = |id: &String| *of != Request::Known(id.clone());
        self.pending.retain(is_open);
        self.beside.retain(is_open);
        self.reply = None;
        self.result.clone_from(&result);
        self.results.push(result);
    }
}

/// The id that `spawn --background` prints.
fn in_background(output: &str) -> Option<&str> {
    let id = output.trim();
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_id.then_some(id)
}

/// The id in a line `SGN_PEND_STARTED (ID)`.
fn started(line: &str) -> Option<&str> {
    line.trim().strip_prefix("SGN_PEND_STARTED (")?.strip_suffix(')')
}
