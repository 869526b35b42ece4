//! Formats the status of a chain in one line. `resume --all` prints one for each chain.

use crate::cli::error::CliError;
use crate::cli::error::hints;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{cut, one_line};
use crate::cli::output::{self, print_line};
use crate::cli::report::status_report::{self, OutputOptions, StatusReport};
use crate::cli::report::waits::stated;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::runtime::run::frame_error::FrameError;
use crate::runtime::run::status::ChainStatus;

/// The maximum length of a reply in the line.
const LONG: usize = 200;

/// Prints the line, or the object of `--json`. A failure is printed as an error message.
pub(crate) fn print(report: &StatusReport, output_options: OutputOptions) -> Result<ExitStatus, CliError> {
    let again = format!("agent-cli resume {} prints the result again", report.top.short());
    let printed = if output_options.json {
        status_report::print_object(report)
    } else if let Some(text) = in_words(&report.status)
        && !output::is_quiet()
        && !(has_failed(&report.status) && output::is_read_by_a_person())
    {
        print_line(&format!("{} {text}", report.top.short()))
    } else {
        Ok(())
    };
    printed.map_err(|error| CliError::from(error).hint(&again))?;
    if output::was_unread() && report.status.reply().is_some() {
        output::hint(&status_report::unread(&again));
    }
    Ok(match &report.status {
        ChainStatus::Done(_) => ExitStatus::Ok,
        ChainStatus::Interrupted => {
            output::hint(&format!("agent-cli resume {} continues it", report.top.short()));
            ExitStatus::Ok
        }
        ChainStatus::Waits { blockers, errors, .. } => {
            errors.iter().for_each(|error| output::error(&format!("{} ({})", error.kind, error.frame.short())));
            let backs_off = blockers.iter().any(|blocker| is_retry_of(blocker, errors))
                || errors.iter().any(|error| error.kind.leaves_a_wait());
            if backs_off {
                errors.iter().flat_map(|error| hints::of(error, report.top)).for_each(|hint| output::hint(&hint));
            }
            match backs_off {
                true if report.status.is_refusal() => ExitStatus::Claude,
                true => ExitStatus::Failed,
                false if output_options.exit_code => ExitStatus::Waiting,
                false => ExitStatus::Ok,
            }
        }
        ChainStatus::PartlyFailed { errors, .. } | ChainStatus::Failed(errors) => {
            errors.iter().for_each(|error| output::error(&format!("{} ({})", error.kind, error.frame.short())));
            errors.iter().flat_map(|error| hints::of(error, report.top)).for_each(|hint| output::hint(&hint));
            if report.status.is_refusal() { ExitStatus::Claude } else { ExitStatus::Failed }
        }
    })
}

/// Whether the error messages already say everything.
fn has_failed(status: &ChainStatus) -> bool {
    matches!(status, ChainStatus::PartlyFailed { .. } | ChainStatus::Failed(_))
}

/// Whether the blocker is a pending retry of an agent with an error.
fn is_retry_of(blocker: &Blocker, errors: &[FrameError]) -> bool {
    matches!(blocker.what, Blocking::Retry { .. }) && errors.iter().any(|error| error.frame == blocker.frame)
}

/// Reports a chain that could not be run. Returns the exit status.
pub(crate) fn error(root: FrameId, error: &CliError) -> ExitStatus {
    output::error(&format!("{}: {error}", root.short()));
    error.exit()
}

fn in_words(status: &ChainStatus) -> Option<String> {
    match status {
        ChainStatus::Done(reply) => Some(format!("done: {}", first_line(reply))),
        ChainStatus::Waits { blockers, busy, .. } => {
            let mut states = blockers.iter().map(|blocker| stated(&blocker.what));
            Some(match (states.next(), states.count()) {
                (None, _) if busy.is_empty() => "waits".to_owned(),
                (None, _) => "working: another process runs it".to_owned(),
                (Some(first), 0) => first,
                (Some(first), others) => format!("{first}, and {others} more"),
            })
        }
        ChainStatus::PartlyFailed { .. } | ChainStatus::Failed(_) => Some("failed".to_owned()),
        ChainStatus::Interrupted => Some("interrupted".to_owned()),
    }
}

fn first_line(reply: &str) -> String {
    one_line(&cut(reply.trim_start().lines().next().unwrap_or_default(), LONG))
}
