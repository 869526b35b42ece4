//! Bash calls with commands of agent-cli. A call that is exactly one request is suspended; a request inside a larger command is
//! refused before anything runs, because the rest would continue without its result.

use std::path::Path;
use std::{env, fs};

use serde_json::json;

use crate::claude::environment::variables::Variables;
use crate::claude::settings::{permission_rules, user_hooks};
use crate::claude::tools::hook_input::{BASH, HookAnswer, HookInput, NOT_IN_A_SUBAGENT};
use crate::core::chain::frame::Frame;
use crate::core::id::RequestId;
use crate::core::requests::agent_command::verb::Verb;
use crate::core::requests::agent_command::{self, Call, Recognised, Surroundings};
use crate::core::requests::request::{Request, RequestKind, RequestResult};
use crate::core::text::escape::one_line;
use crate::core::text::shell;
use crate::failpoint::Step;
use crate::runtime::protocol::response::{self, HookResponse};
use crate::runtime::protocol::suspension::{REPEATED, Suspension};
use crate::runtime::protocol::{Asking, ProtocolError, linger, printed_call, result_command};
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Attending, Caller, Requests, ResultUse, Store};

/// A command line of agent-cli, parsed.
pub(crate) enum Typed {
    /// A request. Its details are resolved from the agent's directory while it is new: files that it names may no longer exist
    /// when its result is available.
    Request(Resolve),
    /// A request that only runs as a program: it needs a permission that its agent may not have.
    NeedsPermission,
    /// A request whose result the agent does not wait for.
    ReturnsAtOnce,
    /// An answer to another agent's question.
    Answer,
    /// Anything else. This includes commands that cannot be parsed, for which the program reports the error.
    Other,
}

/// Resolves the details of a request as if it ran as a program.
type Resolve = Box<dyn FnOnce(&Store, Caller, &RunsIn<'_>) -> Result<AgentRequest, String>>;

/// The environment of a request that runs as a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunsIn<'a> {
    /// The directory of the agent's shell, or the one to which the command changes.
    pub directory: &'a str,
    /// Its standard input.
    pub input: &'a str,
}

/// Claude Code's default maximum for a command's time limit.
const MOST_MILLISECONDS: u32 = 600_000;
/// The message to an agent that makes a request inside another tool's command, which cannot wait.
const NOT_IN_A_MONITOR: &str =
    "a command that is monitored cannot wait for a person or another agent: call it with Bash";
const NOT_FOR_AGENTS: &str = "agents cannot answer questions, only people can: end your turn";

/// The message to an agent that makes a request inside a larger command.
fn not_alone(verb: Option<Verb>) -> String {
    let request = verb.map_or("a request", Verb::name);
    format!(
        "nothing was run: this command contains `agent-cli {request}`, which has to be a call of its own. Call Bash with that command \
         alone, its words written out: no other command, pipe, variable or $(…) beside it, and its output not redirected. The \
         call returns the result; go on in the next call. Before it there may be `cd DIR &&`, after it `2>&1`, and its text may \
         come from a here-document"
    )
}

/// The message to an agent whose request would run where it cannot be resolved.
fn not_there(directory: &str) -> String {
    let directory = one_line(directory);
    format!(
        "nothing was run: {directory} cannot be entered, or is outside of your directory. Call cd alone first, and then the \
         request"
    )
}

const NOT_IN_THE_BACKGROUND: &str = "nothing was run: a request cannot be made in the background. Call it again without \
    run_in_background; the call returns the result";

/// The kind of a call, judged by its input alone.
enum BashCall<'a> {
    /// Not a command of agent-cli.
    Pass,
    Deny(&'static str),
    /// A request inside a larger command.
    Embedded {
        id: &'a str,
        verb: Option<Verb>,
    },
    /// A command that may be suspended.
    Request {
        id: &'a str,
        pwd: &'a str,
        call: Call,
        resolve: Resolve,
    },
}

