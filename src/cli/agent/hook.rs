//! `agent-cli hook`: Claude Code asks before each tool call of an agent that looks like a request.
//!
//! A request is recorded, and its call suspended: `claude` saves the open call and exits. When the result is there, the
//! resumed `claude` asks about the same call again, and gets a command that returns the result. It asks once more when
//! that has run: what the agent sees then counts as the result, and the user's shell has no say in it.
//!
//! Whatever goes wrong here, the agent's call runs as it would without a hook, and then makes the request as a program.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use clap::{Args, Parser};
use serde_json::json;

use crate::claude::invocation::user_hooks;
use crate::claude::stream::reader;
use crate::claude::tools::ask_user_question::{self, ASK_USER_QUESTION};
use crate::claude::tools::exit_plan_mode::{self, EXIT_PLAN_MODE, PLAN_MODE};
use crate::claude::tools::hook::{BASH, Decision, HookInput, NOT_IN_A_SUBAGENT, POST_TOOL_USE, PRE_TOOL_USE};
use crate::cli::agent::hook_result;
use crate::cli::agent::native_waits;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::print_json;
use crate::cli::{Cli, Command};
use crate::core::chain::frame::Frame;
use crate::core::id::RequestId;
use crate::core::requests::agent_command::{self, Surroundings};
use crate::core::requests::plan::modes;
use crate::core::requests::request::{Request, RequestResult, Wish};
use crate::core::text::shell;
use crate::failpoint::Step;
use crate::runtime::RuntimeError;
use crate::store::{Caller, Store};

/// Answer a hook of Claude Code: for claude, not for people
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Hook {}

/// The most that Claude Code allows a command where the user says nothing else.
const MOST_MILLISECONDS: u32 = 600_000;
/// What an agent is told that makes a request in the command of another tool, which cannot wait.
const NOT_IN_A_MONITOR: &str =
    "a command that is monitored cannot wait for a person or another agent: call it with Bash";
const NOT_FOR_AGENTS: &str = "an agent cannot answer in a person's place: end your turn";

impl Hook {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let Some(caller) = context.caller else { return Ok(Exit::Ok) };
        let (decision, store) = decide(context, caller).unwrap_or_else(|error| {
            note(context, caller, "hook", &error);
            (Decision::Pass, None)
        });
        if let Some(decision) = decision.to_json() {
            print_json(&decision)?;
        }
        // Not before claude was told: a hook that dies leaves the call to the program that it names, which must not ask
        // a second time.
        if let (Decision::Allow { .. }, Some(store)) = (decision, store) {
            store.returned(caller).unwrap_or_else(|error| note(context, caller, "hook", &error.into()));
        }
        Ok(Exit::Ok)
    }
}

/// The store is opened for a request only: most of what looks like one is none.
fn decide(context: &Context, caller: Caller) -> Result<(Decision, Option<Store>), CliError> {
    let pass = Ok((Decision::Pass, None));
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input).map_err(|error| unreadable(&error))?;
    let input = HookInput::parse(&input).map_err(|error| unreadable(&error))?;
    if let Some(decision) = native_waits::decide(context, caller, &input)? {
        return Ok((decision, None));
    }
    if input.tool_name.as_deref() == Some(EXIT_PLAN_MODE) {
        return Ok((decide_on_plan(context, caller, &input)?, None));
    }
    if input.hook_event_name.as_deref() == Some(POST_TOOL_USE) {
        return Ok((decide_after(context, caller, &input)?, None));
    }
    if input.tool_name.as_deref() == Some(ASK_USER_QUESTION) {
        return Ok((decide_on_questions(context, caller, &input)?, None));
    }
    let (Some(command), Some(call), Some(pwd)) = (input.command(), &input.tool_use_id, &input.cwd) else {
        return pass;
    };
    // A call in the background has returned before its result is there.
    if input.tool_input["run_in_background"] == true {
        return pass;
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let Some(request) = agent_command::recognise(command, &Surroundings { pwd, home: &home }) else { return pass };
    let words = std::iter::once("agent-cli".to_owned()).chain(request.arguments);
    // What is wrong with a command, the command itself tells the agent.
    let Ok(Cli { command: request, .. }) = Cli::try_parse_from(words) else { return pass };
    match request {
        Command::Answer(_) => Ok((Decision::Deny { reason: NOT_FOR_AGENTS.to_owned() }, None)),
        Command::Spawn(_) | Command::Ask(_) | Command::Wait(_) if input.agent_id.is_some() => {
            Ok((Decision::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() }, None))
        }
        // Its command would run without the permission that the agent needs for it.
        Command::Wait(wait) if wait.runs_a_command() => pass,
        Command::Spawn(_) | Command::Ask(_) | Command::Wait(_) => {
            let store = context.store()?;
            Ok((suspend(context, &store, caller, &input, call, pwd, request)?, Some(store)))
        }
        _ => pass,
    }
}

