//! `agent-cli watch`: keeps running, and continues every chain as soon as it can continue.

use std::cell::Cell;
use std::path::PathBuf;

use clap::Args;

use crate::app::asker::PersonsTask;
use crate::app::chains::unattended::{self, EndedChain, UnattendedEvent};
use crate::cli::arguments::at_least_one;
use crate::cli::arguments::linger_option::LingerOption;
use crate::cli::chain::drive;
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::chain::unattended::tell_of_interrupted;
use crate::cli::context::Context;
use crate::cli::dashboard::{self, Accompanying};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::tell;
use crate::cli::report::live::display::LiveDisplay;
use crate::cli::report::status_report::OutputOptions;
use crate::runtime::run::unattended::continuing::Until;

/// Continue chains as soon as they can continue, until you stop it
///
/// Reacts at once when a question is answered, a file appears or a scheduled time arrives, and is otherwise idle. Chains that
/// failed or were interrupted are left to you. Ctrl-C stops it, and the agents that it runs; they continue with the next
/// `resume`.
///
/// On a terminal, shows who needs you, what works and what waits, and takes your answers; `?` lists the keys. `agent-cli`
/// without arguments shows the same, and continues nothing until you tell it to. Elsewhere, or with --lines, prints a line
/// for each chain that it has continued, and with --json an object.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli watch
  agent-cli watch >> chains.log
  agent-cli watch --json | jq .")]
pub(crate) struct Watch {
    /// The claude program for this run [default: $AGENT_CLI_CLAUDE, or the chain's own]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// How many agents may run at once over all chains, whichever commands run them [default: 4]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    max_parallel_total: Option<u32>,

    #[command(flatten)]
    linger: LingerOption,

    /// Print lines, also on a terminal
    #[arg(long, conflicts_with = "json")]
    lines: bool,

    /// Print a JSON object for each chain, as `resume --json` does
    #[arg(long)]
    json: bool,
}

impl Watch {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Self { claude, max_parallel_total, linger, lines, json } = self;
        let has_dashboard = !lines && !json && dashboard::is_possible();
        context.set_linger(linger.time);
        let output_options = OutputOptions { json, ..OutputOptions::default() };
        let all = ResumeAll { claude, stale_check: true, max_parallel_total, output_options };
        let store = context.store()?;
        let app = context.app(&store);
        app.asker.may(PersonsTask::Watch)?;
        let settings = all.settings(context)?;
        if !has_dashboard {
            tell("watching for chains that can continue; Ctrl-C ends it");
            tell_of_interrupted(&store)?;
        }
        context.follow_config()?;
        let interrupted = Cell::new(false);
        let mut live = if has_dashboard { None } else { LiveDisplay::new(store.dir().path()) };
        let mut dashboard = None;
        let happens = |event: UnattendedEvent| {
            let is_interrupted = matches!(&event, UnattendedEvent::Ended(EndedChain { interrupted: true, .. }));
            interrupted.set(interrupted.get() || is_interrupted);
            all.follow(&store, live.as_mut(), event);
        };
        let watched = drive::until_stopped(context, |stop| {
            dashboard = has_dashboard.then(Accompanying::start);
            unattended::continue_all(&app, &settings, stop, Until::Stopped, happens)
        });
        let shown = dashboard.map_or(Ok(()), Accompanying::finish);
        live.map_or(Ok(()), |live| live.finish(&store))?;
        watched?;
        shown?;
        Ok(if interrupted.get() { ExitStatus::Interrupted } else { ExitStatus::Ok })
    }
}