pub(super) fn before(
    asking: &Asking,
    input: &HookInput,
    parse: impl FnOnce(&[String]) -> Typed,
) -> Result<HookResponse, ProtocolError> {
    let (id, pwd, call, resolve) = match read(input, &asking.home, parse) {
        BashCall::Pass => return Ok(HookAnswer::Pass.into()),
        BashCall::Deny(reason) => return Ok(deny(reason).into()),
        BashCall::Embedded { id, verb } => return embedded(asking, id, verb),
        BashCall::Request { id, pwd, call, resolve } => (id, pwd, call, resolve),
    };
    let (store, caller) = (asking.store()?, asking.caller);
    // A person is asked whether it may run, because a rule requires it.
    let is_approval = |request: &Request| matches!(request.kind, RequestKind::Permission { .. });
    let needs_approval =
        store.requests(Requests::OfCall(caller.frame, id))?.iter().any(|(request, _)| is_approval(request));
    match Suspension::find(&store, caller, id)? {
        Suspension::Repeated => Ok(deny(REPEATED).into()),
        _ if needs_approval => Ok(HookAnswer::Pass.into()),
        Suspension::Return(mut results) => {
            let Some((request, result)) = results.pop() else { return Ok(HookAnswer::Pass.into()) };
            let answer = return_result(asking, &store, input, request.id, &result)?;
            Ok(HookResponse { answer, returning: Some((store, caller)) })
        }
        Suspension::Keep => Ok(HookAnswer::Defer.into()),
        Suspension::LeaveOpen => Ok(HookResponse { answer: HookAnswer::Defer, returning: Some((store, caller)) }),
        Suspension::Record if printed_call::is_of_another_tool(&store, caller, id)? => {
            Ok(deny(NOT_IN_A_MONITOR).into())
        }
        Suspension::Record => {
            let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
            let command = input.command().unwrap_or_default();
            // Claude Code decides on calls that a person restricts. A suspended call would not get that far.
            let began = agent_lookup::base(&store, &frame)?;
            let concerns = |cwd: &Path| permission_rules::may_concern(command, &call.words(), cwd, &frame.launch);
            if concerns(&began) || (began != frame.cwd && concerns(&frame.cwd)) {
                return Ok(HookAnswer::Pass.into());
            }
            if let Some(directory) =
                call.directory.as_deref().filter(|directory| !can_be_entered(directory, &frame.cwd))
            {
                return Ok(deny(&not_there(directory)).into());
            }
            let directory = call.directory.as_deref().unwrap_or(pwd);
            let runs_in = RunsIn { directory, input: call.input.as_deref().unwrap_or_default() };
            let request = resolve(&store, caller, &runs_in).map_err(ProtocolError::Request)?;
            let can_linger = !asking.patience.time.is_zero()
                && request.can_linger(caller, || Attending::is_marked(store.dir(), frame.root).unwrap_or(false));
            request.record(&store, caller, Some(id))?;
            // Otherwise a child could work although a user's hook, which runs at the same time, denies the call.
            if !can_linger || !linger::is_alone(&store, &frame, BASH)? {
                return Ok(HookAnswer::Defer.into());
            }
            let mut in_time = linger::or_suspended(asking, &store, &frame, id).unwrap_or_default();
            // The answer to several questions is the same for each of them.
            let Some((request, result)) = in_time.pop() else { return Ok(HookAnswer::Defer.into()) };
            let answer = return_result(asking, &store, input, request.id, &result)?;
            Ok(HookResponse { answer, returning: Some((store, caller)) })
        }
    }
}

pub(super) fn refuse_embedded(asking: &Asking, input: &HookInput) -> Result<HookResponse, ProtocolError> {
    match read(input, &asking.home, |_| Typed::Other) {
        BashCall::Embedded { id, verb } => embedded(asking, id, verb),
        BashCall::Deny(reason) => Ok(deny(reason).into()),
        BashCall::Pass | BashCall::Request { .. } => Ok(HookAnswer::Pass.into()),
    }
}

/// Refuses a request inside a larger command, unless it only fetches existing results.
fn embedded(asking: &Asking, id: &str, verb: Option<Verb>) -> Result<HookResponse, ProtocolError> {
    let (store, caller) = (asking.store()?, asking.caller);
    if verb == Some(Verb::Resume) && has_all_results(&store, caller)? {
        return Ok(HookAnswer::Pass.into());
    }
    let is_monitored = printed_call::is_of_another_tool(&store, caller, id)?;
    Ok(if is_monitored { deny(NOT_IN_A_MONITOR) } else { deny(&not_alone(verb)) }.into())
}

