//! `agent-cli spawn`: starts a chain; called by an agent, asks for a child.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::outcome::{self, Telling};
use super::output::{print_json, print_line};
use super::resume::tell_progress;
use crate::claude::program;
use crate::core::frame::Task;
use crate::core::id::FrameId;
use crate::core::launch::{self, Launch, Overrides};
use crate::core::limits::Limits;
use crate::core::request::Wish;
use crate::core::signal;
use crate::runtime::{RuntimeError, requests};
use crate::store::{Caller, NewFrame, Store};

/// Start an agent that follows the instructions in FILE
///
/// Drives the agent, and every agent that it starts, until nothing in the tree can run. Prints the reply when the agent
/// is done, or `SGN_PEND_STARTED (ID)` when the tree waits for something.
///
/// Called by an agent, it only records the request and prints `SGN_PEND_STARTED (ID)` at once: the child runs when the
/// agent has ended its turn.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  agent-cli spawn ins1.md --permission-mode acceptEdits -- --max-turns 50")]
pub(super) struct Spawn {
    /// The file with the agent's instructions
    file: PathBuf,

    /// Where the agent works [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The model, as for `claude --model`
    #[arg(long)]
    model: Option<String>,

    /// What the agent may do, as for `claude --permission-mode` [default: $AGENT_CLI_PERMISSION_MODE]
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// The claude program [default: $AGENT_CLI_CLAUDE, or claude in PATH]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Agents from the root down to the deepest [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_depth: Option<u32>,

    /// Agents in the tree [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_frames: Option<u32>,

    /// Agents that run at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    max_parallel: usize,

    /// Let agents pause with signals, not inside a tool call
    #[arg(long)]
    no_hooks: bool,

    #[command(flatten)]
    telling: Telling,

    /// More arguments for every claude of this agent and its children
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    args: Vec<String>,
}

impl Spawn {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let Some(caller) = context.caller else { return self.start(context) };
        let json = self.telling.json;
        let store = context.store()?;
        let file = std::path::absolute(&self.file).unwrap_or_default().display().to_string();
        let is_meant = |wish: &Wish| matches!(wish, Wish::Spawn { task, .. } if *task == file);
        if let Some(progress) = requests::progress_of_resumed_call(&store, caller, is_meant)? {
            return tell_progress(progress);
        }
        let child = self.record(&store, caller, None)?;
        if json {
            print_json(&serde_json::json!({"id": child, "status": "started"}))?;
        } else {
            print_line(&format!("{} ({child})", signal::STARTED))?;
        }
        Ok(Exit::Ok)
    }

    /// Records the request of an agent. `call` is the tool call that is suspended until the reply is there.
    pub(super) fn record(self, store: &Store, caller: Caller, call: Option<&str>) -> Result<FrameId, CliError> {
        if self.max_depth.is_some() || self.max_frames.is_some() || self.claude.is_some() || self.no_hooks {
            let message = "--max-depth, --max-frames, --no-hooks and --claude are for the root of a tree, and an agent called this";
            return Err(CliError::usage(message).hint("leave them out"));
        }
        let (task, cwd) = self.checked()?;
        let overrides = Overrides { model: self.model, permission_mode: self.permission_mode, args: self.args };
        Ok(requests::spawn(store, caller, call, task, cwd, overrides)?)
    }

    fn checked(&self) -> Result<(Task, PathBuf), CliError> {
        let task = Task::File(instructions(&self.file)?);
        let cwd = working_directory(self.cwd.as_deref())?;
        launch::check_args(&self.args).map_err(RuntimeError::from)?;
        Ok((task, cwd))
    }

    fn start(self, context: &Context) -> Result<Exit, CliError> {
        let (task, cwd) = self.checked()?;
        let settings = context.settings(self.claude, self.max_parallel)?;
        let path = std::env::var_os("PATH");
        let of_this_shell = context.launch();
        let launch = Launch {
            claude: program::locate(settings.claude.as_deref(), None, path.as_deref())?,
            model: self.model,
            permission_mode: self.permission_mode.or(of_this_shell.permission_mode),
            args: self.args,
            no_hooks: self.no_hooks,
            ..of_this_shell
        };
        let default = Limits::default();
        let limits = Limits {
            max_depth: self.max_depth.unwrap_or(default.max_depth),
            max_frames: self.max_frames.unwrap_or(default.max_frames),
        };
        let store = context.store()?;
        let root = store.create_root(&NewFrame { task, cwd, launch, limits })?;
        outcome::drive(context, &store, &settings, root, self.telling)
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "give a number of 1 or more".to_owned())
}

/// The absolute path of a file with instructions.
fn instructions(file: &Path) -> Result<PathBuf, CliError> {
    let shown = file.display();
    let text = file.to_str().ok_or_else(|| {
        CliError::usage(format!("the path {shown} is not UTF-8, and an agent can only be told text"))
            .hint("rename the file")
    })?;
    if text.chars().any(char::is_control) {
        let message = format!("the path {text:?} holds a line break or another control character");
        return Err(CliError::usage(message).hint("rename the file: an agent reads its path in one line"));
    }
    let known = fs::metadata(file).map_err(|error| {
        CliError::usage(format!("cannot read {shown}: {error}")).hint("give the path of a file with instructions")
    })?;
    if known.is_dir() {
        let message = format!("{shown} is a directory");
        return Err(CliError::usage(message).hint("give the path of a file with instructions"));
    }
    if !known.is_file() {
        let message = format!("{shown} is not a regular file");
        return Err(CliError::usage(message).hint("give the path of a file with instructions"));
    }
    let content = fs::read(file).map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    if content.iter().all(u8::is_ascii_whitespace) {
        let message = format!("{shown} is empty");
        return Err(CliError::usage(message).hint("write in it what the agent shall do"));
    }
    std::path::absolute(file).map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))
}

fn working_directory(named: Option<&Path>) -> Result<PathBuf, CliError> {
    let named = named.unwrap_or(Path::new("."));
    let cannot = |why: &str| CliError::usage(format!("cannot work in {}: {why}", named.display()));
    let cwd = fs::canonicalize(named).map_err(|error| cannot(&error.to_string()))?;
    if !cwd.is_dir() {
        return Err(cannot("it is not a directory"));
    }
    match cwd.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(cwd),
        _ => Err(cannot("its path is not UTF-8 or holds a control character").hint("rename it")),
    }
}