/// Questions that are asked with Claude Code's own tool. Those with a shape that is not theirs Claude Code refuses.
fn decide_on_questions(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    if input.agent_id.is_some() {
        return Ok(Decision::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() });
    }
    let Some(call) = &input.tool_use_id else { return Ok(Decision::Pass) };
    let Some(questions) = ask_user_question::questions(&input.tool_input) else { return Ok(Decision::Pass) };
    let store = context.store()?;
    let asked = store.requests_of_call(caller.frame, call)?;
    if asked.is_empty() {
        store.request_all(caller, call, &questions)?;
        return Ok(Decision::Defer);
    }
    let answers = asked.iter().map(|request| answer_to(&store, request)).collect::<Result<Option<Vec<_>>, _>>()?;
    // Until each has its answer, the call stays suspended.
    let Some(answers) = answers else { return Ok(Decision::Defer) };
    let answers: Vec<_> = answers.iter().map(|(asked, said)| (*asked, said.as_str())).collect();
    let updated_input = ask_user_question::answered(&input.tool_input, &answers);
    Ok(Decision::Allow { updated_input, notice: notice(&store, caller)? })
}

/// What the agent is told beside the result of the call that it is resumed at.
fn notice(store: &Store, caller: Caller) -> Result<Option<String>, CliError> {
    let attempt = store.running_attempt(caller.frame)?.filter(|attempt| attempt.id == caller.attempt);
    Ok(attempt.and_then(|attempt| attempt.notice))
}

/// A plan with which the agent wants to leave plan mode. Elsewhere Claude Code refuses the call.
fn decide_on_plan(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    let is_call = input.hook_event_name.as_deref() == Some(PRE_TOOL_USE);
    let is_planning = is_call && input.permission_mode.as_deref() == Some(PLAN_MODE);
    let Some(call) = input.tool_use_id.as_ref().filter(|_| is_planning) else { return Ok(Decision::Pass) };
    if input.agent_id.is_some() {
        return Ok(Decision::Deny { reason: NOT_IN_A_SUBAGENT.to_owned() });
    }
    let store = context.store()?;
    if store.requests_of_call(caller.frame, call)?.is_empty() {
        let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
        let parent = frame.parent.map(|parent| store.frame(parent)).transpose()?.flatten();
        let modes = modes(&frame.launch, parent.as_ref().map(|parent| &parent.launch));
        store.request_all(caller, call, &[Wish::Plan(exit_plan_mode::plan(&input.tool_input, modes))])?;
    }
    Ok(Decision::Defer)
}

/// A question and its answer, once it has one.
fn answer_to<'a>(store: &Store, request: &'a Request) -> Result<Option<(&'a str, String)>, CliError> {
    let question = request.wish.native_question().unwrap_or_default();
    Ok(store.result_of(request.id)?.map(|result| match result {
        RequestResult::Text(answer) | RequestResult::Failed(answer) => (question, answer),
    }))
}

fn unreadable(error: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!("the hook's input cannot be read: {error}"))
}

/// Answers a call that was suspended, or records it and suspends it.
fn suspend(
    context: &Context,
    store: &Store,
    caller: Caller,
    input: &HookInput,
    call: &str,
    pwd: &str,
    request: Command,
) -> Result<Decision, CliError> {
    if let Some(known) = store.requests_of_call(caller.frame, call)?.pop() {
        return match store.result_of(known.id)? {
            Some(result) => answer(context, store, caller, input, known.id, &result),
            None => Ok(Decision::Defer),
        };
    }
    if is_of_another_tool(store, caller, call)? {
        return Ok(Decision::Deny { reason: NOT_IN_A_MONITOR.to_owned() });
    }
    // Paths in the command are meant from where the agent is.
    std::env::set_current_dir(pwd).map_err(|error| CliError::failed(format!("{pwd} cannot be entered: {error}")))?;
    match request {
        Command::Spawn(spawn) => spawn.record(store, caller, Some(call)).map(|_| ())?,
        Command::Ask(ask) => ask.record(store, caller, Some(call)).map(|_| ())?,
        Command::Wait(wait) => wait.record(store, caller, call).map(|_| ())?,
        _ => return Ok(Decision::Pass),
    }
    Ok(Decision::Defer)
}

