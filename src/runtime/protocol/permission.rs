//! The tool for approvals: Claude Code asks about calls that need one.
//!
//! By default it answers like plain `claude -p`, where nobody can be asked: such a call is denied. With `--on-permission ask` the
//! call becomes a question, and the agent is stopped at it. When there is an answer, the resumed `claude` repeats the call and
//! gets the answer.
//!
//! Claude Code does not pass on why a call needs an approval. If a hook of the user asks for one, `claude` has printed the
//! reason.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::hook::BASH;
use crate::claude::tools::permission_server::{Permission, PermissionCall};
use crate::claude::transcript::reopen::NOT_RUN;
use crate::core::agent::launch::OnPermission;
use crate::core::id::RequestId;
use crate::core::requests::permit::{Permit, permit};
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::one_line;
use crate::core::text::shell::only_in;
use crate::runtime::RuntimeError;
use crate::runtime::protocol::Asking;
use crate::runtime::protocol::printed::{PrintedCall, printed};
use crate::runtime::protocol::suspension::Suspension;
use crate::store::{Attempts, Caller, ResultUse, Store};

/// The message to an agent whose question reached no hook: hooks are disabled.
const NO_QUESTIONS: &str = "nobody can be asked this way here: run `agent-cli ask QUESTION` and end your turn";
const DENIED: &str = "a person has denied this call";
const PERHAPS_RUN: &str = "a person has allowed this call once, and it may have run before you were cut short: check \
    before you make it again";

/// Decides on a call. `asking`: the agent that makes it, if any. `note` is called with what went wrong.
pub(crate) fn decide(
    asking: Option<&Asking>,
    call: &PermissionCall,
    note: impl FnOnce(Caller, RuntimeError),
) -> Permission {
    if call.tool == ASK_USER_QUESTION {
        return deny(NO_QUESTIONS);
    }
    let (Some(asking), Some(id)) = (asking, &call.id) else { return as_plain(call) };
    of_agent(asking, call, id).unwrap_or_else(|error| {
        note(asking.caller, error);
        as_plain(call)
    })
}

/// Claude Code's own message for most tools.
fn as_plain(call: &PermissionCall) -> Permission {
    deny(&format!("Claude requested permissions to use {}, but you haven't granted it yet.", call.tool))
}

/// Claude Code's message if a hook asks, and otherwise.
fn denied(call: &PermissionCall, reason: Option<String>) -> Permission {
    reason.map_or_else(|| as_plain(call), |message| Permission::Deny { message })
}

fn deny(message: &str) -> Permission {
    Permission::Deny { message: message.to_owned() }
}

fn of_agent(asking: &Asking, call: &PermissionCall, id: &str) -> Result<Permission, RuntimeError> {
    let (store, caller) = (asking.store()?, asking.caller);
    let attempt =
        store.attempts(Attempts::RunningOf(caller.frame))?.pop().filter(|attempt| attempt.id == caller.attempt);
    let (Some(frame), Some(attempt)) = (store.frame(caller.frame)?, attempt) else { return Ok(as_plain(call)) };
    if frame.launch.on_permission == OnPermission::Deny {
        return Ok(denied(call, printed(&store, &attempt, call, id)?.reason));
    }
    match Suspension::of(&store, caller, id)? {
        Suspension::Record => {
            let PrintedCall { is_of_the_agent, reason } = printed(&store, &attempt, call, id)?;
            if !is_of_the_agent {
                return Ok(denied(call, reason));
            }
            let kind = RequestKind::Permission { tool: call.tool.clone(), input: call.input.clone(), reason };
            let recorded = store.request(caller, Some(id), &[kind])?;
            Ok(if !recorded.is_empty() { Permission::Stop } else { deny(NOT_RUN) })
        }
        Suspension::Keep => Ok(Permission::Stop),
        Suspension::Return(mut answered) => {
            let Some((request, result)) = answered.pop() else { return Ok(Permission::Stop) };
            let shell = frame.situation.shell.filter(|_| call.tool == BASH);
            let is_gone = shell.as_ref().is_some_and(|shell| !shell.is_dir());
            let ruling = ruling(call, &request.kind, result.text(), shell, is_gone);
            carry_out(&store, asking, call, request.id, ruling)
        }
    }
}

