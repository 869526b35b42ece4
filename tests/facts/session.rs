//! A Claude Code session whose calls are decided by a hook, which is a shell script, which does what the test says.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::write_executable;
use crate::support::{Conversation, Item, MessagesApi, RealHome, RecordedRequest, Turn, claude};

/// The command that is deferred.
pub(crate) const REQUEST: &str = "agent-cli ask 'When?'";

/// A project, a scripted model and a hook.
pub(crate) struct Session {
    pub(crate) api: MessagesApi,
    pub(crate) home: RealHome,
    pub(crate) settings: Value,
    claude: PathBuf,
    /// Its first id.
    pub(crate) id: String,
    /// Arguments of every run.
    pub(crate) arguments: Vec<&'static str>,
    /// Whether standard input is a pipe that ends only when a turn has begun after a `result`.
    pub(crate) input_stays_open: bool,
}

/// One run of `claude`.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) session: String,
    pub(crate) code: Option<i32>,
    pub(crate) events: Vec<Value>,
    pub(crate) err: String,
    /// What the model was sent.
    pub(crate) requests: Vec<Conversation>,
}

/// What a hook prints.
pub(crate) fn decision(word: &str, more: Value) -> Value {
    let mut decision = json!({"hookEventName": "PreToolUse", "permissionDecision": word});
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    decision.as_object_mut().unwrap().extend(more);
    json!({"hookSpecificOutput": decision})
}

pub(crate) fn defer() -> Value {
    decision("defer", json!({}))
}

/// Lets the call run, as this command.
pub(crate) fn run_instead(command: &str) -> Value {
    decision("allow", json!({"updatedInput": {"command": command}}))
}

impl Session {
    /// The model makes `calls`, and ends when it has a result or is spoken to.
    pub(crate) fn new(version: &str, calls: Turn) -> Self {
        let answered = |item: &Item| matches!(item, Item::Assistant(_) | Item::Call { .. } | Item::Result { .. });
        let first = move |said: &Conversation| {
            if said.items().iter().any(answered) { Turn::text("done") } else { calls.clone() }
        };
        Self::with_model(version, first)
    }

    pub(crate) fn with_model(version: &str, model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Self {
        let api = MessagesApi::start(model);
        let home = RealHome::new(api.url());
        let mut session = Self {
            api,
            home,
            settings: json!({}),
            claude: claude(version),
            id: fresh_id(),
            arguments: Vec::new(),
            input_stays_open: false,
        };
        let hook = session.script(
            "hook",
            "call=$(cat)\nprintf '%s\\n' \"$call\" >> asked\nenv > environment\n\
             case $call in *'\"command\":\"agent-cli'* | *AskUserQuestion*) cat decision ;; *) cat otherwise ;; esac\n",
        );
        session.settings = json!({"hooks": {"PreToolUse": [{
            "matcher": "Bash|AskUserQuestion", "hooks": [{"type": "command", "command": hook}],
        }]}});
        session.decide(&defer());
        session.write("otherwise", &decision("allow", json!({})).to_string());
        session
    }

    /// What the hook says of requests from now on.
    pub(crate) fn decide(&self, decision: &Value) {
        self.write("decision", &decision.to_string());
    }

    /// A script that runs in the home folder; its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let home = self.home.home();
        let path = home.join(name);
        write_executable(&path, format!("#!/bin/sh\ncd '{}'\n{text}", home.display()));
        path.to_str().unwrap().to_owned()
    }

