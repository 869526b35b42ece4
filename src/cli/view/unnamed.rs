//! Helps a person who omitted the id of a chain, by listing possible chains.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::app::lists::chains::{self, Input};
use crate::app::view::chain::ChainView;
use crate::cli::arguments::id_completion;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::output::format::{cut, one_line};

/// The most chains to list in the error.
const MOST: usize = 5;
/// The maximum length of a task.
const LONG: usize = 40;

/// Returns the error for a person at a terminal who omitted the id. `None` if there are no chains to list.
pub(crate) fn without_id(error: &clap::Error, arguments: &[OsString]) -> Option<CliError> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_missing =
        error.kind() == ErrorKind::MissingRequiredArgument && missing.iter().all(|it| it.starts_with("<ID>"));
    if !is_missing || !io::stderr().is_terminal() {
        return None;
    }
    let words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let command = words.clone().find(|word| !word.starts_with('-'))?;
    let context = Context::from_environment(false).ok().filter(|context| context.caller.is_none())?;
    let with_done = !matches!(command, "stop" | "kill" | "pause");
    let input = Input { with_done, most: Some(MOST), ..Input::default() };
    let found = id_completion::existing(&context, |store| chains::chains(&context.app(store), &input))?;
    let error = CliError::usage(format!("{command} needs an id; the newest chains of this project are"));
    let with_hint = |error: CliError, chain: &ChainView| {
        let (id, task, state) = (chain.id.short(), cut(&one_line(&chain.task), LONG), chain.status.name());
        error.hint(format!("agent-cli {command} {id}  ({task}, {state})"))
    };
    (!found.chains.is_empty()).then(|| found.chains.iter().fold(error, with_hint))
}
