//! `agent-cli rm`: removes chains.

use clap::Args;
use jiff::Timestamp;

use crate::app::chains::remove::{self, Input, RemovableChain};
use crate::app::error::AppError;
use crate::app::view::outcome::RmView;
use crate::cli::arguments::{id_completion, several_ids};
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{bytes, one_line};
use crate::cli::output::{print_json, print_line};
use crate::local_zone::local_zone;
use crate::runtime::housekeeping::removal::RemovedChain;

/// Remove chains that are not running
///
/// Removes the whole chain: agents, questions, replies and history, files in the state directory, and the transcripts
/// of sessions that agent-cli started. It does not matter whether the chain is done, waits or has failed. Refuses while
/// one of its processes is alive (`stop` ends them), another chain needs it, or a git worktree of its agents contains work
/// that is on no other branch.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli rm 4f2c1a90
  agent-cli rm 0b77d2e1 9c1f00d3 --yes")]
pub(crate) struct Rm {
    /// Id of a chain, or of one of its agents or questions, or several; its first four characters are enough if unique
    #[arg(required = true, value_name = "ID", add = id_completion::all_chains())]
    ids: Vec<String>,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,

    /// Also remove worktrees with ignored files other than build output and caches
    #[arg(long)]
    ignored: bool,

    /// Print a JSON object for each
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = context.app(&store);
        // Resolve all ids first. After a chain was removed, another id of it would be unknown.
        let mut chains: Vec<Result<RemovableChain, AppError>> = Vec::new();
        for id in &self.ids {
            let chain = remove::chain(&app, id);
            let is_known = |known: &Result<RemovableChain, _>| known.as_ref().ok() == chain.as_ref().ok();
            if chain.is_err() || !chains.iter().any(is_known) {
                chains.push(chain);
            }
        }
        several_ids::for_each(chains, self.json, |chain| {
            let chain = chain?;
            if !self.yes {
                confirm_removal(&chain)?;
            }
            let removed = remove::remove(&app, Input { root: chain.root, ignored: self.ignored })?;
            if self.json {
                return Ok(print_json(&RmView { removed: &removed })?);
            }
            let RemovedChain { id, agents, bytes: size, .. } = &removed;
            Ok(print_line(&format!("removed {}, agents: {agents}, {}", id.short(), bytes(*size)))?)
        })
    }
}

fn confirm_removal(RemovableChain { root, task, state, agents }: &RemovableChain) -> Result<(), CliError> {
    let state = state.words(Timestamp::now(), &local_zone());
    let what = format!("{} ({}; {state}, agents: {agents})", one_line(task), root.short());
    if let Some(obstacle) = confirm::obstacle() {
        let error = CliError::usage(format!("cannot ask whether to remove {what}: {obstacle}"));
        return Err(error.hint(format!("agent-cli rm {} --yes removes it without asking", root.short())));
    }
    if confirm::confirm(&format!("remove {what}?"))? { Ok(()) } else { Err(CliError::declined("nothing was removed")) }
}
