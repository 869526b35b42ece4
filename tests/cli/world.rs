//! The test environment: a separate home, state directory and project, and an environment with only what the program needs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::executable::write_executable;
use crate::gate::Gate;
use crate::invocation::Invocation;
use crate::log::Log;
use crate::names::Names;
use crate::outcome::Outcome;
use crate::postgres;
use crate::programs;

/// A world for one test. Everything in it is deleted when it is dropped.
pub(crate) struct World {
    root: TempDir,
    env: BTreeMap<OsString, OsString>,
    /// The command in which all others run, if any.
    within: Vec<String>,
    names: RefCell<Names>,
}

impl World {
    /// A world in which `claude` is the stand-in. Its user has switched all hooks off: agents pause with signals.
    pub(crate) fn new() -> Self {
        let world = Self::with_hooks();
        world.switch_hooks_off();
        world
    }

    /// A world in which agents pause inside a tool call.
    pub(crate) fn with_hooks() -> Self {
        Self::with_hooks_in(&std::env::temp_dir())
    }

    /// The same, below this directory.
    pub(crate) fn with_hooks_in(folder: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("agent-cli-test-").tempdir_in(folder);
        let root = root.expect("a temporary directory");
        let world = Self { root, env: BTreeMap::new(), within: Vec::new(), names: RefCell::default() };
        for folder in [world.home(), world.project()] {
            fs::create_dir(folder).expect("the root is writable");
        }
        let path = std::env::join_paths([programs::folder(), "/usr/bin".into(), "/bin".into()]);
        let defaults: [(&str, OsString); 6] = [
            ("PATH", path.expect("no colon in the target directory")),
            ("HOME", world.home().into()),
            ("AGENT_CLI_STATE_DIR", world.state().into()),
            ("AGENT_CLI_CLAUDE", programs::stand_in().into()),
            ("STAND_IN_LOG", world.path("stand-in.log").into()),
            // Most tests are about what happens when calls are suspended.
            ("AGENT_CLI_LINGER", "0s".into()),
        ];
        let world = defaults.into_iter().fold(world, |world, (name, value)| world.with(name, value));
        // With this variable, all tests record their chains on a server.
        let on_server = std::env::var_os("AGENT_CLI_TEST_SERVER").is_some();
        if on_server { world.with("AGENT_CLI_STORE", postgres::new_database()) } else { world }
    }

    /// Writes the user's settings of Claude Code.
    pub(crate) fn user_settings(&self, settings: &Value) {
        let folder = self.env.get(OsStr::new("CLAUDE_CONFIG_DIR")).map_or(self.home().join(".claude"), PathBuf::from);
        fs::create_dir_all(&folder).expect("the home is writable");
        fs::write(folder.join("settings.json"), settings.to_string()).expect("the home is writable");
    }

    /// The user switches all hooks off.
    pub(crate) fn switch_hooks_off(&self) {
        self.user_settings(&serde_json::json!({"disableAllHooks": true}));
    }

    /// What agents have written to the file `marks`, if it exists.
    pub(crate) fn marks(&self) -> String {
        fs::read_to_string(self.project().join("marks")).unwrap_or_default()
    }