/// Whether a call that looks like one of Bash is none: the commands of other tools are shown to hooks as Bash.
fn is_of_another_tool(store: &Store, caller: Caller, call: &str) -> Result<bool, CliError> {
    let Some(attempt) = store.running_attempt(caller.frame)? else { return Ok(false) };
    let find = || {
        let mut file = File::open(store.dir().printed(caller.frame))?;
        file.seek(SeekFrom::Start(attempt.output_from))?;
        reader::tool_of(BufReader::new(file), call)
    };
    let tool = find().map_err(|error| CliError::failed(format!("what claude printed cannot be read: {error}")))?;
    Ok(tool.is_some_and(|tool| tool != BASH))
}

/// Lets the call run as a command that returns the result, to the byte. Of what the agent has given beside its command,
/// a time limit or that it runs in the background was meant for a request that takes no time.
fn answer(
    context: &Context,
    store: &Store,
    caller: Caller,
    input: &HookInput,
    request: RequestId,
    result: &RequestResult,
) -> Result<Decision, CliError> {
    let (RequestResult::Text(text) | RequestResult::Failed(text)) = result;
    store
        .dir()
        .write(Step::Result, &store.dir().result(caller.frame, request), text.as_bytes())
        .map_err(|error| CliError::failed(format!("the result cannot be written: {error}")))?;
    let command = returning(context, store, caller, request, result)?;
    let mut updated_input = json!({"command": command, "timeout": MOST_MILLISECONDS});
    if input.tool_input["description"].is_string() {
        updated_input["description"] = input.tool_input["description"].clone();
    }
    Ok(Decision::Allow { updated_input, notice: notice(store, caller)? })
}

/// The command that returns the result of a request, and brings the agent's shell to where it was.
fn returning(
    context: &Context,
    store: &Store,
    caller: Caller,
    request: RequestId,
    result: &RequestResult,
) -> Result<String, CliError> {
    let own = context.settings(None)?.own_program;
    let file = store.dir().result(caller.frame, request);
    let shell = store.frame(caller.frame)?.and_then(|frame| frame.situation.shell);
    let command = hook_result::command(&own, &file, matches!(result, RequestResult::Failed(_)));
    Ok(shell.map_or(command.clone(), |shell| shell::going_to(&shell, &command)))
}

/// After a call that has returned its results: records it, and takes away what the user's shell has printed around them.
fn decide_after(context: &Context, caller: Caller, input: &HookInput) -> Result<Decision, CliError> {
    let Some(call) = &input.tool_use_id else { return Ok(Decision::Pass) };
    let store = context.store()?;
    let requests = store.requests_of_call(caller.frame, call)?;
    let ids = || requests.iter().map(|request| request.id).collect::<Vec<_>>();
    if input.tool_name.as_deref() == Some(ASK_USER_QUESTION) {
        let answers =
            requests.iter().map(|request| answer_to(&store, request)).collect::<Result<Option<Vec<_>>, _>>()?;
        let given = |(asked, said): &(&str, String)| input.tool_input["answers"][*asked] == said.as_str();
        if answers.is_some_and(|answers| !answers.is_empty() && answers.iter().all(given)) {
            store.shown(caller, &ids())?;
        }
        return Ok(Decision::Pass);
    }
    let Some(request) = requests.last() else { return Ok(Decision::Pass) };
    let Some(result @ RequestResult::Text(text)) = &store.result_of(request.id)? else { return Ok(Decision::Pass) };
    // Another hook may have had another command run.
    if input.tool_input["command"] != returning(context, &store, caller, request.id, result)? {
        return Ok(Decision::Pass);
    }
    store.shown(caller, &ids())?;
    let is_exact = input.tool_response["stdout"] == text.as_str() && input.tool_response["backgroundTaskId"].is_null();
    // Of two hooks that say what the agent sees, the last to end wins. A user's must not be undone.
    let theirs = |frame: Frame| user_hooks::run_after(BASH, &frame.cwd, &frame.launch);
    let has_the_last_word = is_exact || store.frame(caller.frame)?.is_none_or(theirs);
    Ok(if has_the_last_word { Decision::Pass } else { Decision::Show { output: text.clone() } })
}

/// Nobody reads what a command for `claude` prints to standard error, so it goes to the frame's log.
pub(crate) fn note(context: &Context, caller: Caller, command: &str, error: &CliError) {
    let log = context.store().ok().and_then(|store| store.dir().open_errors(caller.frame).ok());
    if let Some(mut log) = log {
        let _ = writeln!(log, "agent-cli {command}: {error}");
    }
}
