//! Drives a chain for the commands that run agents, and prints its status afterwards.

use tokio::sync::watch;

use crate::claude::processes::children;
use crate::cli::context::Context;
use crate::cli::error::{CliError, of_files};
use crate::cli::exit::ExitStatus;
use crate::cli::hints;
use crate::cli::output;
use crate::cli::report::chain_status::{self, OutputOptions, StatusReport};
use crate::cli::report::live::display::Live;
use crate::cli::report::live::stream;
use crate::core::attempt::decision::Note;
use crate::core::attempt::signal;
use crate::core::id::FrameId;
use crate::runtime::housekeeping::removal;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::signals::Signals;
use crate::runtime::run::status::{self, ChainStatus};
use crate::runtime::run::{scheduler, signals};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::Store;

/// Drives a chain that was just recorded. If `claude` refuses the command line before any work, the chain is removed again,
/// because it could never work.
pub(super) fn drive_new(
    context: &Context,
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    let status = driven(context, store, settings, top, output_options)?;
    if let ChainStatus::Failed(errors) | ChainStatus::PartlyFailed { errors, .. } = &status
        && errors.iter().all(|error| hints::is_of_the_command_line(&error.kind))
        && removal::remove_unused(store, top)?
    {
        let mut whys: Vec<String> = errors.iter().map(|error| error.kind.to_string()).collect();
        whys.dedup();
        let helpful = errors.iter().filter_map(|error| hints::of_new(&error.kind));
        let first = CliError::new(ExitStatus::Claude, whys.remove(0));
        let error = whys.into_iter().fold(helpful.fold(first, CliError::hint), CliError::also);
        return Err(error);
    }
    chain_status::print(&StatusReport::new(store, top, status, output_options)?, output_options)
}

/// Drives the tree below `top`, then reports its status to the caller.
pub(super) fn drive(
    context: &Context,
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    let status = driven(context, store, settings, top, output_options)?;
    chain_status::print(&StatusReport::new(store, top, status, output_options)?, output_options)
}

fn driven(
    context: &Context,
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ChainStatus, CliError> {
    let (stream, live) = match output_options.stream {
        true => (Some(stream::start(store.dir().path(), top).map_err(|error| error.hint_resume(top))?), None),
        false => (None, Live::new(store.dir().path())),
    };
    let live = live.map(|mut live| {
        live.begin(top);
        live
    });
    let driven = run(context, |stop| scheduler::resume(store, settings, top, stop));
    if let Some(stream) = stream {
        stream.finish();
    }
    if let Some(live) = live {
        live.finish(store)?;
    }
    let driven = driven.map_err(|error| error.hint_resume(top))?;
    print_notes(&driven);
    Ok(status::after(store, top, driven)?)
}

/// Runs `work` with a log. It is given the number of signals so far that ask to stop.
pub(crate) fn run<T, F: Future<Output = Result<T, RuntimeError>>>(
    context: &Context,
    work: impl FnOnce(watch::Receiver<Signals>) -> F,
) -> Result<T, CliError> {
    children::keep_orphans_below();
    context.start_log();
    context.start_notifications()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| of_files(format!("failed to start the runner: {error}"), &error))?;
    let done = runtime.block_on(async {
        let listening =
            signals::listen().map_err(|source| RuntimeError::Io { what: "listen for signals".into(), source });
        work(listening?).await
    });
    Ok(done?)
}

/// Prints what a person should know about agents although nothing went wrong.
pub(crate) fn print_notes(driven: &Driven) {
    driven.notes.iter().for_each(|(frame, note)| print_note(*frame, *note));
}

fn print_note(frame: FrameId, note: Note) {
    let frame = frame.short();
    match note {
        Note::InASentence(signal) => {
            output::tell(&format!("{frame} wrote {} inside a sentence, which counts as a signal", signal.word()));
        }
        Note::PausesInARow(times) => {
            output::tell(&format!(
                "{frame} ended its turn with {} {times} times in a row without an open request",
                signal::STARTED
            ));
            output::tell(
                "hint: each resume wakes it again; waiting with agent-cli ask or agent-cli wait costs nothing",
            );
        }
    }
}
