//! The environment of the demo: a project, the real Claude Code, a scripted model, and a counter of the cost of each command.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::support::{
    Conversation, Item, MessagesApi, NEWEST, Pattern, RealHome, RecordedRequest, Turn, as_shell, cargo, claude, follow,
};

/// The project, and the services for its programs.
pub(crate) struct Stage {
    api: MessagesApi,
    home: RealHome,
    program: PathBuf,
    claude: PathBuf,
}

impl Stage {
    /// Builds the program, installs Claude Code, and puts the birthday example into a separate project.
    pub(crate) fn set() -> Self {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/birthday");
        let read = |name| std::fs::read_to_string(example.join(name)).expect("the example is in the repository");
        let files = ["CLAUDE.md", "ins1.md", "ins2.md", "ins3.md", "ins4.md"].map(|name| (name, read(name)));
        Self::with(&files.each_ref().map(|(name, text)| (*name, text.as_str())))
    }

    /// The same with other files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let stage = Self::with_model(follow);
        files.iter().for_each(|(name, text)| stage.file(name, text));
        stage
    }

    /// The same with a pattern.
    #[allow(dead_code, reason = "the recording has none")]
    pub(crate) fn of(pattern: &Pattern) -> Self {
        let stage = Self::with_model(pattern.model());
        pattern.copy_to(&stage.home);
        stage
    }

    /// The same without files, and with another model.
    pub(crate) fn with_model(model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Self {
        eprintln!("building agent-cli");
        let program = build();
        eprintln!("getting Claude Code {NEWEST}, unless it is in the build folder");
        let claude = claude(NEWEST);
        let api = MessagesApi::start(model);
        Self { home: RealHome::new(api.url()), api, program, claude }
    }

    /// Writes a file of the project.
    pub(crate) fn file(&self, name: &str, text: &str) {
        self.home.write(name, text);
    }

    /// The id of the agent with these instructions.
    #[allow(dead_code, reason = "the demo has one chain")]
    pub(crate) fn id_of(&self, task: &str) -> String {
        let agents: Value =
            serde_json::from_str(&output(self.command(&["tree", "--json"]))).expect("--json prints JSON");
        let found = agents.as_array().into_iter().flatten().find(|agent| agent["task"] == task);
        found.and_then(|agent| agent["id"].as_str()).expect("it is an agent of the chain")[..8].to_owned()
    }

    /// A command of the program.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(&self.program);
        command.args(arguments).env("AGENT_CLI_CLAUDE", &self.claude);
        command.env("AGENT_CLI_STATE_DIR", self.home.home().join("state"));
        command
    }

    /// Runs a command, and shows its output and cost.
    pub(crate) fn show(&self, arguments: &[&str]) {
        let words =
            arguments.iter().map(|word| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() });
        self.show_command(&format!("agent-cli {}", words.collect::<Vec<_>>().join(" ")), self.command(arguments));
    }

    /// The same for a line of a shell, with `ID` for the chain and `QUESTION` for the open question.
    #[allow(dead_code, reason = "the recording has none")]
    pub(crate) fn show_line(&self, line: &str) {
        let mut line = line.to_owned();
        if line.contains("QUESTION") {
            line = line.replace("QUESTION", &self.question());
        }
        if line.contains("ID") {
            line = line.replace("ID", &self.chain());
        }
        self.show_command(&line, as_shell(&self.command(&[]), &line));
    }

    fn show_command(&self, line: &str, command: Command) {
        println!("\n$ {line}");
        let (before, began) = (self.api.count(), Instant::now());
        let printed = output(command);
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        let requests = &self.api.requests()[before..];
        let tokens: usize = requests.iter().map(RecordedRequest::tokens).sum();
        print!("{printed}");
        println!("    {} requests, {tokens} tokens, {milliseconds:.0} ms", requests.len());
    }

    /// Shows the calls of the agent that asked, and their results, as they were last sent to its model.
    pub(crate) fn show_conversation_of_the_asker(&self) {
        let asks = |item: &Item| matches!(item, Item::Call { input, .. } if is_question(input));
        let conversations = self.api.requests().into_iter().map(|request| request.conversation());
        let last = conversations.filter(|conversation| conversation.items().iter().any(asks)).last();
        let last = last.expect("an agent has asked");
        let at = last.items().iter().position(asks).unwrap_or_default();
        for item in &last.items()[at..] {
            match item {
                Item::Call { input, .. } => println!("    call    {}", input["command"].as_str().unwrap_or_default()),
                Item::Result { text, .. } => println!("    result  {text}"),
                Item::User(text) => println!("    user    {text}"),
                Item::Assistant(text) => println!("    agent   {text}"),
            }
        }
    }

    /// Prints a remark between the commands.
    pub(crate) fn say(&self, text: &str) {
        println!("\n# {text}");
    }

    /// The id of the chain.
    pub(crate) fn chain(&self) -> String {
        self.first_id(&["ls", "--all", "--json"])
    }

    /// The id of the open question.
    pub(crate) fn question(&self) -> String {
        self.first_id(&["questions", "--json"])
    }

    fn first_id(&self, arguments: &[&str]) -> String {
        let listed: Value = serde_json::from_str(&output(self.command(arguments))).expect("--json prints JSON");
        let id = listed[0]["id"].as_str().expect("something is listed");
        // Eight characters are what a person would type.
        id[..8].to_owned()
    }
}

/// The output of a command on standard output.
fn output(mut command: Command) -> String {
    let output = command.output().expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("results are text")
}

fn is_question(input: &Value) -> bool {
    input["command"].as_str().is_some_and(|command| command.contains("agent-cli ask"))
}

/// Cargo does not build a binary for an example that runs it. Built together with the example, it shares the example's
/// dependencies.
fn build() -> PathBuf {
    let example = env::current_exe().expect("the running program has a path");
    let folder = example.parent().and_then(Path::parent).expect("cargo builds examples into <profile>/examples");
    let release = !cfg!(debug_assertions);
    let mut cargo = cargo();
    cargo.args(["build", "--bin", "agent-cli", "--example"]).args(example.file_name());
    cargo.args(release.then_some("--release"));
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "agent-cli cannot be built");
    folder.join("agent-cli")
}
