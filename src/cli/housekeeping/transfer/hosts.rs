//! `agent-cli hosts`: the hosts that share a database.

use clap::{Args, Subcommand};

use crate::app::App;
use crate::app::housekeeping::hosts;
use crate::app::view::outcome::host::{HostChangeView, HostView};
use crate::cli::confirm;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{one_line, table};
use crate::cli::output::{print, print_json, tell};
use crate::core::text::time::age;

/// List the hosts that share a database on a server
///
/// A host is a state directory, which has the files of its chains' agents. While its agents run, or a `watch` or `work`, it renews a
/// lease. When the lease has ended, other hosts can take its chains: those in shared directories, and after `hosts forget` the
/// others.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agent-cli hosts
  agent-cli hosts drain build1
  agent-cli hosts forget build1"
)]
pub(crate) struct HostsCommand {
    #[command(subcommand)]
    command: Option<HostChange>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum HostChange {
    /// Let the agents of a host finish their turns, and start no more
    Drain(Named),
    /// Let a host start agents again
    Undrain(Named),
    /// Let other hosts continue the chains of a lost host
    ///
    /// The chains continue from the ends of their agents' last turns, on the next host that has their directories and labels. Agents whose
    /// turns were lost are told about it. Refused while the host holds its lease.
    Forget(ForgetHost),
}

#[derive(Debug, Args)]
struct Named {
    /// The name of the host, or the beginning of it
    host: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ForgetHost {
    #[command(flatten)]
    named: Named,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl HostsCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = context.app(&store);
        match self.command {
            None => {
                let found = hosts::list(&app)?;
                if self.json { print_json(&found)? } else { print(&table(&rows(&app, &found)))? }
            }
            Some(HostChange::Drain(named)) => {
                let host = hosts::drain(&app, &named.host, true)?;
                report(
                    &named,
                    &host,
                    None,
                    &format!("{host} starts no more agents; its lease ends after its last agent has finished its turn"),
                )?;
            }
            Some(HostChange::Undrain(named)) => {
                let host = hosts::drain(&app, &named.host, false)?;
                report(&named, &host, None, &format!("{host} starts agents again"))?;
            }
            Some(HostChange::Forget(ForgetHost { named, yes })) => {
                let host = hosts::to_forget(&app, &named.host)?;
                if !yes {
                    confirm_loss(&host.name, host.chains)?;
                }
                let chains = hosts::forget(&app, &host)?;
                let s = if chains == 1 { "" } else { "s" };
                report(
                    &named,
                    &host.name,
                    Some(chains),
                    &format!("{chains} chain{s} of {} can continue on other hosts", host.name),
                )?;
            }
        }
        Ok(ExitStatus::Ok)
    }
}

fn rows(app: &App<'_>, hosts: &[HostView]) -> Vec<Vec<String>> {
    let head = ["HOST", "STATE", "CHAINS", "AGENTS", "SEEN", "LABELS"].map(str::to_owned).to_vec();
    let row = |host: &HostView| {
        let here = if host.is_here { " (here)" } else { "" };
        let seen = host.seen.map_or_else(|| "never".to_owned(), |seen| format!("{} ago", age(seen, app.now)));
        let (name, state) = (format!("{}{here}", one_line(&host.host)), host.state.words().to_owned());
        vec![name, state, host.chains.to_string(), host.agents.to_string(), seen, host.labels.join(" ")]
    };
    std::iter::once(head).chain(hosts.iter().map(row)).collect()
}

fn confirm_loss(host: &str, chains: u64) -> Result<(), CliError> {
    let host = one_line(host);
    if let Some(obstacle) = confirm::obstacle() {
        let error = CliError::usage(format!("cannot ask whether {host} is really lost: {obstacle}"));
        return Err(error.hint(format!("agent-cli hosts forget {host} --yes does not ask")));
    }
    let s = if chains == 1 { "" } else { "s" };
    let lost = "what its agents did in unfinished turns is lost";
    let question = format!("{host} has {chains} unfinished chain{s}; {lost}. Forget this host?");
    if confirm::confirm(&question)? { Ok(()) } else { Err(CliError::declined("no host was forgotten")) }
}

fn report(named: &Named, host: &str, chains: Option<u64>, said: &str) -> Result<(), CliError> {
    if named.json {
        return Ok(print_json(&HostChangeView { host: host.to_owned(), chains })?);
    }
    tell(said);
    Ok(())
}