/// Whether the agent has been given, or could look up, the results of everything that it has asked for in this attempt.
fn has_all_results(store: &Store, caller: Caller) -> Result<bool, RuntimeError> {
    let made = store.requests(Requests::Undelivered(caller.attempt))?;
    Ok(made.iter().all(|(request, result)| result.is_some() || request.kind.is_background()))
}

/// Whether a shell of the agent in `cwd` can change to the directory with `cd`, and remains there.
fn can_be_entered(directory: &str, cwd: &Path) -> bool {
    let is_below = || Some(fs::canonicalize(directory).ok()?.starts_with(fs::canonicalize(cwd).ok()?));
    env::var_os("CDPATH").is_none_or(|path| path.is_empty())
        && Path::new(directory).is_dir()
        && is_below() == Some(true)
}

fn deny(reason: &str) -> HookAnswer {
    HookAnswer::Deny { reason: reason.to_owned() }
}

fn read<'a>(input: &'a HookInput, home: &str, parse: impl FnOnce(&[String]) -> Typed) -> BashCall<'a> {
    let (Some(command), Some(id), Some(pwd)) = (input.command(), &input.tool_use_id, &input.cwd) else {
        return BashCall::Pass;
    };
    let by_subagent = input.agent_id.is_some();
    let call = match agent_command::recognise(command, &Surroundings { pwd, home }) {
        Recognised::Nothing => return BashCall::Pass,
        Recognised::Embedded(_) if by_subagent => return BashCall::Deny(NOT_IN_A_SUBAGENT),
        Recognised::Embedded(verb) => return BashCall::Embedded { id, verb },
        Recognised::Request(call) => call,
    };
    // A call in the background returns before its result is available.
    let in_background = input.tool_input["run_in_background"] == true;
    match parse(&call.arguments) {
        Typed::Answer => BashCall::Deny(NOT_FOR_AGENTS),
        Typed::Request(_) | Typed::NeedsPermission | Typed::ReturnsAtOnce if by_subagent => {
            BashCall::Deny(NOT_IN_A_SUBAGENT)
        }
        Typed::Request(_) | Typed::NeedsPermission if in_background => BashCall::Deny(NOT_IN_THE_BACKGROUND),
        Typed::Request(resolve) => BashCall::Request { id, pwd, call, resolve },
        Typed::NeedsPermission | Typed::ReturnsAtOnce | Typed::Other => BashCall::Pass,
    }
}

/// Makes the call run a command that returns the exact result. Other fields of the agent's call are dropped: a time limit or
/// running in the background were meant for a request that takes no time.
fn return_result(
    asking: &Asking,
    store: &Store,
    input: &HookInput,
    request: RequestId,
    result: &RequestResult,
) -> Result<HookAnswer, RuntimeError> {
    let file = store.dir().result(asking.caller.frame, request);
    store.dir().write(Step::Result, &file, result.text().as_bytes()).map_err(while_trying("write the result"))?;
    let command = returning(asking, store, request, result)?;
    let mut updated_input = json!({"command": command, "timeout": MOST_MILLISECONDS});
    if input.tool_input["description"].is_string() {
        updated_input["description"] = input.tool_input["description"].clone();
    }
    Ok(HookAnswer::Allow { updated_input, notice: response::notice(store, asking.caller)? })
}

/// The command that returns a request's result and moves the agent's shell back to its directory.
fn returning(
    asking: &Asking,
    store: &Store,
    request: RequestId,
    result: &RequestResult,
) -> Result<String, RuntimeError> {
    let frame = asking.caller.frame;
    let file = store.dir().result(frame, request);
    let shell = store.frame(frame)?.and_then(|frame| frame.situation.shell);
    let failed = result.is_failure();
    let command = result_command::command(&asking.own_program, &file, failed);
    let change = Variables::of_process().change_directory();
    Ok(shell.map_or(command.clone(), |shell| shell::going_to(change, &shell, &command)))
}

