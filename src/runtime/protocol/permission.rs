//! The tool for approvals: Claude Code asks about calls that need one.
//!
//! The user's PermissionRequest hooks come first. By default it answers like plain `claude -p`, which has no person to ask: such a
//! call is denied. With `--on-permission ask` the call becomes a question, and the agent is stopped at it. When there is an answer,
//! the resumed `claude` repeats the call and gets the answer.
//!
//! Claude Code does not pass on why a call needs an approval. If a hook of the user asks for one, `claude` has printed the
//! reason.

mod user_decision;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::hook_input::BASH;
use crate::claude::tools::permission_server::{Permission, PermissionCall};
use crate::claude::transcript::reopen::NOT_RUN;
use crate::claude::transcript::{locate, session_facts};
use crate::core::agent::launch::OnPermission;
use crate::core::agent::situation::Situation;
use crate::core::chain::frame::Frame;
use crate::core::requests::approval::call_place::{Moved, is_same_relative};
use crate::core::requests::proposed_plan::{Permit, permit};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::text::escape::one_line;
use crate::core::text::shell::only_in;
use crate::runtime::RuntimeError;
use crate::runtime::protocol::printed_call::{PrintedCall, printed};
use crate::runtime::protocol::suspension::{REPEATED, Suspension};
use crate::runtime::protocol::{Asking, linger, questions};
use crate::runtime::requests::place;
use crate::store::{Attempt, Attempts, Attending, Caller, ResultUse, Store};

/// The message to an agent whose question reached no hook: hooks are disabled.
const NO_QUESTIONS: &str = "questions cannot be asked this way here: run `agent-cli ask QUESTION` and end your turn";
const DENIED: &str = "a person has denied this call";
const PERHAPS_RUN: &str = "a person has allowed this call once, and it may have run before you were cut short: check \
    before you make it again";

/// Decides on a call. `asking`: the agent that makes it, if any. `note` is called with what went wrong.
pub(crate) fn decide(
    asking: Option<&Asking>,
    call: &PermissionCall,
    note: impl FnOnce(Caller, RuntimeError),
) -> Permission {
    let unknown = || if call.tool == ASK_USER_QUESTION { deny(NO_QUESTIONS) } else { as_plain(call) };
    let (Some(asking), Some(id)) = (asking, &call.id) else { return unknown() };
    let decided =
        if call.tool == ASK_USER_QUESTION { of_questions(asking, call, id) } else { of_agent(asking, call, id) };
    decided.unwrap_or_else(|error| {
        note(asking.caller, error);
        unknown()
    })
}

/// A rule requires a person's approval for a call that asks a person: by answering the questions, the person has approved it.
fn of_questions(asking: &Asking, call: &PermissionCall, id: &str) -> Result<Permission, RuntimeError> {
    Ok(match Suspension::find(&asking.store()?, asking.caller, id)? {
        Suspension::Return(over) => match questions::outcome(&call.input, &over) {
            Ok(input) => Permission::Allow { input },
            Err(denial) => deny(&denial),
        },
        Suspension::Record | Suspension::Keep | Suspension::LeaveOpen => deny(NO_QUESTIONS),
        Suspension::Repeated => deny(REPEATED),
    })
}

/// Claude Code's own message for most tools.
fn as_plain(call: &PermissionCall) -> Permission {
    deny(&format!("Claude requested permissions to use {}, but you haven't granted it yet.", call.tool))
}

/// Denies a call with a hook's reason, or else with Claude Code's own message.
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
    let is_open = || user_decision::is_open(&store, &frame, &attempt, call, id);
    if frame.launch.on_permission == OnPermission::Deny {
        // If a hook of the user has decided, this answer comes too late to count.
        is_open()?;
        return Ok(denied(call, printed(&store, &attempt, call, id)?.reason));
    }
    match Suspension::find(&store, caller, id)? {
        Suspension::Record if !is_open()? => Ok(as_plain(call)),
        Suspension::Record => {
            let PrintedCall { is_of_the_agent, reason } = printed(&store, &attempt, call, id)?;
            if !is_of_the_agent {
                return Ok(denied(call, reason));
            }
            let directory = calls_directory(&frame, &attempt, id);
            let place = Some(place::place(&call.input, &directory));
            let kind = RequestKind::Permission { tool: call.tool.clone(), input: call.input.clone(), reason, place };
            if store.request(caller, Some(id), &[kind])?.is_empty() {
                return Ok(deny(NOT_RUN));
            }
            // The user's hooks have seen the call by now.
            if asking.patience.time.is_zero() || !Attending::is_marked(store.dir(), frame.root)? {
                return Ok(Permission::Stop);
            }
            let in_time = linger::or_suspended(asking, &store, &frame, id).and_then(|mut answered| answered.pop());
            let Some((request, result)) = in_time else { return Ok(Permission::Stop) };
            // The agent's shell is where it was.
            let now = Now { moved: Now::new(&frame, &request.kind).moved, ..Now::default() };
            let ruling = ruling(call, &request.kind, result.text(), &now);
            carry_out(&store, asking, call, &request, ruling)
        }
        Suspension::Keep | Suspension::LeaveOpen => Ok(Permission::Stop),
        Suspension::Repeated => Ok(deny(REPEATED)),
        Suspension::Return(mut answered) => {
            let Some((request, result)) = answered.pop() else { return Ok(Permission::Stop) };
            carry_out(
                &store,
                asking,
                call,
                &request,
                ruling(call, &request.kind, result.text(), &Now::new(&frame, &request.kind)),
            )
        }
    }
}

