//! `agent-cli ls`: all chains.

use clap::Args;
use jiff::Timestamp;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::{print, print_json, tell};
use super::text::{age, cut, table};

/// List the chains, the newest first
#[derive(Debug, Args)]
pub(super) struct Ls {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

impl Ls {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let roots = context.store()?.roots()?;
        if self.json {
            let listed = roots.iter().map(|root| {
                serde_json::json!({
                    "id": root.id,
                    "status": root.state.name(),
                    "task": root.title,
                    "cwd": root.cwd,
                    "since": root.since,
                    "created": root.created,
                    "agents": root.frames,
                    "open_questions": root.open_questions,
                })
            });
            print_json(&listed.collect::<Vec<_>>())?;
            return Ok(Exit::Ok);
        }
        if roots.is_empty() {
            tell("there is no chain yet");
            tell("hint: agent-cli spawn FILE starts one");
            return Ok(Exit::Ok);
        }
        let now = Timestamp::now();
        let head = ["CHAIN", "STATE", "FOR", "AGENTS", "QUESTIONS", "TASK"].map(str::to_owned).to_vec();
        let rows = roots.iter().map(|root| {
            let numbers = [root.frames.to_string(), root.open_questions.to_string()];
            let [frames, questions] = numbers;
            let state = root.state.name().to_owned();
            vec![root.id.short(), state, age(root.since, now), frames, questions, cut(&root.title, 60)]
        });
        print(&table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
        Ok(Exit::Ok)
    }
}
