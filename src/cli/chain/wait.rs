//! `agent-cli wait`: lets an agent wait for something outside the chain.

use std::io;
use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::app;
use crate::app::request::Input;
use crate::app::request::wait::{self, AwaitedFile, Quantity};
use crate::cli::arguments::id_completion;
use crate::cli::arguments::positions::Positions;
use crate::cli::chain::request_from_agent;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::core::text::time::{duration, moment};

/// Wait for a file, a time, a command or an agent (for agents)
///
/// Records what the calling agent waits for. The agent's call is suspended, and returns at the first `agent-cli resume`
/// after the wait has ended. If calls cannot be suspended, and always with --command, this prints `SGN_PEND_STARTED (ID)`
/// at once, and the agent ends its turn. The result says what is there: for a command what it printed, for an agent its
/// reply or why it failed.
///
/// With --any or --all, several conditions can be given. Once a condition has been met, it stays met.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "Examples:
  agent-cli wait --file build/report.html --for 2h --any
  agent-cli wait --until 2026-12-24T18:00:00Z
  agent-cli wait --agent 4f2c1a90")]
pub(crate) struct WaitCommand {
    // The first field, because it reads the positions of options before their values are taken.
    #[command(flatten)]
    positions: Positions,

    /// Wait until this file exists
    #[arg(long, value_name = "PATH", group = "what")]
    file: Vec<PathBuf>,

    /// Wait until this regular expression matches the content of the --file before it
    ///
    /// The whole content is searched: `^` and `$` match its beginning and its end, or with `(?m)` those of each line.
    /// It may have at most 8 MiB. The file must be in the agent's directory, unless the agent may do everything.
    #[arg(long, value_name = "REGEX", requires = "file")]
    matches: Vec<String>,

    /// Wait until this time, such as 2026-12-24T18:00:00Z or '2026-12-24T18:00[Europe/Berlin]'
    #[arg(long, value_name = "TIME", group = "what", value_parser = moment)]
    until: Option<Timestamp>,

    /// Wait for this long, for example 90s, 2h or 3d
    #[arg(long = "for", value_name = "DURATION", group = "what", value_parser = duration)]
    duration: Option<SignedDuration>,

    /// Wait until this shell command exits with status 0
    ///
    /// This needs a separate permission, so it must be the first option. It runs in the agent's directory: at each `resume`,
    /// and once a minute under `watch`.
    #[arg(long, value_name = "COMMAND", group = "what")]
    command: Vec<String>,

    /// Run commands at most this often
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "command")]
    every: Option<SignedDuration>,

    /// How long a command may take each time, at most 10m [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "command")]
    timeout_per_run: Option<SignedDuration>,

    /// Wait until this agent is done or has failed
    ///
    /// An agent below the caller is named by its id, or by its task if no other agent there has the same, for example `tests.md`. A
    /// chain that the session has started is named by its full id or its name.
    #[arg(long, value_name = "AGENT", group = "what", add = id_completion::agents())]
    agent: Vec<String>,

    /// Wait for the first of several conditions
    #[arg(long, conflicts_with = "all")]
    any: bool,

    /// Wait until each of several conditions has been met
    #[arg(long)]
    all: bool,
}

impl WaitCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // Checked first, so that a person is told that only agents can wait.
        app::request::caller(context.caller, &Input::Wait(wait::Input::default()))?;
        request_from_agent::make(context, self.input()?, false, &mut io::empty())
    }

    /// Whether this would run a command, which needs a separate permission.
    pub(crate) fn runs_a_command(&self) -> bool {
        !self.command.is_empty()
    }

    pub(crate) fn input(self) -> Result<Input, CliError> {
        // The permission rules that let every agent wait match the beginning of a command line. `agent-cli wait --file:*`
        // must not allow running a command. No such rule begins with one of these options.
        const BEFORE: [&str; 5] = ["every", "timeout_per_run", "verbose", "quiet", "color"];
        if self.runs_a_command() && !self.positions.is_first_but_for("command", &BEFORE) {
            return Err(CliError::usage("--command is not the first option")
                .hint("agent-cli wait --command COMMAND …: commands need a permission of their own"));
        }
        let files = self.files()?;
        let Self { until, duration, command: commands, every, timeout_per_run, agent: agents, any, all, .. } = self;
        let quantity = match (any, all) {
            (true, _) => Some(Quantity::Any),
            (_, true) => Some(Quantity::All),
            _ => None,
        };
        let input = wait::Input { files, until, duration, commands, every, timeout_per_run, agents, quantity };
        Ok(Input::Wait(input))
    }

    /// The files, each with the pattern that follows it.
    fn files(&self) -> Result<Vec<AwaitedFile>, CliError> {
        let named = self.file.iter().map(|path| AwaitedFile { path: path.clone(), pattern: None });
        let mut files: Vec<_> = named.collect();
        for (pattern, file) in self.matches.iter().zip(self.positions.each_after("matches", "file")) {
            let file = file.and_then(|file| files.get_mut(file));
            let file = file.ok_or_else(|| CliError::usage("--matches comes before the --file that it is about"))?;
            if file.pattern.replace(pattern.clone()).is_some() {
                return Err(CliError::usage("a file has two --matches").hint("repeat --file for each of them"));
            }
        }
        Ok(files)
    }
}