/// The directory of the agent's shell at a call. Claude Code writes the call into its transcript shortly after it has printed
/// it.
fn calls_directory(frame: &Frame, attempt: &Attempt, call: &str) -> PathBuf {
    const PATIENCE: Duration = Duration::from_secs(2);
    const LOOK: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    let transcript = || locate::find(&config_dir(&frame.launch)?, &frame.cwd, attempt.session);
    let read = |path: &Path| session_facts::shell_at(BufReader::new(File::open(path).ok()?), call).ok()?;
    loop {
        if let Some(directory) = transcript().and_then(|path| read(&path)) {
            return directory;
        }
        if begun.elapsed() > PATIENCE {
            return place::last_directory(frame).to_owned();
        }
        thread::sleep(LOOK);
    }
}

/// The current conditions for a repeated call.
#[derive(Debug, Default)]
struct Now {
    /// Where the resumed `claude` may have begun.
    began: Vec<PathBuf>,
    /// The directory of the agent's shell when it was stopped, if it differs.
    shell: Option<PathBuf>,
    /// Whether that no longer exists.
    is_gone: bool,
    /// A path that leads elsewhere than before.
    moved: Option<Moved>,
}

impl Now {
    fn new(frame: &Frame, asked: &RequestKind) -> Self {
        let Situation { shell, worktree, .. } = frame.situation.clone();
        let began = [Some(frame.cwd.clone()), fs::canonicalize(&frame.cwd).ok(), worktree];
        let moved = match asked {
            RequestKind::Permission { input, place: Some(place), .. } => place::moved(input, place),
            _ => None,
        };
        let is_gone = shell.as_ref().is_some_and(|shell| !shell.is_dir());
        Self { began: began.into_iter().flatten().collect(), shell, is_gone, moved }
    }
}

/// What a person's answer means for the repeated call.
#[derive(Debug, PartialEq)]
enum Ruling {
    /// The repeated call is a different one.
    NotThisCall,
    /// It would run in this directory, which no longer exists.
    NowhereToRun(PathBuf),
    /// It would act elsewhere.
    Elsewhere(Moved),
    /// It runs with the input that was shown, unless it has run before.
    RunOnce(Value),
    Deny(String),
}

fn ruling(call: &PermissionCall, asked: &RequestKind, said: &str, now: &Now) -> Ruling {
    match permit(said) {
        Some(Permit::Allow) => allowed(call, asked, now),
        Some(Permit::Deny { reason }) if !reason.is_empty() => Ruling::Deny(reason),
        Some(Permit::Deny { .. }) | None => Ruling::Deny(DENIED.to_owned()),
    }
}

fn allowed(call: &PermissionCall, asked: &RequestKind, now: &Now) -> Ruling {
    let RequestKind::Permission { tool, input, .. } = asked else { return Ruling::NotThisCall };
    let shell = now.shell.as_deref();
    if *tool != call.tool || !is_same(input, &call.input, shell, &now.began) {
        return Ruling::NotThisCall;
    }
    match (&now.moved, shell.filter(|_| *tool == BASH)) {
        (_, Some(shell)) if now.is_gone => Ruling::NowhereToRun(shell.to_owned()),
        (Some(moved), _) => Ruling::Elsewhere(moved.clone()),
        (None, Some(shell)) => Ruling::RunOnce(in_shell(input, shell)),
        (None, None) => Ruling::RunOnce(input.clone()),
    }
}

/// Whether a repeated call is the one that was asked about. Claude Code makes relative paths absolute, based on the directory
/// of the agent's shell.
fn is_same(asked: &Value, repeated: &Value, shell: Option<&Path>, began: &[PathBuf]) -> bool {
    match (asked, repeated, shell) {
        _ if asked == repeated => true,
        (Value::Object(asked), Value::Object(repeated), Some(_)) => {
            asked.len() == repeated.len()
                && asked.iter().all(|(name, value)| {
                    repeated.get(name).is_some_and(|repeated| {
                        if name.ends_with("path") { is_same(value, repeated, shell, began) } else { value == repeated }
                    })
                })
        }
        (Value::String(asked), Value::String(repeated), Some(shell)) => {
            began.iter().any(|began| is_same_relative(asked, shell, repeated, began))
        }
        _ => false,
    }
}

