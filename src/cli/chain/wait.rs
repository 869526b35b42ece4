//! `agent-cli wait`: an agent waits for something outside.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::cli::arguments::candidates;
use crate::cli::arguments::positions::Positions;
use crate::cli::chain::request;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::core::text::duration::{TOO_FAR, duration, moment};
use crate::core::waits::conditions::{AwaitedAgent, External, LONGEST_COMMAND, MOST_CONDITIONS, Matching, Polled};
use crate::core::waits::pattern;
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::run::external_waits;
use crate::store::{Caller, Store};

/// Wait for a file, a time, a command or another agent (for agents)
///
/// Records what the calling agent waits for. The agent's call is suspended, and returns at the first `agent-cli resume`
/// after the wait has ended. If calls cannot be suspended, and always with --command, this prints `SGN_PEND_STARTED (ID)`
/// at once, and the agent ends its turn. The result says what is there: for a command what it printed, for an agent its
/// reply or why it failed.
///
/// With --any or --all, several conditions can be given. Once a condition has been met, it stays met.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct WaitCommand {
    // First: it reads where options stand before their values are taken.
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

    /// Wait until this time, for example 2026-12-24T18:00:00Z or 2026-12-24T18:00[Europe/Berlin]
    #[arg(long, value_name = "TIME", group = "what", value_parser = moment)]
    until: Option<Timestamp>,

    /// Wait for this long, for example 90s, 2h or 3d
    #[arg(long = "for", value_name = "DURATION", group = "what", value_parser = duration)]
    duration: Option<SignedDuration>,

    /// Wait until this shell command exits with status 0
    ///
    /// This needs a permission of its own, so it must be the first option. It runs in the agent's directory: at each
    /// `resume`, and once a minute under `watch`.
    #[arg(long, value_name = "COMMAND", group = "what")]
    command: Vec<String>,

    /// Run commands at most this often
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "command")]
    every: Option<SignedDuration>,

    /// How long a command may take each time, at most 10m [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "command")]
    timeout_per_run: Option<SignedDuration>,

    /// Wait until this agent below the caller, or this chain that it started, is done or has failed
    ///
    /// It is named by its id, or by its task if no other agent below the caller has the same, for example `tests.md`.
    #[arg(long, value_name = "AGENT", group = "what", add = candidates::agents())]
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
        let caller = context.caller.ok_or_else(|| {
            CliError::usage("only agents can wait: this shell was not started by agent-cli")
                .hint("agent-cli spawn FILE starts an agent, which can")
        })?;
        request::make(context, caller, false, |store| self.resolve(store, caller))
    }

    pub(crate) fn resolve(self, store: &Store, caller: Caller) -> Result<AgentRequest, CliError> {
        let (any, all) = (self.any, self.all);
        let mut conditions = self.conditions(store, caller)?;
        if conditions.len() > MOST_CONDITIONS {
            return Err(CliError::usage(format!("at most {MOST_CONDITIONS} conditions can be waited for at once")));
        }
        let wait = match (any, all) {
            _ if conditions.len() < 2 => conditions.pop(),
            (true, _) => Some(External::Any(conditions)),
            (_, true) => Some(External::All(conditions)),
            _ => {
                return Err(CliError::usage("there are several conditions")
                    .hint("add --any to wait for the first of them, or --all to wait for all of them"));
            }
        };
        wait.map(AgentRequest::Wait).ok_or_else(|| CliError::usage("there is nothing to wait for"))
    }

    /// Whether it would run a command, which needs a separate permission.
    pub(crate) fn runs_a_command(&self) -> bool {
        !self.command.is_empty()
    }

    fn conditions(self, store: &Store, caller: Caller) -> Result<Vec<External>, CliError> {
        // The rules that let every agent wait are about how a command line begins: `agent-cli wait --file:*` must not allow
        // anything that is run.
        const OTHERS: [&str; 7] = ["file", "matches", "until", "duration", "agent", "any", "all"];
        if self.runs_a_command() && !self.positions.is_before("command", &OTHERS) {
            return Err(CliError::usage("--command is not the first option")
                .hint("agent-cli wait --command COMMAND …: commands need a permission of their own"));
        }
        let mut conditions = self.files(store, caller)?;
        conditions.extend(self.until.map(External::Time));
        if let Some(duration) = self.duration {
            let until = Timestamp::now().checked_add(duration);
            let until = until.map_err(|_| CliError::usage(format!("--for: the end of the wait is {TOO_FAR}")))?;
            conditions.push(External::Time(until));
        }
        let (every, timeout) = self.intervals()?;
        conditions.extend(self.command.into_iter().map(|command| match (every, timeout) {
            (None, None) => External::Command(command),
            (every, timeout) => External::Polled(Polled { command, every, timeout }),
        }));
        for named in &self.agent {
            let agent = agent_lookup::to_wait_for(store, caller, named)?;
            conditions.push(External::Agent(AwaitedAgent { id: agent.id, task: agent.task.title() }));
        }
        Ok(conditions)
    }

    fn files(&self, store: &Store, caller: Caller) -> Result<Vec<External>, CliError> {
        let mut patterns = vec![None; self.file.len()];
        for (pattern, file) in self.matches.iter().zip(self.positions.each_after("matches", "file")) {
            pattern::compiled(pattern)
                .map_err(|error| CliError::usage(format!("`{pattern}` is not a valid regular expression: {error}")))?;
            let place = file.and_then(|file| patterns.get_mut(file));
            let place = place.ok_or_else(|| CliError::usage("--matches comes before the --file that it is about"))?;
            if place.replace(pattern.clone()).is_some() {
                return Err(CliError::usage("a file has two --matches").hint("repeat --file for each of them"));
            }
        }
        let mut conditions = Vec::new();
        for (file, pattern) in self.file.iter().zip(patterns) {
            let file = absolute(file)?;
            conditions.push(match pattern {
                None => External::File(file),
                Some(pattern) => {
                    let within = agent_lookup::reads_only_in(store, caller)?;
                    check_is_within(&file, within.as_deref())?;
                    External::Matching(Matching { file, pattern, within })
                }
            });
        }
        Ok(conditions)
    }

    /// The interval and the time limit of commands, in seconds.
    fn intervals(&self) -> Result<(Option<u64>, Option<u64>), CliError> {
        let seconds = |name: &str, duration: Option<SignedDuration>| match duration.map(|duration| duration.as_secs()) {
            None => Ok(None),
            Some(seconds @ 1..) => Ok(u64::try_from(seconds).ok()),
            Some(_) => Err(CliError::usage(format!("{name} is shorter than a second"))),
        };
        let timeout = seconds("--timeout-per-run", self.timeout_per_run)?;
        if timeout.is_some_and(|timeout| timeout > LONGEST_COMMAND.as_secs()) {
            return Err(CliError::usage("--timeout-per-run is longer than 10 minutes")
                .hint("run longer commands in the background, and wait for a file that they write"));
        }
        Ok((seconds("--every", self.every)?, timeout))
    }
}

fn absolute(file: &Path) -> Result<PathBuf, CliError> {
    let file =
        std::path::absolute(file).map_err(|error| CliError::usage(format!("cannot wait for that file: {error}")))?;
    if file.to_str().is_none() {
        return Err(CliError::usage("cannot wait for that file: its path is not UTF-8"));
    }
    Ok(file)
}

/// The content of a file is judged where the agent may read without asking. Where links lead is checked at each look.
fn check_is_within(file: &Path, within: Option<&Path>) -> Result<(), CliError> {
    match within {
        Some(within) if !external_waits::is_within(file, within) => Err(CliError::usage(format!(
            "only files in {} can be matched, and {} is elsewhere",
            within.display(),
            file.display()
        ))
        .hint("wait for the file without --matches, or with --command, which needs a permission")),
        _ => Ok(()),
    }
}
