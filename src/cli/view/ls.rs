//! `agent-cli ls`: lists all chains.

use std::collections::HashSet;

use clap::Args;
use jiff::Timestamp;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, cut, table};
use crate::cli::output::{hint, print, print_json, tell};
use crate::cli::report::chain_status::{self, described};
use crate::core::chain::state::FrameState;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::store::{Store, StoreError, Summary};

/// List chains, newest first
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

impl Ls {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let (store, now) = (context.store()?, Timestamp::now());
        let chains = match context.caller {
            // For an agent, its chains are the agents that it started.
            Some(caller) => store.children(caller.frame)?,
            None => store.roots()?,
        };
        let roots = chains.into_iter().map(|root| Ok((over_budget(&store, &root, now)?, root)));
        let roots = roots.collect::<Result<Vec<_>, StoreError>>()?;
        let abandoned: HashSet<_> = store.abandoned()?.into_values().collect();
        if self.json {
            let listed = roots.iter().map(|(over_budget, root)| {
                serde_json::json!({
                    "id": root.id,
                    "status": root.state.name(),
                    "abandoned": abandoned.contains(&root.id),
                    "task": root.title,
                    "cwd": root.cwd,
                    "since": root.since,
                    "created": root.created,
                    "agents": root.frames,
                    "open_questions": root.open_questions,
                    "over_budget": over_budget.is_some(),
                })
            });
            print_json(&listed.collect::<Vec<_>>())?;
            return Ok(ExitStatus::Ok);
        }
        if roots.is_empty() {
            tell("no chains yet");
            hint("agent-cli spawn FILE starts one");
            return Ok(ExitStatus::Ok);
        }
        let head = ["CHAIN", "STATE", "FOR", "AGENTS", "QUESTIONS", "TASK"].map(str::to_owned).to_vec();
        let rows = roots.iter().map(|(over_budget, root)| {
            let numbers = [root.frames.to_string(), root.open_questions.to_string()];
            let [frames, questions] = numbers;
            let is_abandoned = abandoned.contains(&root.id);
            let state = if is_abandoned { "abandoned" } else { root.state.name() }.to_owned();
            let reason = if is_abandoned {
                Some(format!("  {}", chain_status::abandoned(root.id)))
            } else {
                over_budget.as_ref().map(|blocker| format!("  waits for {}", described(&blocker.what)))
            };
            let task = cut(&root.title, 60) + &reason.unwrap_or_default();
            vec![root.id.short(), state, age(root.since, now), frames, questions, task]
        });
        print(&table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
        Ok(ExitStatus::Ok)
    }
}

/// A frame of the chain that would run if the budget had not been spent.
fn over_budget(store: &Store, root: &Summary, now: Timestamp) -> Result<Option<Blocker>, StoreError> {
    if root.limits.max_budget_usd.is_none() || root.state == FrameState::Done {
        return Ok(None);
    }
    let blockers = store.tree(root.id)?.blockers(now);
    Ok(blockers.into_iter().find(|blocker| matches!(blocker.what, Blocking::Budget { .. })))
}