/// What a person's answer means for the call that is repeated.
#[derive(Debug, PartialEq)]
enum Ruling {
    /// The repeated call is a different one.
    NotThisCall,
    /// It would run in this directory, which no longer exists.
    NowhereToRun(PathBuf),
    /// It runs, unless it has run before: in this directory, if the agent's shell is elsewhere.
    RunOnce(Option<PathBuf>),
    Deny(String),
}

/// `shell`: where the call runs, if it is a command and the resumed agent's shell is elsewhere.
fn ruling(call: &PermissionCall, asked: &RequestKind, said: &str, shell: Option<PathBuf>, is_gone: bool) -> Ruling {
    let same =
        matches!(asked, RequestKind::Permission { tool, input, .. } if *tool == call.tool && *input == call.input);
    match (permit(said), shell) {
        (Some(Permit::Allow), _) if !same => Ruling::NotThisCall,
        (Some(Permit::Allow), Some(shell)) if is_gone => Ruling::NowhereToRun(shell),
        (Some(Permit::Allow), shell) => Ruling::RunOnce(shell),
        (Some(Permit::Deny { reason }), _) if !reason.is_empty() => Ruling::Deny(reason),
        (Some(Permit::Deny { .. }) | None, _) => Ruling::Deny(DENIED.to_owned()),
    }
}

/// An approved call runs in one attempt only; otherwise it could run twice.
fn carry_out(
    store: &Store,
    asking: &Asking,
    call: &PermissionCall,
    request: RequestId,
    ruling: Ruling,
) -> Result<Permission, RuntimeError> {
    Ok(match ruling {
        Ruling::NotThisCall => as_plain(call),
        Ruling::NowhereToRun(gone) => deny(&format!(
            "{} is gone, where this command was to run: it was not run",
            one_line(&gone.display().to_string())
        )),
        Ruling::RunOnce(_) if store.use_results(asking.caller, ResultUse::Permission(request))?.is_empty() => {
            deny(PERHAPS_RUN)
        }
        Ruling::RunOnce(None) => Permission::Allow { input: call.input.clone() },
        Ruling::RunOnce(Some(shell)) => Permission::Allow { input: in_shell(&call.input, &shell) },
        Ruling::Deny(reason) => deny(&reason),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_for_the_call_that_the_person_was_shown() {
        let call = |command: &str| PermissionCall {
            tool: BASH.to_owned(),
            input: json!({"command": command}),
            id: Some("toolu_1".to_owned()),
        };
        let asked =
            RequestKind::Permission { tool: BASH.to_owned(), input: json!({"command": "touch made"}), reason: None };
        let shell = || Some(PathBuf::from("/project/sub"));
        let denied = |reason: &str| Ruling::Deny(reason.to_owned());
        for (command, said, shell, is_gone, expected) in [
            ("touch made", "allow", None, false, Ruling::RunOnce(None)),
            ("touch made", "allow", shell(), false, Ruling::RunOnce(shell())),
            ("touch made", "allow", shell(), true, Ruling::NowhereToRun("/project/sub".into())),
            ("rm -r .", "allow", None, false, Ruling::NotThisCall),
            ("rm -r .", "allow", shell(), true, Ruling::NotThisCall),
            ("touch made", "deny", None, false, denied(DENIED)),
            ("touch made", "deny not now", shell(), true, denied("not now")),
            ("rm -r .", "deny not now", None, false, denied("not now")),
            ("touch made", "perhaps", None, false, denied(DENIED)),
        ] {
            assert_eq!(ruling(&call(command), &asked, said, shell, is_gone), expected, "{command}: {said}");
        }
    }

    #[test]
    fn nothing_is_asked_of_nobody() {
        let call = |tool: &str| PermissionCall { tool: tool.to_owned(), input: Value::Null, id: None };
        let decide = |tool| decide(None, &call(tool), |_, error| panic!("{error}"));
        assert_eq!(decide(ASK_USER_QUESTION), deny(NO_QUESTIONS));
        assert_eq!(decide("Write"), as_plain(&call("Write")));
    }
}