/// An approved call runs in one attempt only; otherwise it could run twice.
fn carry_out(
    store: &Store,
    asking: &Asking,
    call: &PermissionCall,
    request: &Request,
    ruling: Ruling,
) -> Result<Permission, RuntimeError> {
    Ok(match ruling {
        Ruling::NotThisCall => as_plain(call),
        Ruling::NowhereToRun(gone) => deny(&format!(
            "{} is gone, where this command was to run: it was not run",
            one_line(&gone.display().to_string())
        )),
        Ruling::Elsewhere(moved) => deny(&moved.in_words()),
        Ruling::RunOnce(_) if store.use_results(asking.caller, ResultUse::Permission(request.id))?.is_empty() => {
            deny(PERHAPS_RUN)
        }
        Ruling::RunOnce(input) => Permission::Allow { input },
        Ruling::Deny(reason) => deny(&reason),
    })
}

/// The input of a command for running it in `shell`.
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
    use crate::core::requests::approval::call_place::CallPlace;

    #[test]
    fn an_answer_is_for_the_call_that_the_person_was_shown() {
        let call = |command: &str| PermissionCall {
            tool: BASH.to_owned(),
            input: json!({"command": command}),
            id: Some("toolu_1".to_owned()),
        };
        let input = json!({"command": "touch made"});
        let asked = RequestKind::Permission { tool: BASH.to_owned(), input: input.clone(), reason: None, place: None };
        let now = |shell: Option<&str>, is_gone| Now { shell: shell.map(PathBuf::from), is_gone, ..Now::default() };
        let shell = Some("/project/sub");
        let once = |shell: Option<&str>| {
            Ruling::RunOnce(shell.map_or_else(|| input.clone(), |shell| in_shell(&input, Path::new(shell))))
        };
        let denied = |reason: &str| Ruling::Deny(reason.to_owned());
        for (command, said, now, expected) in [
            ("touch made", "allow", now(None, false), once(None)),
            ("touch made", "allow", now(shell, false), once(shell)),
            ("touch made", "allow", now(shell, true), Ruling::NowhereToRun("/project/sub".into())),
            ("rm -r .", "allow", now(None, false), Ruling::NotThisCall),
            ("rm -r .", "allow", now(shell, true), Ruling::NotThisCall),
            ("touch made", "deny", now(None, false), denied(DENIED)),
            ("touch made", "deny not now", now(shell, true), denied("not now")),
            ("rm -r .", "deny not now", now(None, false), denied("not now")),
            ("touch made", "perhaps", now(None, false), denied(DENIED)),
        ] {
            assert_eq!(ruling(&call(command), &asked, said, &now), expected, "{command}: {said}");
        }
    }

    #[test]
    fn a_path_that_leads_elsewhere_or_is_read_elsewhere_is_noticed() {
        let call = |path: &str, content: &str| PermissionCall {
            tool: "Write".to_owned(),
            input: json!({"file_path": path, "content": content}),
            id: Some("toolu_1".to_owned()),
        };
        let input = call("/project/sub/x", "a").input;
        let asked =
            RequestKind::Permission { tool: "Write".to_owned(), input: input.clone(), reason: None, place: None };
        let now = || Now { began: vec!["/project".into()], shell: Some("/project/sub".into()), ..Now::default() };
        let rule = |call: &PermissionCall, now: &Now| ruling(call, &asked, "allow", now);
        for path in ["/project/sub/x", "/project/x"] {
            assert_eq!(rule(&call(path, "a"), &now()), Ruling::RunOnce(input.clone()), "what was shown");
        }
        for other in [call("/project/y", "a"), call("/project/x", "b"), call("/x", "a")] {
            assert_eq!(rule(&other, &now()), Ruling::NotThisCall);
        }
        let [was, is] = ["/project/sub", "/elsewhere"].map(|real| {
            CallPlace::new(&input, Path::new("/project/sub"), Path::new("/home"), move |path| {
                path.strip_prefix("/project/sub").map_or_else(|_| path.to_owned(), |rest| Path::new(real).join(rest))
            })
        });
        let moved = was.moved(&is).unwrap();
        let now = Now { moved: Some(moved.clone()), ..now() };
        assert_eq!(rule(&call("/project/sub/x", "a"), &now), Ruling::Elsewhere(moved));
    }

    #[test]
    fn nothing_is_asked_of_nobody() {
        let call = |tool: &str| PermissionCall { tool: tool.to_owned(), input: Value::Null, id: None };
        let decide = |tool| decide(None, &call(tool), |_, error| panic!("{error}"));
        assert_eq!(decide(ASK_USER_QUESTION), deny(NO_QUESTIONS));
        assert_eq!(decide("Write"), as_plain(&call("Write")));
    }
}
