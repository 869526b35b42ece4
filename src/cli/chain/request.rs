//! A request that an agent makes by running this program, and its result.

use crate::app::view::chain_status::RequestView;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, print_line};
use crate::core::attempt::signal;
use crate::core::requests::request::RequestResult;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::requests::record;
use crate::store::{Caller, Store, Target};

/// Records a request of `caller`, which `resolve` provides. Prints its id, or its result if it was made before.
pub(super) fn make(
    context: &Context,
    caller: Caller,
    json: bool,
    resolve: impl FnOnce(&Store) -> Result<AgentRequest, CliError>,
) -> Result<ExitStatus, CliError> {
    let store = context.store()?;
    let request = resolve(&store)?;
    if let Some(made) = request.made_before(&store, caller)? {
        let result = record::result_of(&store, made)?;
        if json {
            print_json(&RequestView::known(made.to_string(), result.as_ref()))?;
            return Ok(exit_of(result.as_ref()));
        }
        return print_result(result);
    }
    let id = match request.record(&store, caller, None)? {
        Target::Frame(child) => child.to_string(),
        Target::Request(request) => request.to_string(),
    };
    if json {
        print_json(&RequestView::started(id))?;
    } else {
        print_line(&format!("{} ({id})", signal::STARTED))?;
    }
    // What follows this command must not go on as if it had the result.
    Ok(ExitStatus::Waiting)
}

/// The exit status of a command whose request has this result; `None`: it has none yet.
fn exit_of(result: Option<&RequestResult>) -> ExitStatus {
    match result {
        None => ExitStatus::Waiting,
        Some(result) if result.is_failure() => ExitStatus::Failed,
        Some(_) => ExitStatus::Ok,
    }
}

/// Prints the result of a request for its agent; `None`: it has none yet.
pub(super) fn print_result(result: Option<RequestResult>) -> Result<ExitStatus, CliError> {
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
