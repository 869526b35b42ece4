//! Runs chains for the commands that run agents, and prints their status afterwards.

use std::io::{self, IsTerminal};

use tokio::sync::watch;

use crate::app::chains::run::{self, FirstRun, NextRun};
use crate::app::error::AppError;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::error::hints;
use crate::cli::exit::ExitStatus;
use crate::cli::output;
use crate::cli::report::live::display::LiveDisplay;
use crate::cli::report::live::watcher;
use crate::cli::report::status_report::{self, OutputOptions, StatusReport};
use crate::core::attempt::decision::Note;
use crate::core::attempt::signal;
use crate::core::id::FrameId;
use crate::runtime::RunSettings;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::scheduler;
use crate::runtime::run::signals::Signals;
use crate::runtime::run::status::{self, ChainStatus};
use crate::store::{AsksLater, Store};

/// Runs a new chain as far as it can go.
pub(super) fn drive_new(
    context: &Context,
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ChainStatus, CliError> {
    let driven = driven(context, store, settings, top, output_options)?;
    match run::first_run(store, top, driven)? {
        FirstRun::Status(status) => Ok(status),
        FirstRun::Refused(errors) => {
            let mut whys: Vec<String> = errors.iter().map(|error| error.kind.to_string()).collect();
            whys.dedup();
            let helpful = errors.iter().filter_map(|error| hints::of_new(&error.kind));
            let first = CliError::new(ExitStatus::Claude, whys.remove(0));
            Err(whys.into_iter().fold(helpful.fold(first, CliError::hint), CliError::also))
        }
    }
}

/// Runs the chain below `top`, if something in it can run.
pub(super) fn go_on(
    context: &Context,
    store: &Store,
    next: NextRun,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ChainStatus, CliError> {
    match next {
        NextRun::Nothing(status) => Ok(status),
        NextRun::Run(settings) => {
            let driven = driven(context, store, &settings, top, output_options)?;
            Ok(status::after(store, top, driven)?)
        }
    }
}

/// Reports the status of the chain below `top`.
pub(super) fn report(
    store: &Store,
    top: FrameId,
    status: ChainStatus,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    status_report::print(&StatusReport::new(store, top, status, output_options)?, output_options)
}

fn driven(
    context: &Context,
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<Driven, CliError> {
    // Without the mark, an inbox that is open elsewhere delays the question.
    let is_asked = can_ask(context, output_options) && output::live::is_in_the_foreground();
    let _later = is_asked.then(|| AsksLater::mark(store.dir(), store.chain_of(top)?.root)).and_then(Result::ok);
    let (stream, live) = match output_options.stream {
        true => (Some(watcher::start(store.dir().path(), top).map_err(|error| error.hint_resume(top))?), None),
        false => (None, LiveDisplay::new(store.dir().path())),
    };
    let live = live.map(|mut live| {
        live.begin(store, top);
        live
    });
    let driven = until_stopped(context, |stop| scheduler::resume(store, settings, top, stop));
    if let Some(stream) = stream {
        stream.finish();
    }
    if let Some(live) = live {
        live.finish(store)?;
    }
    let driven = driven.map_err(|error| error.hint_resume(top))?;
    print_notes(&driven.notes);
    Ok(driven)
}

/// Whether a command can ask the person who started it.
pub(crate) fn can_ask(context: &Context, output_options: OutputOptions) -> bool {
    let is_wanted = !output_options.no_ask && !output_options.prints_json() && context.caller.is_none();
    is_wanted && io::stdin().is_terminal() && output::is_read_by_a_person()
}

/// Runs `work`, which runs agents, with a log and notifications. `work` gets the number of stop signals so far.
pub(crate) fn until_stopped<T, E, F: Future<Output = Result<T, E>>>(
    context: &Context,
    work: impl FnOnce(watch::Receiver<Signals>) -> F,
) -> Result<T, CliError>
where
    AppError: From<E>,
{
    context.start_log();
    context.start_notifications()?;
    Ok(run::until_stopped(work)?)
}

/// Prints notes about agents for a person. Nothing went wrong.
pub(crate) fn print_notes(notes: &[(FrameId, Note)]) {
    notes.iter().for_each(|(frame, note)| print_note(*frame, *note));
}

fn print_note(frame: FrameId, note: Note) {
    let frame = frame.short();
    match note {
        Note::InASentence(signal) => {
            output::tell(&format!("{frame} wrote {} inside a sentence, which counts as a signal", signal.word()));
        }
        Note::StartsAfresh => {
            output::tell(&format!(
                "{frame} has written a summary (agent-cli show {frame}) and starts afresh: its next turn begins a new session"
            ));
        }
        Note::RepliedAgain => {
            output::tell(&format!("{frame} has replied to a person: agent-cli resume {frame} prints it"));
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