/// Handles the end of a call that returned its result: records it, and removes the output of the user's shell around it.
pub(super) fn after(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let (store, caller) = (asking.store()?, asking.caller);
    let Suspension::Return(results) = Suspension::find(&store, caller, call)? else { return Ok(HookAnswer::Pass) };
    let Some((request, result @ (RequestResult::Text(text) | RequestResult::Default(text)))) = results.last() else {
        return Ok(HookAnswer::Pass);
    };
    // Another hook may have replaced the command.
    if input.tool_input["command"] != returning(asking, &store, request.id, result)? {
        return Ok(HookAnswer::Pass);
    }
    let shown: Vec<_> = results.iter().map(|(request, _)| request.id).collect();
    store.use_results(caller, ResultUse::Shown(&shown))?;
    let is_exact = input.tool_response["stdout"] == text.as_str() && input.tool_response["backgroundTaskId"].is_null();
    // If two hooks replace what the agent sees, the last to end wins. A user's hook must not be overruled.
    let theirs = |frame: Frame| user_hooks::run_after(BASH, &frame.cwd, &frame.launch);
    let has_the_last_word = is_exact || store.frame(caller.frame)?.is_none_or(theirs);
    Ok(if has_the_last_word { HookAnswer::Pass } else { HookAnswer::Show { output: text.clone() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(command: &str) -> HookInput {
        HookInput {
            hook_event_name: Some("PreToolUse".to_owned()),
            tool_name: Some(BASH.to_owned()),
            tool_input: json!({"command": command}),
            tool_use_id: Some("toolu_1".to_owned()),
            cwd: Some("/project".to_owned()),
            ..HookInput::default()
        }
    }

    fn request() -> Typed {
        Typed::Request(Box::new(|_, _, _| Err("not asked for here".to_owned())))
    }

    fn in_words(call: &BashCall<'_>) -> &'static str {
        match call {
            BashCall::Pass => "pass",
            BashCall::Deny(reason) => reason,
            BashCall::Embedded { id: "toolu_1", verb: Some(Verb::Ask) } => "embedded",
            BashCall::Embedded { .. } => "another one that is embedded",
            BashCall::Request { id: "toolu_1", pwd: "/project", .. } => "request",
            BashCall::Request { .. } => "another request",
        }
    }

    #[test]
    fn a_call_is_judged_by_its_words_and_by_who_makes_it() {
        let subagent = Some("a1".to_owned());
        for (typed, agent, subagent_gets) in [
            (request as fn() -> Typed, "request", NOT_IN_A_SUBAGENT),
            (|| Typed::NeedsPermission, "pass", NOT_IN_A_SUBAGENT),
            (|| Typed::Answer, NOT_FOR_AGENTS, NOT_FOR_AGENTS),
            (|| Typed::Other, "pass", "pass"),
        ] {
            let own = input("agent-cli ask 'When?'");
            assert_eq!(in_words(&read(&own, "/home/dev", |_| typed())), agent);
            let other = HookInput { agent_id: subagent.clone(), ..own };
            assert_eq!(in_words(&read(&other, "/home/dev", |_| typed())), subagent_gets);
        }
    }

    #[test]
    fn a_request_has_to_be_the_whole_command_in_the_foreground() {
        let mut background = input("agent-cli ask x");
        background.tool_input["run_in_background"] = json!(true);
        assert_eq!(in_words(&read(&background, "/home/dev", |_| request())), NOT_IN_THE_BACKGROUND);
        let piped = input("agent-cli ask x | tee log");
        assert_eq!(in_words(&read(&piped, "/home/dev", |_| request())), "embedded");
        let by_subagent = HookInput { agent_id: Some("a1".to_owned()), ..piped };
        assert_eq!(in_words(&read(&by_subagent, "/home/dev", |_| request())), NOT_IN_A_SUBAGENT);
        let without_call = HookInput { tool_use_id: None, ..input("agent-cli ask x") };
        let nowhere = HookInput { cwd: None, ..input("agent-cli ask x") };
        for input in [without_call, nowhere, input("git status")] {
            let call = read(&input, "/home/dev", |words| panic!("{words:?}"));
            assert_eq!(in_words(&call), "pass");
        }
        let call = input("~/bin/agent-cli -q ask '$x'");
        let words = |words: &[String]| {
            assert_eq!(words, ["-q", "ask", "$x"]);
            Typed::Other
        };
        assert_eq!(in_words(&read(&call, "/home/dev", words)), "pass");
    }
}
