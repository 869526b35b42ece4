//! The dashboard: a full-screen list of chains by who must act. `agent-cli` without arguments shows it, and so does `watch`
//! while it continues chains.

mod draw;
mod events;
mod model;
mod session;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod watch;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::Notify;

use crate::app::asker::PersonsTask;
use crate::cli::context::Context;
use crate::cli::dashboard::session::{Beside, Session};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output;

/// Whether the dashboard can be shown: a person uses a terminal that can move its cursor.
pub(super) fn is_possible() -> bool {
    output::can_move_cursor() && io::stdin().is_terminal() && output::is_read_by_a_person()
}

/// Shows the dashboard until the person leaves.
pub(super) fn show(context: &Context) -> Result<ExitStatus, CliError> {
    let store = context.store()?;
    context.asker().may(PersonsTask::Watch)?;
    Session::new(context, &store, Beside::Nothing)?.run()
}

/// A dashboard in a separate thread, while this process does something else.
struct Accompanying {
    over: Arc<Notify>,
    thread: JoinHandle<Result<(), CliError>>,
}

impl Accompanying {
    /// Shows the dashboard while this process works. If the dashboard ends early, the process is asked to stop.
    fn start() -> Self {
        let over = Arc::new(Notify::new());
        let beside = Beside::Watch(Arc::clone(&over));
        let thread = thread::spawn(move || {
            let _stops = StopsWatch;
            let context = Context::from_environment(false)?;
            let store = context.store()?;
            Session::new(&context, &store, beside)?.run().map(drop)
        });
        Self { over, thread }
    }

    /// Closes the dashboard.
    fn finish(self) -> Result<(), CliError> {
        self.over.notify_one();
        self.thread.join().unwrap_or_else(|_| Err(CliError::failed("the dashboard failed")))
    }
}

/// Asks this process to stop when dropped, because the person can no longer see its progress.
struct StopsWatch;

impl Drop for StopsWatch {
    fn drop(&mut self) {
        // The watch ignores the signal if it has ended or was already asked to stop.
        let _ = kill_process(getpid(), Signal::HUP);
    }
}
