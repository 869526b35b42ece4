//! Commands that Claude Code runs for an agent, not for people: they read its question from standard input and print
//! the answer.

pub(crate) mod hook;
pub(crate) mod hook_result;
pub(crate) mod permission;

use std::io::Write;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::store::Caller;

/// Nobody reads the standard error of a command that runs for `claude`, so it goes to the frame's log.
fn note(context: &Context, caller: Caller, command: &str, error: &CliError) {
    let log = context.store().ok().and_then(|store| store.dir().open_errors(caller.frame).ok());
    if let Some(mut log) = log {
        let _ = writeln!(log, "agent-cli {command}: {error}");
    }
}
