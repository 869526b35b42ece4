//! A Bash call that consists of exactly one command of agent-cli.

use serde_json::json;

use crate::claude::settings::user_hooks;
use crate::claude::tools::hook::{BASH, HookAnswer, HookInput, NOT_IN_A_SUBAGENT};
use crate::core::chain::frame::Frame;
use crate::core::id::RequestId;
use crate::core::requests::agent_command::{self, Surroundings};
use crate::core::requests::request::RequestResult;
use crate::core::text::shell;
use crate::failpoint::Step;
use crate::runtime::protocol::response::{self, HookResponse};
use crate::runtime::protocol::suspension::Suspension;
use crate::runtime::protocol::{Asking, ProtocolError, printed, result_command};
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Caller, ResultUse, Store};

/// A command line of agent-cli, parsed.
pub(crate) enum Typed {
    /// A request. Its details are resolved from the agent's directory while it is new: files that it names may no longer exist
    /// when its result is available.
    Request(Resolve),
    /// A request that only runs as a program: it needs a permission that its agent may not have.
    NeedsPermission,
    /// An answer to another agent's question.
    Answer,
    /// Anything else, including commands that cannot be parsed: the program reports what is wrong.
    Other,
}

/// Resolves what a request asks for. Its paths are relative to the agent's directory.
type Resolve = Box<dyn FnOnce(&Store, Caller, &str) -> Result<AgentRequest, String>>;

/// Claude Code's default maximum for a command's time limit.
const MOST_MILLISECONDS: u32 = 600_000;
/// The message to an agent that makes a request inside another tool's command, which cannot wait.
const NOT_IN_A_MONITOR: &str =
    "a command that is monitored cannot wait for a person or another agent: call it with Bash";
const NOT_FOR_AGENTS: &str = "agents cannot answer questions, only people can: end your turn";

/// What a call is, judged by its input alone.
enum BashCall<'a> {
    /// Not a command of agent-cli.
    Pass,
    Deny(&'static str),
    /// A command that may be suspended.
    Request {
        call: &'a str,
        pwd: &'a str,
        resolve: Resolve,
    },
}

pub(super) fn before(
    asking: &Asking,
    input: &HookInput,
    parse: impl FnOnce(&[String]) -> Typed,
) -> Result<HookResponse, ProtocolError> {
    let (call, pwd, resolve) = match read(input, &asking.home, parse) {
        BashCall::Pass => return Ok(HookAnswer::Pass.into()),
        BashCall::Deny(reason) => return Ok(deny(reason).into()),
        BashCall::Request { call, pwd, resolve } => (call, pwd, resolve),
    };
    let (store, caller) = (asking.store()?, asking.caller);
    match Suspension::of(&store, caller, call)? {
        Suspension::Return(mut results) => {
            let Some((request, result)) = results.pop() else { return Ok(HookAnswer::Pass.into()) };
            let answer = return_result(asking, &store, input, request.id, &result)?;
            Ok(HookResponse { answer, returning: Some((store, caller)) })
        }
        Suspension::Keep => Ok(HookAnswer::Defer.into()),
        Suspension::Record if printed::is_of_another_tool(&store, caller, call)? => Ok(deny(NOT_IN_A_MONITOR).into()),
        Suspension::Record => {
            let request = resolve(&store, caller, pwd).map_err(ProtocolError::Request)?;
            request.record(&store, caller, Some(call))?;
            Ok(HookAnswer::Defer.into())
        }
    }
}

fn deny(reason: &str) -> HookAnswer {
    HookAnswer::Deny { reason: reason.to_owned() }
}

fn read<'a>(input: &'a HookInput, home: &str, parse: impl FnOnce(&[String]) -> Typed) -> BashCall<'a> {
    let (Some(command), Some(call), Some(pwd)) = (input.command(), &input.tool_use_id, &input.cwd) else {
        return BashCall::Pass;
    };
    // A call in the background returns before its result is available.
    if input.tool_input["run_in_background"] == true {
        return BashCall::Pass;
    }
    let Some(command) = agent_command::recognise(command, &Surroundings { pwd, home }) else { return BashCall::Pass };
    let by_subagent = input.agent_id.is_some();
    match parse(&command.arguments) {
        Typed::Answer => BashCall::Deny(NOT_FOR_AGENTS),
        Typed::Request(_) | Typed::NeedsPermission if by_subagent => BashCall::Deny(NOT_IN_A_SUBAGENT),
        Typed::Request(resolve) => BashCall::Request { call, pwd, resolve },
        Typed::NeedsPermission | Typed::Other => BashCall::Pass,
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
    Ok(shell.map_or(command.clone(), |shell| shell::going_to(&shell, &command)))
}

/// After a call that returned its result: records that, and removes what the user's shell printed around it.
pub(super) fn after(asking: &Asking, input: &HookInput) -> Result<HookAnswer, RuntimeError> {
    let Some(call) = &input.tool_use_id else { return Ok(HookAnswer::Pass) };
    let (store, caller) = (asking.store()?, asking.caller);
    let Suspension::Return(results) = Suspension::of(&store, caller, call)? else { return Ok(HookAnswer::Pass) };
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
    // If two hooks say what the agent sees, the last to end wins. A user's hook must not be overruled.
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
            BashCall::Request { call: "toolu_1", pwd: "/project", .. } => "request",
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
    fn only_a_whole_command_in_the_foreground_is_read() {
        let mut background = input("agent-cli ask x");
        background.tool_input["run_in_background"] = json!(true);
        let without_call = HookInput { tool_use_id: None, ..input("agent-cli ask x") };
        let nowhere = HookInput { cwd: None, ..input("agent-cli ask x") };
        for input in [background, without_call, nowhere, input("agent-cli ask x | tee log"), input("git status")] {
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
