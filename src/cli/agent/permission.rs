//! `agent-cli permission`: Claude Code asks about calls that need an approval.
//!
//! Without more, it answers as plain `claude -p` does, where there is nobody to ask: such a call is denied. With
//! `--on-permission ask` the call becomes a question, and the agent is stopped at it. When there is an answer, the resumed
//! `claude` comes to the same call once more, and is told.
//!
//! Claude Code does not tell it why a call needs an approval. Where a hook of the user asks for one, `claude` has printed why.
//!
//! Whatever goes wrong here, the call is denied.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::claude::stream::asking_hooks::Prevailing;
use crate::claude::stream::reader;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::hook::BASH;
use crate::claude::tools::permission_server::{self, Call, Permission};
use crate::claude::transcript::reopen::NOT_RUN;
use crate::claude::version::Version;
use crate::cli::agent::hook::note;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::print_json;
use crate::core::agent::launch::OnPermission;
use crate::core::requests::question::{Permit, permit};
use crate::core::requests::request::{Request, RequestResult, Wish};
use crate::core::text::escape::one_line;
use crate::core::text::shell::only_in;
use crate::store::{Attempt, Caller, Store};

/// Decide on calls that need an approval: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct PermissionTool {}

/// What an agent is told whose question no hook has seen: hooks are switched off.
const NO_QUESTIONS: &str = "nobody can be asked this way here: run `agent-cli ask QUESTION` and end your turn";
const DENIED: &str = "a person has denied this call";
const PERHAPS_RUN: &str = "a person has allowed this call once, and it may have run before you were cut short: check \
    before you make it again";

impl PermissionTool {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, CliError> {
        for line in io::stdin().lines() {
            let line = line.map_err(|error| CliError::failed(format!("cannot read what claude asks: {error}")))?;
            if let Some(answer) = permission_server::respond(&line, |call| decide(context, call)) {
                print_json(&answer)?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn decide(context: &Context, call: &Call) -> Permission {
    if call.tool == ASK_USER_QUESTION {
        return deny(NO_QUESTIONS);
    }
    let (Some(caller), Some(id)) = (context.caller, &call.id) else { return as_plain(call) };
    ask(context, caller, call, id).unwrap_or_else(|error| {
        note(context, caller, "permission", &error);
        as_plain(call)
    })
}

/// What Claude Code itself says of most tools.
fn as_plain(call: &Call) -> Permission {
    deny(&format!("Claude requested permissions to use {}, but you haven't granted it yet.", call.tool))
}

/// What Claude Code says where a hook asks, and what it says else.
fn denied(call: &Call, reason: Option<String>) -> Permission {
    reason.map_or_else(|| as_plain(call), |message| Permission::Deny { message })
}

fn deny(message: &str) -> Permission {
    Permission::Deny { message: message.to_owned() }
}

fn ask(context: &Context, caller: Caller, call: &Call, id: &str) -> Result<Permission, CliError> {
    let store = context.store()?;
    let attempt = store.running_attempt(caller.frame)?.filter(|attempt| attempt.id == caller.attempt);
    let (Some(frame), Some(attempt)) = (store.frame(caller.frame)?, attempt) else { return Ok(as_plain(call)) };
    if frame.launch.on_permission == OnPermission::Deny {
        return Ok(denied(call, printed(&store, &attempt, call, id)?.reason));
    }
    if let Some(known) = store.requests_of_call(caller.frame, id)?.pop() {
        let shell = frame.situation.shell.filter(|_| call.tool == BASH);
        return answer(&store, caller, call, &known, shell.as_deref());
    }
    let Printed { is_of_the_agent, reason } = printed(&store, &attempt, call, id)?;
    if !is_of_the_agent {
        return Ok(denied(call, reason));
    }
    // Only one call can be come to once more.
    if store.awaits_permission(caller.attempt)? {
        return Ok(deny(NOT_RUN));
    }
    store.request_all(
        caller,
        id,
        &[Wish::Permission { tool: call.tool.clone(), input: call.input.clone(), reason }],
    )?;
    Ok(Permission::Stop)
}

/// A call that was allowed runs in one attempt, and in no other: it would run twice. `shell`: where it runs, if it is a command
/// and that is not where the resumed agent's shell is.
fn answer(
    store: &Store,
    caller: Caller,
    call: &Call,
    known: &Request,
    shell: Option<&Path>,
) -> Result<Permission, CliError> {
    let Some(RequestResult::Text(said)) = store.result_of(known.id)? else { return Ok(Permission::Stop) };
    let same =
        matches!(&known.wish, Wish::Permission { tool, input, .. } if *tool == call.tool && *input == call.input);
    Ok(match permit(&said) {
        Some(Permit::Allow) if !same => as_plain(call),
        Some(Permit::Allow) if let Some(gone) = shell.filter(|shell| !shell.is_dir()) => deny(&format!(
            "{} is gone, where this command was to run: it was not run",
            one_line(&gone.display().to_string())
        )),
        Some(Permit::Allow) if store.use_permission(caller, known.id)? => {
            Permission::Allow { input: shell.map_or(call.input.clone(), |shell| in_shell(&call.input, shell)) }
        }
        Some(Permit::Allow) => deny(PERHAPS_RUN),
        Some(Permit::Deny { reason }) if !reason.is_empty() => deny(&reason),
        Some(Permit::Deny { .. }) | None => deny(DENIED),
    })
}

/// The input of a command that is to run in `shell`.
fn in_shell(input: &Value, shell: &Path) -> Value {
    let mut input = input.clone();
    if let Some(command) = input["command"].as_str() {
        input["command"] = only_in(shell, command).into();
    }
    input
}

/// What an attempt has printed of a call.
struct Printed {
    /// Whether the agent makes it, and not one of Claude Code's own subagents, which cannot wait.
    is_of_the_agent: bool,
    /// Why a hook of the user asks for an approval of it.
    reason: Option<String>,
}

/// The call is in what the attempt printed, or is on its way there.
fn printed(store: &Store, attempt: &Attempt, call: &Call, id: &str) -> Result<Printed, CliError> {
    const LOOKS: u32 = 20;
    let mut found = Printed { is_of_the_agent: false, reason: None };
    for look in 0..LOOKS {
        let read = || {
            let mut file = File::open(store.dir().printed(attempt.frame))?;
            file.seek(SeekFrom::Start(attempt.output_from))?;
            reader::read(BufReader::new(file))
        };
        let digest =
            read().map_err(|error| CliError::failed(format!("what claude printed cannot be read: {error}")))?;
        let version = digest.version.as_deref().and_then(|version| version.parse::<Version>().ok());
        let prevailing = match version.is_some_and(|version| version >= Version::FIRST_HOOK_PREVAILS) {
            true => Prevailing::First,
            false => Prevailing::Last,
        };
        let hooks = &digest.asking_hooks;
        found = Printed {
            is_of_the_agent: digest.open_calls.iter().any(|open| open.id == id),
            reason: hooks.reason(id, &call.tool, prevailing).map(str::to_owned),
        };
        if hooks.knows(id) || found.reason.is_some() {
            break;
        }
        if look + 1 < LOOKS {
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(found)
}
