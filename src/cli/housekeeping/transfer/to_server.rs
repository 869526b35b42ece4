//! `agent-cli move`: moves all chains to a server.

use clap::Args;

use crate::app::housekeeping::moving;
use crate::app::view::outcome::MoveView;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, tell};

/// Move the records of all chains to a PostgreSQL server
///
/// From then on, all commands with this state directory use the server. The files of agents, such as their kept sessions,
/// remain in the state directory, so their chains continue on this machine only. Other machines that use the same server
/// show, answer, stop and steer them, too.
///
/// Nothing is moved while an agent is running. The old database remains as an unused file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli move --to postgres://ann@db.example/chains")]
pub(crate) struct MoveCommand {
    /// The address of the server and its database, as for psql
    #[arg(long, value_name = "postgres://…")]
    to: String,

    /// Print a JSON object: chains and store
    #[arg(long)]
    json: bool,
}

impl MoveCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let moved = moving::move_to_server(&context.asker(), &context.place()?, &self.to)?;
        if self.json {
            print_json(&MoveView { chains: moved.chains, store: &moved.place })?;
        } else if moved.chains == 0 {
            tell(&format!("chains are recorded in {}", moved.place));
        } else {
            let s = if moved.chains == 1 { "" } else { "s" };
            tell(&format!("moved {} chain{s} to {}", moved.chains, moved.place));
        }
        for chain in &moved.unnamed {
            tell(&format!("{} was moved without its name, which another chain has", chain.short()));
        }
        Ok(ExitStatus::Ok)
    }
}
