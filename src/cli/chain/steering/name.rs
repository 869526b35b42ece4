//! `agent-cli name`: gives a chain a name.

use clap::Args;

use crate::app::chains::rename;
use crate::app::error::AppError;
use crate::cli::arguments::id_completion;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, print_line};
use crate::core::id::ChainName;
use crate::store::StoreError;

/// Give a chain a name, another name, or none
///
/// A name can be used instead of the chain's id, and `ls` shows it. Only one chain that is ready, running or waiting can
/// have it at a time. It has at most 40 letters, digits, `-`, `_` and `.`, and begins with a letter. `spawn --name` names a new chain.
#[derive(Debug, Args)]
#[command(
    override_usage = "agent-cli name [OPTIONS] CHAIN NAME\n       agent-cli name [OPTIONS] CHAIN --clear",
    after_help = "Examples:
  agent-cli name 4f2c1a90 nightly
  agent-cli name last nightly
  agent-cli name nightly --clear"
)]
pub(crate) struct Name {
    /// Id of a chain, or of one of its agents or questions, its name, or `last`
    #[arg(value_name = "CHAIN", add = id_completion::all_chains())]
    id: String,

    /// The new name
    #[arg(required_unless_present = "clear")]
    name: Option<ChainName>,

    /// Remove the name
    #[arg(long, conflicts_with = "name")]
    clear: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Name {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let named = rename::rename(&context.app(&store), &self.id, self.name).map_err(|error| match error {
            AppError::Store(StoreError::NameTaken { by, .. }) => CliError::usage(error.to_string())
                .hint(format!("agent-cli name {} --clear removes it from that chain", by.short())),
            other => other.into(),
        })?;
        if self.json {
            print_json(&named)?;
        } else {
            let chain = named.chain.short();
            print_line(&match named.name {
                Some(name) => format!("{chain} is named {name}"),
                None => format!("{chain} has no name"),
            })?;
        }
        Ok(ExitStatus::Ok)
    }
}
