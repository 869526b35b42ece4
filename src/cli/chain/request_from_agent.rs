//! Handles the request of an agent that runs this program, or whose call is suspended, and prints its result.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::app::lookup::LookedUp;
use crate::app::request::{self, Input, Outcome};
use crate::app::view::chain_status::RequestView;
use crate::app::{App, Asker};
use crate::claude::environment::variables::Variables;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, print_line};
use crate::core::attempt::signal;
use crate::core::requests::request::RequestResult;
use crate::runtime::protocol::{RunsIn, Typed};
use crate::store::Target;

/// Records a request. Prints its id, or its result if the same call has made it before.
pub(super) fn make(
    context: &Context,
    input: Input,
    json: bool,
    standard_input: &mut dyn Read,
) -> Result<ExitStatus, CliError> {
    // Refuse people here, before a state directory is created needlessly.
    request::caller(context.caller, &input)?;
    let store = context.store()?;
    let app = context.app(&store);
    let recorded = match request::make(&app, input, standard_input)? {
        Outcome::MadeBefore(made @ LookedUp { result: Some(_), .. }) if json => {
            print_line(made.result.as_ref().map_or("", RequestResult::text))?;
            made.record_read(&app)?;
            return Ok(exit_of(made.result.as_ref()));
        }
        Outcome::MadeBefore(made) => return print_result(&app, &made),
        Outcome::InBackground(agent) => {
            let id = id_of(agent);
            if json {
                print_json(&RequestView::started(id))?;
            } else {
                print_line(&id)?;
            }
            return Ok(ExitStatus::Ok);
        }
        Outcome::Recorded(recorded) => recorded,
    };
    let id = id_of(recorded);
    if json {
        print_json(&RequestView::started(id))?;
    } else {
        print_line(&format!("{} ({id})", signal::STARTED))?;
    }
    // Later commands of the same call must not run as if they had the result.
    Ok(ExitStatus::Waiting)
}

fn id_of(recorded: Target) -> String {
    match recorded {
        Target::Frame(child) => child.to_string(),
        Target::Request(request) => request.to_string(),
    }
}

/// Resolves a request as if it ran as a program in the agent's shell: in its directory, and with its standard input.
pub(crate) fn typed(input: impl FnOnce() -> Result<Input, CliError> + 'static) -> Typed {
    Typed::Request(Box::new(|store, caller, RunsIn { directory, input: text }| {
        let entered = entered(Path::new(directory));
        let directory = entered.map_err(|error| format!("{directory} cannot be entered: {error}"))?;
        let asker = Asker { agent: Some(caller), ..Asker::default() };
        let app = App { store, asker, directory, variables: Variables::of_process(), now: Timestamp::now() };
        let resolve = || Ok::<_, CliError>(request::resolve(&app, input()?, &mut text.as_bytes())?);
        resolve().map(|(_, request)| request).map_err(|error| error.to_string())
    }))
}

/// Resolves a directory as `cd` does.
fn entered(directory: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(directory)?;
    // A shell needs more rights to enter the directory than this program needs to find it.
    fs::metadata(real.join("."))?;
    Ok(real)
}

/// The exit status of a command whose request has this result. `None` if the result is not available yet.
fn exit_of(result: Option<&RequestResult>) -> ExitStatus {
    match result {
        None => ExitStatus::Waiting,
        Some(result) if result.is_failure() => ExitStatus::Failed,
        Some(_) => ExitStatus::Ok,
    }
}

/// Prints the result of a request for its agent, and records that the agent has read it.
pub(super) fn print_result(app: &App<'_>, looked_up: &LookedUp) -> Result<ExitStatus, CliError> {
    let result = looked_up.result.clone();
    // A failure is printed as this command's error.
    let is_failure = matches!(result, Some(RequestResult::Failed(_) | RequestResult::Unanswered { .. }));
    let printed = print(result);
    if is_failure || printed.is_ok() {
        looked_up.record_read(app)?;
    }
    printed
}

/// `None` if the result is not available yet.
fn print(result: Option<RequestResult>) -> Result<ExitStatus, CliError> {
    match result {
        Some(RequestResult::Text(text) | RequestResult::Default(text)) => print_line(&text)?,
        Some(RequestResult::PartlyFailed(replies)) => {
            print_line(&replies)?;
            return Ok(ExitStatus::Failed);
        }
        Some(RequestResult::Unanswered { said, .. }) => return Err(CliError::failed(said)),
        Some(RequestResult::Failed(why)) => return Err(CliError::failed(format!("the agent failed: {why}"))),
        None => {
            print_line(signal::ONGOING)?;
            return Ok(ExitStatus::Waiting);
        }
    }
    Ok(ExitStatus::Ok)
}
