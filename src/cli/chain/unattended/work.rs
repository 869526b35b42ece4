//! `agent-cli work`: runs chains of hosts that share a database.

use std::cell::Cell;
use std::path::PathBuf;

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::chains::unattended::{self, EndedChain, UnattendedEvent};
use crate::app::housekeeping::hosts;
use crate::cli::arguments::at_least_one;
use crate::cli::arguments::linger_option::LingerOption;
use crate::cli::chain::drive;
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::tell;
use crate::cli::report::live::display::LiveDisplay;
use crate::cli::report::status_report::OutputOptions;
use crate::core::housekeeping::hosting::Labels;
use crate::runtime::run::unattended::continuing::Until;

/// Continue chains, and take those of lost hosts or of none, until you stop it
///
/// Continues the chains of this host, and takes those that `spawn --on` has left to other hosts, that `hosts forget` has released,
/// or that are in shared directories and whose host is lost. A chain is only taken if this host has its labels and its agents'
/// directories. `watch` and `resume --all` take chains, too.
///
/// The first Ctrl-C or SIGTERM lets the running agents finish their turns; the second one stops them. Prints a line for each chain
/// that it has continued.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli work
  agent-cli work --labels gpu,big --max-parallel 8")]
pub(crate) struct Work {
    /// The labels of this host, separated by commas [default: the setting labels]
    #[arg(long, value_name = "LABELS")]
    labels: Option<Labels>,

    /// How many agents may run at once on this host, whichever commands run them [default: the setting max-parallel-total, or 4]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    max_parallel: Option<u32>,

    /// The claude program for this run [default: $AGENT_CLI_CLAUDE, or the chain's own]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    #[command(flatten)]
    linger: LingerOption,

    /// Print a JSON object for each chain, as `resume --json` does
    #[arg(long)]
    json: bool,
}

impl Work {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Self { labels, max_parallel, claude, linger, json } = self;
        context.set_linger(linger.time);
        let output_options = OutputOptions { json, ..OutputOptions::default() };
        let all = ResumeAll { claude, stale_check: true, max_parallel_total: max_parallel, output_options };
        let store = context.store()?;
        let app = context.app(&store);
        app.asker.may(PersonsTask::Watch)?;
        hosts::shared(&store)?;
        let mut settings = all.settings(context)?;
        settings.host.offer.labels = labels.unwrap_or(settings.host.offer.labels);
        tell(
            "continuing chains of this host, and of lost hosts; Ctrl-C ends it when the running agents have finished their turns",
        );
        context.follow_config()?;
        let interrupted = Cell::new(false);
        let mut live = LiveDisplay::new(store.dir().path());
        let happens = |event: UnattendedEvent| {
            let is_interrupted = matches!(&event, UnattendedEvent::Ended(EndedChain { interrupted: true, .. }));
            interrupted.set(interrupted.get() || is_interrupted);
            all.follow(&store, live.as_mut(), event);
        };
        let worked = drive::until_stopped(context, |stop| {
            unattended::continue_all(&app, &settings, stop, Until::Drained, happens)
        });
        live.map_or(Ok(()), |live| live.finish(&store))?;
        worked?;
        Ok(if interrupted.get() { ExitStatus::Interrupted } else { ExitStatus::Ok })
    }
}
