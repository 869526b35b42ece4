//! Reads what the `claude` of a running attempt has printed about a call that it asks about.

use std::fs::File;
use std::io::{self, BufReader};

use crate::claude::installation::version::Version;
use crate::claude::stream::hooks::asking_hooks::Prevailing;
use crate::claude::stream::output_reader;
use crate::claude::tools::hook_input::BASH;
use crate::claude::tools::native_agents;
use crate::claude::tools::permission_server::PermissionCall;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Attempts, Caller, Store};

/// Whether a call that looks like a Bash call is not one: hooks see the commands of other tools as Bash.
pub(super) fn is_of_another_tool(store: &Store, caller: Caller, call: &str) -> Result<bool, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(caller.frame))?.pop() else { return Ok(false) };
    let tool = output(store, &attempt)
        .and_then(|output| output_reader::tool_of(output, call))
        .map_err(while_trying(READ_PRINTED))?;
    Ok(tool.is_some_and(|tool| tool != BASH))
}

/// Whether `call` can no longer belong to an earlier attempt: the agent has already worked in the running attempt, or the call
/// has returned.
pub(super) fn is_past(store: &Store, caller: Caller, call: &str) -> Result<bool, RuntimeError> {
    let Some(attempt) = store.attempts(Attempts::RunningOf(caller.frame))?.pop() else { return Ok(false) };
    let is_past = || {
        Ok(output_reader::read(output(store, &attempt)?)?.worked
            || output_reader::returned(output(store, &attempt)?, call)?.is_some())
    };
    is_past().map_err(while_trying(READ_PRINTED))
}

/// How many agents of Claude Code's own the agent has started before `call`, in all its attempts.
pub(super) fn agents_started_before(store: &Store, caller: Caller, call: &str) -> Result<usize, RuntimeError> {
    let started = || {
        let printed = BufReader::new(store.dir().open_printed(caller.frame, 0)?);
        native_agents::started_before(printed, call)
    };
    started().map_err(while_trying(READ_PRINTED))
}

fn output(store: &Store, attempt: &Attempt) -> io::Result<BufReader<File>> {
    Ok(BufReader::new(store.dir().open_printed(attempt.frame, attempt.output_from)?))
}

/// What was printed about a call that needs an approval.
pub(super) struct PrintedCall {
    /// Whether the agent makes it rather than one of Claude Code's own subagents, which cannot wait.
    pub(super) is_of_the_agent: bool,
    /// Why a hook of the user asks for its approval.
    pub(super) reason: Option<String>,
}

/// A call is printed before it is asked about, and the output is in the file by the time `claude` continues: a call that is
/// missing there must be a subagent's.
pub(super) fn printed(
    store: &Store,
    attempt: &Attempt,
    call: &PermissionCall,
    id: &str,
) -> Result<PrintedCall, RuntimeError> {
    let digest = output(store, attempt).and_then(output_reader::read).map_err(while_trying(READ_PRINTED))?;
    let version = digest.version.as_deref().and_then(|version| version.parse::<Version>().ok());
    let prevailing = if version.is_some_and(|version| version >= Version::FIRST_HOOK_PREVAILS) {
        Prevailing::First
    } else {
        Prevailing::Last
    };
    Ok(PrintedCall {
        is_of_the_agent: digest.calls.open.iter().any(|open| open.id == id),
        reason: digest.asking_hooks.reason(id, &call.tool, prevailing).map(str::to_owned),
    })
}