    /// The session of an attempt, counted from 0.
    pub(crate) fn session(&self, start: usize) -> String {
        self.log().starts[start].session().to_owned()
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("agent-cli.db")).expect("there is a database")
    }

    /// The same world with a variable in the environment of every command.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// The same world, in which all commands run in this one.
    pub(crate) fn within(self, command: Vec<String>) -> Self {
        Self { within: command, ..self }
    }

    /// The same world without one.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.env.remove(OsStr::new(name));
        self
    }

    /// The home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The state directory, which the program creates.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// The directory in which commands run.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Writes a file of the project.
    pub(crate) fn file(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("the project is writable");
        fs::write(&path, text).expect("the project is writable");
        path
    }

    /// Writes a program of the project.
    pub(crate) fn executable(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        write_executable(&path, text);
        path
    }

    /// A gate of the project, for the step `hold`.
    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::new(self.project().join(name))
    }

    /// A command of the program, to be completed and run.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Invocation<'_> {
        self.program(programs::agent_cli(), args)
    }

    /// Any other program, in the same environment.
    pub(crate) fn program<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Invocation<'_> {
        let mut words = self.within.iter().map(OsStr::new).chain([program.as_ref()]);
        let mut command = std::process::Command::new(words.next().expect("there is a program"));
        command.args(words).args(args).current_dir(self.project()).env_clear().envs(&self.env);
        Invocation::new(self, command)
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).run()
    }

    /// Spawns `file` and returns its id, which the command must have printed with the signal.
    pub(crate) fn spawn_paused(&self, file: &str) -> String {
        self.run(&["spawn", file]).started()
    }

    /// A session of Claude Code that `agent-cli` did not start.
    pub(crate) fn foreign_session(&self, session: &str, file: &str) {
        let args = ["-p", "--output-format", "stream-json", "--verbose", "--session-id", session];
        let prompt = format!("Read {} and follow its instructions.", self.project().join(file).display());
        self.program(programs::stand_in(), args).reads(prompt).run().succeeds();
    }

    /// What the stand-in has logged so far.
    pub(crate) fn log(&self) -> Log {
        Log::read(&self.path("stand-in.log"))
    }

    /// The number of agents that were started so far.
    pub(crate) fn starts(&self) -> usize {
        self.log().starts.len()
    }

    /// The open questions and their ids, in the order of the questions.
    pub(crate) fn questions(&self) -> Vec<(String, String)> {
        let outcome = self.run(&["questions", "--all-projects", "--json"]);
        let listed = outcome.json();
        let text = |question: &Value, name: &str| question[name].as_str().expect("it is a text").to_owned();
        let listed = listed.as_array().expect("a list of questions").iter();
        let mut questions: Vec<_> = listed.map(|question| (text(question, "question"), text(question, "id"))).collect();
        questions.sort();
        questions
    }

    /// The id of the only open question.
    pub(crate) fn question(&self) -> String {
        let mut questions = self.questions();
        assert_eq!(questions.len(), 1, "one question is open: {questions:?}");
        questions.remove(0).1
    }

    /// Answers the only open question.
    pub(crate) fn answer(&self, text: &str) {
        self.run(&["answer", &self.question(), text]).succeeds();
    }

    /// Answers one of several open questions.
    pub(crate) fn answer_to(&self, question: &str, text: &str) {
        let questions = self.questions();
        let (_, id) = questions.iter().find(|(asked, _)| asked == question).expect("it is open");
        self.run(&["answer", id, text]).succeeds();
    }

    /// The details of all events of this kind in the log of a frame.
    pub(crate) fn events(&self, frame: &str, kind: &str) -> Vec<Value> {
        let shown = self.run(&["show", frame, "--json"]).json();
        let events = shown["events"].as_array().expect("a list of events").iter();
        events.filter(|event| event["kind"] == kind).map(|event| event["detail"].clone()).collect()
    }

    /// Makes everything that waits appear to have waited this many seconds longer. Negative: as if the clock had been set back.
    pub(crate) fn time_passes(&self, seconds: i64) {
        let database = self.database();
        let sql = "UPDATE frames SET since = since - ?1 WHERE status = 'waiting'";
        database.execute(sql, [seconds * 1000]).expect("it can be written");
    }

    /// Brings the time that an agent waits for so much nearer (`1 minute`).
    pub(crate) fn awaited_time_comes_sooner(&self, by: &str) {
        let database = self.database();
        let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.time',
                   strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(detail, '$.wait.time'), '-' || ?1))
                   WHERE json_extract(detail, '$.wait.time') IS NOT NULL";
        assert_eq!(database.execute(sql, [by]).expect("it can be written"), 1);
    }

    /// Moves the last try of the only awaited command back by this much.
    pub(crate) fn last_try_was_earlier(&self, by: &str) {
        let database = self.database();
        let sql = "UPDATE requests SET looked = json_replace(looked, '$[0].tried',
                   strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(looked, '$[0].tried'), '-' || ?1))
                   WHERE json_extract(looked, '$[0].tried') IS NOT NULL";
        assert_eq!(database.execute(sql, [by]).expect("it can be written"), 1);
    }

    /// Makes all open questions with an expiry expire.
    pub(crate) fn questions_expire(&self) {
        let database = self.database();
        let sql = "UPDATE requests SET detail = json_replace(detail, '$.ask.expires_at', '2026-01-01T00:00:00Z')
                   WHERE status = 'open' AND json_extract(detail, '$.ask.expires_at') IS NOT NULL";
        assert!(database.execute(sql, []).expect("it can be written") > 0);
    }

    /// The transcripts that Claude Code keeps.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        files_below(&self.home().join(".claude/projects"))
    }

    /// `text` with ids and paths of this world replaced by names that are the same in every run.
    pub(crate) fn named(&self, text: &str) -> String {
        let places = [("[STATE]", self.state()), ("[PROJECT]", self.project()), ("[HOME]", self.home())];
        let slug: String = self.project().to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let programs = [("[STAND-IN]", programs::stand_in()), ("[BIN]", programs::folder())];
        let mut text = text.to_owned();
        for (name, path) in places.iter().chain(&programs) {
            text = text.replace(path.to_str().expect("a UTF-8 path"), name);
        }
        text = text.replace(&slug, "[SLUG]");
        self.names.borrow_mut().replace(&text)
    }

    fn path(&self, name: &str) -> PathBuf {
        // Programs report the directory that they are in without symbolic links.
        self.root.path().canonicalize().expect("the root exists").join(name)
    }
}

impl World {
    /// The kept copy of the session that an agent continues from.
    pub(crate) fn kept(&self, id: &str) -> PathBuf {
        let folder = self.state().join("frames").join(id);
        let checkpoint = self.run(&["show", id, "--json"]).json()["checkpoint"].as_str().map(str::to_owned);
        folder.join(format!("{}.jsonl", checkpoint.expect("it has paused or replied")))
    }
}

/// All files below a directory, sorted; none when it does not exist.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable directory").path())
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect();
    files.sort();
    files
}

/// Writes a person's config file, which no other user may write to.
pub(crate) fn write_config(world: &World, text: &str) -> PathBuf {
    let folder = world.home().join(".config/agent-cli");
    fs::create_dir_all(&folder).expect("the home is writable");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("it is ours");
    // A process that reads it in the meantime finds either version: an empty file would disable everything.
    let (path, new) = (folder.join("config.toml"), folder.join("config.new"));
    fs::write(&new, text).expect("the home is writable");
    fs::set_permissions(&new, Permissions::from_mode(0o600)).expect("it is ours");
    fs::rename(&new, &path).expect("it is ours");
    path
}