    /// Writes a file of the home folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of the home folder, empty when it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.home().join(name)).unwrap_or_default()
    }

    /// What the hook was asked so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.read("asked").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The lines of the first session's transcript.
    pub(crate) fn transcript(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.home.transcript(&self.id).unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The session up to its pause, or to its end.
    pub(crate) fn start(&self) -> Run {
        let prompt = self.write("prompt", "go");
        self.run(&self.id, &["--session-id", &self.id], &prompt)
    }

    /// A fork without a prompt.
    pub(crate) fn resume(&self) -> Run {
        self.resume_from(&self.id, "")
    }

    /// A fork of a session (an id, or a transcript) with a prompt, or, if it is empty, without.
    pub(crate) fn resume_from(&self, session: &str, prompt: &str) -> Run {
        let fork = fresh_id();
        let prompt = self.write("prompt", prompt);
        self.run(&fork, &["--resume", session, "--fork-session", "--session-id", &fork], &prompt)
    }

    /// The session itself, without a prompt.
    pub(crate) fn go_on(&self) -> Run {
        let prompt = self.write("prompt", "");
        self.run(&self.id, &["--resume", &self.id], &prompt)
    }

    /// The same session again, as the arguments say.
    pub(crate) fn run_with(&self, arguments: &[&str], prompt: &str) -> Run {
        let prompt = self.write("prompt", prompt);
        self.run(&self.id, arguments, &prompt)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.home.command(&self.claude);
        command.args(["-p", "--output-format", "stream-json", "--verbose", "--settings"]);
        command.arg(self.settings.to_string()).args(&self.arguments);
        command
    }

    fn run(&self, session: &str, arguments: &[&str], input: &Path) -> Run {
        let before = self.api.count();
        let input = fs::File::open(input).unwrap();
        let mut command = self.command();
        command.args(arguments);
        let output = if self.input_stays_open {
            output_with_pipe(command, input)
        } else {
            command.stdin(Stdio::from(input)).output().unwrap()
        };
        let events = String::from_utf8(output.stdout).unwrap();
        Run {
            session: session.to_owned(),
            code: output.status.code(),
            events: events.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            err: String::from_utf8(output.stderr).unwrap(),
            requests: self.api.requests()[before..].iter().map(RecordedRequest::conversation).collect(),
        }
    }
}

fn output_with_pipe(mut command: Command, mut input: fs::File) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let written = thread::spawn(move || {
        io::copy(&mut input, &mut pipe).unwrap();
        pipe
    });
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut printed, mut line, mut has_ended) = (String::new(), String::new(), false);
    while reader.read_line(&mut line).unwrap() > 0 {
        let event: Value = serde_json::from_str(&line).unwrap();
        printed.push_str(&line);
        line.clear();
        has_ended |= event["type"] == "result";
        if has_ended && event["subtype"] == "init" {
            break;
        }
    }
    drop(written.join().unwrap());
    reader.read_to_string(&mut printed).unwrap();
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    Output { status, stdout: printed.into(), stderr }
}

impl Run {
    /// The last `result` event.
    pub(crate) fn result(&self) -> &Value {
        self.events.iter().rfind(|event| event["type"] == "result").unwrap_or_else(|| panic!("no result: {self:?}"))
    }

    /// Whether it ended with a deferred call.
    pub(crate) fn is_deferred(&self) -> bool {
        self.result()["stop_reason"] == "tool_deferred"
    }

    /// The only request that it made.
    pub(crate) fn request(&self) -> &Conversation {
        let [request] = self.requests.as_slice() else { panic!("{} requests: {self:?}", self.requests.len()) };
        request
    }

    /// The only result of a tool in its only request, and whether that is an error.
    pub(crate) fn tool_result(&self) -> (&str, bool) {
        let results = results(self.request());
        let [(_, text, is_error)] = results.as_slice() else { panic!("not one result: {results:?}") };
        (text, *is_error)
    }
}

/// The results in a request, each with the command that it belongs to.
pub(crate) fn results(request: &Conversation) -> Vec<(String, &str, bool)> {
    let command = |of: &str| {
        let call = request.items().iter().find_map(|item| match item {
            Item::Call { id, input, .. } if id == of => input["command"].as_str(),
            _ => None,
        });
        call.unwrap_or_default().to_owned()
    };
    let result = |item| match item {
        &Item::Result { ref id, ref text, is_error } => Some((command(id), text.as_str(), is_error)),
        _ => None,
    };
    request.items().iter().filter_map(result).collect()
}

/// The commands that the model has called, as a request shows them.
pub(crate) fn commands(request: &Conversation) -> Vec<&str> {
    let mut commands = Vec::new();
    for item in request.items() {
        if let Item::Call { input, .. } = item {
            commands.extend(input["command"].as_str());
        }
    }
    commands
}

/// What was said after the last result or call: by the user as it is, by the model after `model: `.
pub(crate) fn said_at_the_end(request: &Conversation) -> Vec<String> {
    let items = request.items();
    let start = items.iter().rposition(|item| matches!(item, Item::Call { .. } | Item::Result { .. }));
    let said = |item: &Item| match item {
        Item::User(text) => Some(text.clone()),
        Item::Assistant(text) => Some(format!("model: {text}")),
        _ => None,
    };
    items[start.map_or(0, |start| start + 1)..].iter().filter_map(said).collect()
}

fn fresh_id() -> String {
    Uuid::new_v4().to_string()
}
