//! A chain under test: a home with a project, a scripted model, and this program.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use jiff::Timestamp;
use serde_json::Value;

use crate::processes::{output_in_time, wait_until};
use crate::support::{MessagesApi, RealHome, as_shell, claude, follow, processes_of};

/// The convention that agents follow.
pub(crate) const TEMPLATE: &str = include_str!("../../CLAUDE.md.template");

/// Everything that a chain needs.
pub(crate) struct Chain {
    pub(crate) api: MessagesApi,
    pub(crate) home: RealHome,
    claude: PathBuf,
    /// Whether calls linger whose results are expected soon.
    lingers: bool,
}

/// The output of a command, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Chain {
    /// A project whose CLAUDE.md is the template, and a model that follows it.
    pub(crate) fn new(version: &str) -> Self {
        let chain = Self::with_model(version, MessagesApi::start(follow));
        chain.home.write("CLAUDE.md", TEMPLATE);
        chain
    }

    /// An empty project, and this model.
    pub(crate) fn with_model(version: &str, api: MessagesApi) -> Self {
        let home = RealHome::new(api.url());
        Self { api, home, claude: claude(version), lingers: true }
    }

    /// The same, with every call suspended at once.
    pub(crate) fn without_lingering(self) -> Self {
        Self { lingers: false, ..self }
    }

    /// Puts the birthday example into the project.
    pub(crate) fn birthday(&self) {
        for name in ["ins1.md", "ins2.md", "ins3.md", "ins4.md"] {
            let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/birthday").join(name);
            self.home.write(name, &fs::read_to_string(example).unwrap());
        }
    }

    /// This program, ready to be called with arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_agent-cli"));
        command.env("AGENT_CLI_CLAUDE", &self.claude).env("AGENT_CLI_STATE_DIR", self.state());
        if !self.lingers {
            command.env("AGENT_CLI_LINGER", "0s");
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Said::from(output_in_time(command.spawn().unwrap(), &format!("{arguments:?}")))
    }

    /// Runs a line of a shell that begins with `agent-cli`.
    pub(crate) fn shell(&self, line: &str) -> Said {
        Said::from(as_shell(&self.command(), line).output().unwrap())
    }

    /// The standard output of a command, which must end with 0.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said.out
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// Starts a chain that pauses, and returns the id of its root.
    pub(crate) fn started(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        let id = said.out.trim().strip_prefix("SGN_PEND_STARTED (").and_then(|rest| rest.strip_suffix(')'));
        id.filter(|_| said.code == Some(0)).unwrap_or_else(|| panic!("{arguments:?}: {said:?}")).to_owned()
    }

    /// Answers the only open question.
    pub(crate) fn answer(&self, text: &str) {
        let questions = self.json(&["questions", "--json"]);
        assert_eq!(questions.as_array().map(Vec::len), Some(1), "{questions}");
        self.ok(&["answer", questions[0]["id"].as_str().unwrap(), text]);
    }

    /// Answers one of several open questions, by standard input.
    pub(crate) fn answer_to(&self, question: &str, text: &str) {
        let questions = self.json(&["questions", "--json"]);
        let asked = questions.as_array().unwrap().iter().find(|listed| listed["question"] == question).unwrap();
        let mut command = self.command();
        command
            .args(["answer", asked["id"].as_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut answering = command.spawn().unwrap();
        answering.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = Said::from(answering.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
    }

    /// The id of the only chain, in any state.
    pub(crate) fn only_root(&self) -> String {
        let listed = self.json(&["ls", "-ap", "--json"]);
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
        listed[0]["id"].as_str().unwrap().to_owned()
    }

    /// The number of attempts of all frames. Fails the test if one began before the previous one had ended.
    pub(crate) fn attempts_one_after_the_other(&self, root: &str) -> usize {
        let frames = self.json(&["tree", root, "--json"]);
        let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
        for frame in frames.as_array().unwrap() {
            let shown = self.json(&["show", frame["id"].as_str().unwrap(), "--json"]);
            let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
            spans.extend(shown["sessions"].as_array().unwrap().iter().map(|s| (time(&s["began"]), time(&s["ended"]))));
        }
        spans.sort();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
        }
        spans.len()
    }

    /// Waits until a transcript contains `text`. Claude Code writes shortly after it asks, and the agent repeats what was not
    /// written when it was killed.
    pub(crate) fn has_written(&self, text: &str) {
        wait_until("a transcript holds it", || {
            let texts = self.home.transcripts().into_iter().map(|path| fs::read_to_string(path).unwrap_or_default());
            texts.into_iter().any(|written| written.contains(text))
        });
    }

    /// The results of tool calls that the last request has, and whether they are errors.
    pub(crate) fn last_results(&self) -> Vec<(String, bool)> {
        let last = self.api.last_conversation();
        last.results().map(|(text, is_error)| (text.to_owned(), is_error)).collect()
    }

    /// Waits until no process of an agent is running, neither `claude` nor its children.
    pub(crate) fn nothing_runs(&self) {
        wait_until("nothing runs", || processes_of(&self.state()).is_empty());
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("agent-cli.db")).expect("there is a database")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home.home().join("state")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}
