//! `agent-cli access`: what users of a shared database may do.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::app::housekeeping::access::{self, Where};
use crate::app::view::outcome::access::AccessView;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{one_line, table};
use crate::cli::output::{print, print_json, tell};
use crate::core::housekeeping::rights::Right;

/// List and change what users of a shared database may do
///
/// The owner of the database can do everything. Other users of the PostgreSQL server need rights, for the chains that were started in
/// a project or everywhere: `read` (see chains and questions), `answer` (answer questions, and allow or deny calls), `steer` (stop,
/// pause, rename, and send messages) and `start` (everything, such as to start, continue and remove chains). The server enforces
/// them.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agent-cli access
  agent-cli access grant bob answer steer
  agent-cli access grant ops start --everywhere
  agent-cli access revoke bob"
)]
pub(crate) struct AccessCommand {
    #[command(subcommand)]
    command: Option<AccessChange>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AccessChange {
    /// Give a user rights
    Grant {
        #[command(flatten)]
        whose: Whose,

        /// The rights: read, answer, steer, start
        #[arg(required = true, value_name = "RIGHT")]
        rights: Vec<Right>,
    },
    /// Take rights away from a user
    Revoke {
        #[command(flatten)]
        whose: Whose,

        /// The rights [default: all]
        #[arg(value_name = "RIGHT")]
        rights: Vec<Right>,
    },
}

#[derive(Debug, Args)]
struct Whose {
    /// The user of the PostgreSQL server, or a role of which users are members
    user: String,

    /// For the chains that were started in this directory or below it [default: those of this project]
    #[arg(long, value_name = "DIR", conflicts_with = "everywhere")]
    project: Option<PathBuf>,

    /// For all chains
    #[arg(long)]
    everywhere: bool,

    /// Print the user's rights as a JSON array
    #[arg(long)]
    json: bool,
}

impl AccessCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = context.app(&store);
        match self.command {
            None => {
                let found = access::list(&app)?;
                if self.json { print_json(&found)? } else { print(&table(&rows(&found)))? }
            }
            Some(AccessChange::Grant { whose, rights }) => {
                report(&whose, &access::grant(&app, &whose.user, &rights, &whose.at())?)?;
            }
            Some(AccessChange::Revoke { whose, rights }) => {
                report(&whose, &access::revoke(&app, &whose.user, &rights, &whose.at())?)?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}

impl Whose {
    fn at(&self) -> Where {
        match &self.project {
            Some(project) => Where::Project(project.clone()),
            None if self.everywhere => Where::Everywhere,
            None => Where::Here,
        }
    }
}

/// The place and the names of the rights.
fn words(access: &AccessView) -> (String, String) {
    let place =
        access.project.as_ref().map_or_else(|| "everywhere".to_owned(), |place| one_line(&place.display().to_string()));
    let rights: Vec<&str> = access.rights.iter().map(|right| right.name()).collect();
    (place, rights.join(" "))
}

fn rows(access: &[AccessView]) -> Vec<Vec<String>> {
    let head = ["USER", "PROJECT", "RIGHTS"].map(str::to_owned).to_vec();
    let row = |access: &AccessView| {
        let (place, rights) = words(access);
        vec![one_line(&access.user), place, rights]
    };
    std::iter::once(head).chain(access.iter().map(row)).collect()
}

/// Says what a user may do after a change.
fn report(whose: &Whose, access: &[AccessView]) -> Result<(), CliError> {
    if whose.json {
        return Ok(print_json(&access)?);
    }
    let user = one_line(&whose.user);
    if access.is_empty() {
        tell(&format!("{user} has no rights"));
    }
    for access in access {
        let (place, rights) = words(access);
        let place = if access.project.is_some() { format!("in {place}") } else { place };
        tell(&format!("{user} may {} {place}", rights.replace(' ', ", ")));
    }
    Ok(())
}
