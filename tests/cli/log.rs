//! The stand-in's log: which agents were started, and how.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;

/// The log so far.
pub(crate) struct Log {
    /// The agents, in the order in which they were started.
    pub(crate) starts: Vec<Start>,
    /// How often the version was asked for.
    pub(crate) versions: usize,
}

/// One start of an agent.
pub(crate) struct Start {
    /// Its arguments.
    pub(crate) argv: Vec<String>,
    /// Its working directory.
    pub(crate) cwd: String,
    /// Its input.
    pub(crate) prompt: String,
    /// The number of agents that lived then, itself included.
    pub(crate) alive: usize,
    /// Its process.
    pub(crate) pid: i32,
    /// The rules of its settings that allow something.
    pub(crate) allowed: Vec<String>,
    env: Value,
    /// A file that is locked as long as the process lives, and removed when it ends in an orderly way.
    mark: Option<File>,
}

impl Log {
    /// Reads a log; empty if there is none.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("the log is JSON lines")).collect();
        let of = |kind: &str| events.iter().filter(|event| event["event"] == *kind).collect::<Vec<_>>();
        Self {
            starts: of("start").into_iter().map(|event| Start::new(event, &path.with_extension("alive"))).collect(),
            versions: of("version").len(),
        }
    }

    /// The most agents that ever lived at the same time.
    pub(crate) fn most_alive(&self) -> usize {
        self.starts.iter().map(|start| start.alive).max().unwrap_or(0)
    }

    /// The first prompts, by the name of the file that they name, and `SGN_RESUME` for the others: who ran when.
    pub(crate) fn order(&self) -> Vec<&str> {
        self.starts.iter().map(Start::task).collect()
    }
}

impl Start {
    /// Whether its input was more than the result of its call.
    pub(crate) fn is_prompted(&self) -> bool {
        !self.prompt.is_empty() && !self.beside_the_result().is_empty()
    }

    /// Its prompt, or the text that came with the result of its call.
    pub(crate) fn beside_the_result(&self) -> String {
        let message: Value = serde_json::from_str(&self.prompt).unwrap_or_default();
        match message["message"]["content"].as_array() {
            Some(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            None => self.prompt.clone(),
        }
    }

    /// The value of an argument.
    pub(crate) fn value_of(&self, name: &str) -> Option<&str> {
        self.values_of(name).next()
    }

    /// All values of an argument.
    pub(crate) fn values_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.argv.iter().filter_map(move |arg| arg.strip_prefix(name)?.strip_prefix('='))
    }

    /// Its session.
    pub(crate) fn session(&self) -> &str {
        self.value_of("--session-id").or(self.value_of("--resume")).expect("every start has a session")
    }

    /// A variable of its environment.
    pub(crate) fn env(&self, name: &str) -> Option<&str> {
        self.env[name].as_str()
    }

    /// Whether its process still lives.
    pub(crate) fn is_alive(&self) -> bool {
        // The lock is released immediately: an agent that starts now counts locks.
        self.mark.as_ref().is_some_and(|mark| mark.try_lock().map(|()| mark.unlock()).is_err())
    }

    fn task(&self) -> &str {
        let Some(rest) = self.prompt.strip_prefix("Read ") else { return "SGN_RESUME" };
        let path = rest.strip_suffix(" and follow its instructions.").unwrap_or(rest);
        path.rsplit('/').next().unwrap_or(path)
    }

    fn new(event: &Value, alive: &Path) -> Self {
        let text = |name: &str| event[name].as_str().expect("the log holds it").to_owned();
        let argv = event["argv"].as_array().expect("the log holds arguments");
        let pid = event["pid"].as_i64().and_then(|pid| pid.try_into().ok()).expect("a process id");
        Self {
            argv: argv.iter().map(|arg| arg.as_str().expect("text").to_owned()).collect(),
            cwd: text("cwd"),
            prompt: text("prompt"),
            alive: 1 + event["others"].as_array().expect("a list").len(),
            pid,
            allowed: serde_json::from_value(event["allowed"].clone()).unwrap_or_default(),
            env: event["env"].clone(),
            mark: File::open(alive.join(pid.to_string())).ok(),
        }
    }
}
