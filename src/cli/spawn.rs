//! `agent-cli spawn`: starts a chain; called by an agent, asks for a child.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::limits::LimitOptions;
use super::outcome::{self, Telling};
use super::output::{print_json, print_line};
use super::resume;
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

    /// Let agents pause with signals, not inside a tool call
    #[arg(long)]
    no_hooks: bool,

    /// Do not tell agents which files changed while they waited
    #[arg(long)]
    no_stale_check: bool,

    #[command(flatten)]
    telling: Telling,

    /// More arguments for every claude of this agent and its children
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    args: Vec<String>,

    // Last, because its heading is for all options that follow.
    #[command(flatten)]
    limits: LimitOptions,
}

impl Spawn {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let Some(caller) = context.caller else { return self.start(context) };
        let json = self.telling.json;
        let store = context.store()?;
        let title = requests::title(&self.checked()?.0);
        let is_this = |wish: &Wish| matches!(wish, Wish::Spawn { task, .. } if *task == title);
        if let Some(progress) = requests::made_before(&store, caller, is_this)? {
            return resume::tell(progress);
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
        self.limits.refuse_to_agents()?;
        if self.claude.is_some() || self.no_hooks || self.no_stale_check {
            let message =
                "--no-hooks, --no-stale-check and --claude are for the root of a tree, and an agent called this";
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
        let settings = context.settings(self.claude)?;
        let path = std::env::var_os("PATH");
        let of_this_shell = context.launch();
        let launch = Launch {
            claude: program::locate(settings.claude.as_deref(), None, path.as_deref())?,
            model: self.model,
            permission_mode: self.permission_mode.or(of_this_shell.permission_mode),
            args: self.args,
            no_hooks: self.no_hooks,
            no_stale_check: self.no_stale_check,
            ..of_this_shell
        };
        let limits = Limits::default().changed(self.limits.given());
        let store = context.store()?;
        let root = store.create_root(&NewFrame { task, cwd, launch, limits })?;
        outcome::drive(context, &store, &settings, root, self.telling)
    }
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
