//! Transcripts: one JSON line per message, in Claude Code's place for them.
//!
//! Claude Code writes a line shortly after it has printed the same, and the history of a fork with the first of them. Here the
//! lines that are withheld are counted, so that it does not depend on time which of them a killed process loses.
//!
//! In addition to Claude Code's fields, a line has a [`Mark`] that says which step it belongs to.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hooks::config_dir;
use crate::version;

/// What the interpreter remembers with a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The number of the step, from 1; 0 is the reading of the instructions.
    pub(crate) step: usize,
    /// Whether the step is over with this line.
    pub(crate) over: bool,
    /// The request that the line is about, if it contains the result of one.
    pub(crate) request: Option<String>,
}

/// The transcript of a running session.
pub(crate) struct Transcript {
    session: String,
    cwd: PathBuf,
    path: PathBuf,
    file: File,
    lines: Vec<Value>,
    /// What is not written yet.
    held: VecDeque<String>,
    /// How many pieces of it there may be.
    most_held: usize,
}

impl Transcript {
    /// Begins the transcript of `session`, with the lines of the session it is forked from.
    pub(crate) fn begin(session: &str, history: Vec<Value>) -> Result<Self> {
        let cwd = env::current_dir()?;
        let path = path_of(&cwd, session)?;
        fs::create_dir_all(path.parent().context("a transcript is in a folder")?)?;
        let Ok(file) = OpenOptions::new().create_new(true).append(true).open(&path) else {
            bail!("Session ID {session} is already in use.");
        };
        let most_held = env::var("STAND_IN_HOLDS_LINES").map_or(Ok(0), |most| most.parse())?;
        let mut lines = history;
        lines.iter_mut().for_each(|line| line["sessionId"] = json!(session));
        let held = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut transcript =
            Self { session: session.to_owned(), cwd, path, file, lines, held: VecDeque::from([held]), most_held };
        transcript.write_all_but(most_held)?;
        Ok(transcript)
    }

    /// Continues the transcript of `session`, which has these lines.
    pub(crate) fn go_on(session: &str, lines: Vec<Value>) -> Result<Self> {
        let cwd = env::current_dir()?;
        let path = path_of(&cwd, session)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        let most_held = env::var("STAND_IN_HOLDS_LINES").map_or(Ok(0), |most| most.parse())?;
        Ok(Self { session: session.to_owned(), cwd, path, file, lines, held: VecDeque::new(), most_held })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a message. Returns the name of its line, which its event has, too.
    pub(crate) fn add(&mut self, kind: &str, message: &Value, mark: &Mark) -> Result<Uuid> {
        self.add_line(kind, "message", message, mark)
    }

    /// Adds a line that is neither a message nor a call.
    pub(crate) fn attach(&mut self, attachment: &Value) -> Result<()> {
        self.add_line("attachment", "attachment", attachment, &Mark::default()).map(drop)
    }

    /// Notes the worktree that the agent entered. No message of the conversation follows this line.
    pub(crate) fn enter_worktree(&mut self, path: &Value) -> Result<()> {
        let line =
            json!({"type": "worktree-state", "sessionId": self.session, "worktreeSession": {"worktreePath": path}});
        self.held.push_back(format!("{line}\n"));
        self.write_all_but(self.most_held)
    }

    fn add_line(&mut self, kind: &str, name: &str, content: &Value, mark: &Mark) -> Result<Uuid> {
        let name_of_line = Uuid::new_v4();
        let mut line = json!({
            "parentUuid": self.lines.last().map(|line| line["uuid"].clone()),
            "isSidechain": false,
            "userType": "external",
            "cwd": self.cwd.to_string_lossy(),
            "sessionId": self.session,
            "version": version::version(),
            "type": kind,
            "uuid": name_of_line,
            "timestamp": jiff::Timestamp::now(),
            "standIn": mark,
        });
        line[name] = content.clone();
        self.write(line)?;
        Ok(name_of_line)
    }

    /// All lines.
    pub(crate) fn lines(&self) -> &[Value] {
        &self.lines
    }

    fn write(&mut self, line: Value) -> Result<()> {
        self.held.push_back(format!("{line}\n"));
        self.lines.push(line);
        self.write_all_but(self.most_held)
    }

    /// Writes the withheld lines. Claude Code does so before it prints the result.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write_all_but(0)
    }

    fn write_all_but(&mut self, held: usize) -> Result<()> {
        if env::var_os("STAND_IN_HAS_NO_ROOM").is_some() {
            return Ok(());
        }
        while self.held.len() > held {
            let Some(piece) = self.held.pop_front() else { break };
            self.file.write_all(piece.as_bytes())?;
        }
        Ok(())
    }
}

/// The lines of a session of this working directory, or of the transcript at a path; empty if there is no such session.
pub(crate) fn load(session: &str) -> Result<Vec<Value>> {
    let path = if session.ends_with(".jsonl") { session.into() } else { path_of(&env::current_dir()?, session)? };
    let text = fs::read(path).unwrap_or_default();
    // A truncated line is ignored, as in Claude Code.
    Ok(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn path_of(cwd: &Path, session: &str) -> Result<PathBuf> {
    let slug: String = cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Ok(config_dir()?.join("projects").join(slug).join(format!("{session}.jsonl")))
}
