//! `agent-cli news`: reports news of a project's chains to a session. The plugin's monitor runs it.

use std::io;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, poll};

use crate::app::fronts::news;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::hook_commands::refuse_terminal;
use crate::cli::output::print_line;
use crate::core::chain::check_schedule::TICK;
use crate::runtime::run::signals;
use crate::runtime::run::unattended::change_watch::ChangeWatch;

/// Print a line for each question that opens in this project, and each chain that ends
///
/// Prints first which questions are open. Runs until its output is closed.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct News {}

impl News {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        if context.caller.is_some() {
            // Agents get no news. A person's session gets them.
            return Ok(ExitStatus::Ok);
        }
        refuse_terminal(&io::stdout(), "agent-cli news writes to another program, not to a terminal")?;
        let store = context.store()?;
        let cannot = |error: io::Error| CliError::failed(format!("cannot watch the records: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        runtime.block_on(async {
            let mut stop = signals::listen().map_err(cannot)?;
            let (mut changes, mut news) = (ChangeWatch::new(&store), news::News::new(Timestamp::now()));
            let tick = Duration::try_from(TICK).unwrap_or(Duration::MAX);
            while is_read() {
                for line in news.next(&context.app(&store))? {
                    print_line(&line)?;
                }
                tokio::select! {
                    changed = changes.next(&store) => changed?,
                    () = tokio::time::sleep(tick) => {}
                    _ = stop.changed() => break,
                }
            }
            Ok(ExitStatus::Ok)
        })
    }
}

/// Whether the output still has a reader. A killed session closes its end.
fn is_read() -> bool {
    let output = io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    poll(&mut polled, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).is_err()
        || !polled[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
}
