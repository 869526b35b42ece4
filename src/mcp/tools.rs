//! Defines and runs the tools.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::answer;
use crate::app::chains::{in_background, resume, stop};
use crate::app::error::{AppError, Refusal};
use crate::app::lists::{chains, logs, questions, tree};
use crate::app::spawn::in_background::{self as new_chain, Described, Surroundings};
use crate::app::{App, lookup};
use crate::core::events::agent_event::AgentEvent;
use crate::core::id::FrameId;
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::StopKind;
use crate::store::StoreError;

/// The output of a tool.
pub(super) enum Output {
    /// JSON.
    Value(Value),
    /// A chain that keeps running. The client gets a task if it supports tasks.
    Chain(FrameId),
}

/// The most events to return. A session should read more from a file, in parts.
const EVENTS: usize = 50;
const CHAINS: usize = 50;

/// The tools, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    let (reads, acts) = (ToolAnnotations::new().read_only(true), ToolAnnotations::new().read_only(false));
    vec![
        tool::<Spawn>(
            "spawn",
            "Start a chain of headless agents that can wait for days; its reply arrives when it is done",
            acts.clone().destructive(false),
        ),
        tool::<Chains>("chains", "List the project's chains", reads.clone()),
        tool::<Named>("tree", "Show all agents of a chain", reads.clone()),
        tool::<Questions>("questions", "List open questions and approvals", reads.clone()),
        tool::<Answer>(
            "answer",
            "Pass on a person's answer to a question; approvals are given by the person alone",
            acts.clone().destructive(false),
        ),
        tool::<Resume>("resume", "Continue a chain that failed or was stopped", acts.clone().destructive(false)),
        tool::<Stop>("stop", "Stop a chain or an agent", acts.destructive(true)),
        tool::<Named>("logs", "Show the last events of an agent", reads),
    ]
}

fn tool<T: JsonSchema + 'static>(name: &'static str, what: &'static str, hints: ToolAnnotations) -> Tool {
    Tool::new(name, what, Arc::default()).with_input_schema::<T>().annotate(hints)
}

/// Runs the tool with this name.
pub(super) fn call(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    name: &str,
    arguments: JsonObject,
) -> Result<Output, AppError> {
    match name {
        "spawn" => spawn(app, surroundings, parsed(arguments)?),
        "chains" => {
            let Chains { all } = parsed(arguments)?;
            let input = chains::Input { with_done: all, most: Some(CHAINS), ..chains::Input::default() };
            let chains::Outcome { chains, omitted, .. } = chains::chains(app, &input)?;
            Ok(Output::Value(json!({ "chains": chains, "more": omitted.more })))
        }
        "tree" => {
            let Named { id } = parsed(arguments)?;
            let found = tree::tree(app, &tree::Input { id: Some(id), ..tree::Input::default() })?;
            let agents = found.trees.iter().flat_map(|listed| &listed.agents);
            Ok(Output::Value(json!(agents.collect::<Vec<_>>())))
        }
        "questions" => {
            let Questions { id } = parsed(arguments)?;
            let found = questions::questions(app, &questions::Input { id, ..questions::Input::default() })?;
            Ok(Output::Value(json!(questions::views(app, found.questions)?)))
        }
        "answer" => answer(app, surroundings, parsed(arguments)?),
        "resume" => resume(app, surroundings, parsed(arguments)?),
        "stop" => {
            let Stop { id, reason } = parsed(arguments)?;
            let stopped = stop::stop(app, stop::Input { reason, ..stop::Input::new(id, StopKind::Stop) })?;
            Ok(Output::Value(json!({ "id": stopped.agent.id, "outcome": stopped.outcome })))
        }
        "logs" => logs(app, parsed(arguments)?),
        other => Err(Refusal::new(format!("there is no tool {other}")).into()),
    }
}

fn parsed<'a, T: Deserialize<'a>>(arguments: JsonObject) -> Result<T, Refusal> {
    T::deserialize(Value::Object(arguments)).map_err(|error| Refusal::new(error.to_string()))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Spawn {
    /// What the agent should do; or files
    prompt: Option<String>,
    /// Instruction files, one agent for each
    #[serde(default)]
    files: Vec<PathBuf>,
    /// Where they work
    directory: Option<PathBuf>,
    /// A name for the chain
    name: Option<String>,
    /// As for claude --model
    model: Option<String>,
    max_budget_usd: Option<f64>,
    /// A git worktree for each agent
    worktree: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Chains {
    /// Also those that are done
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Named {
    /// Id or name of a chain, or id of an agent
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Questions {
    /// Only of this chain, agent or question
    id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Answer {
    /// Id of the question
    id: String,
    /// Exactly as the person said it
    answer: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Resume {
    /// Id or name of a chain
    id: String,
    /// A new instruction
    prompt: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Stop {
    /// Id or name of a chain, or id of an agent
    id: String,
    /// For its caller
    reason: Option<String>,
}

fn spawn(app: &App<'_>, surroundings: &impl Surroundings, given: Spawn) -> Result<Output, AppError> {
    let Spawn { prompt, files, directory, name, model, max_budget_usd, worktree } = given;
    let budget = max_budget_usd.map(|usd| usd.to_string());
    let described = Described { prompt, files, directory, name, model, budget, worktree };
    Ok(Output::Chain(new_chain::spawn(app, described.input()?, surroundings)?))
}

fn answer(app: &App<'_>, surroundings: &impl Surroundings, given: Answer) -> Result<Output, AppError> {
    let question = answer::question_named(app, &given.id, false)?;
    let asked = app.store.questions(question, false)?.pop().ok_or(StoreError::UnknownRequest(question))?;
    if !matches!(asked.kind, RequestKind::Ask(_)) {
        // A person must have seen the call or plan that they allow, and the model could tell them anything.
        let refusal = Refusal::new("only a person can decide on a tool call or a plan");
        return Err(refusal.hint(format!("in a terminal: agent-cli answer {}", question.short())).into());
    }
    let input = answer::Input { is_verbatim: false, ..answer::Input::entered(question, given.answer, None) };
    let recorded = answer::answer(app, &input)?;
    let mut output = json!({ "question": question, "chain": recorded.chain, "answer": "recorded" });
    if let Err(Refusal { message, hints, .. }) = in_background::after_answer(app, recorded.chain, surroundings) {
        output["note"] = format!("{message}; {}", hints.join("; ")).into();
    }
    Ok(Output::Value(output))
}

fn resume(app: &App<'_>, surroundings: &impl Surroundings, Resume { id, prompt }: Resume) -> Result<Output, AppError> {
    let input = resume::Input::new(lookup::frame_named(app, &id)?.to_string(), prompt);
    Ok(Output::Chain(in_background::resume(app, input, surroundings)?))
}

fn logs(app: &App<'_>, Named { id }: Named) -> Result<Output, AppError> {
    let input =
        logs::Input { id, with_descendants: false, since: None, tail: Some(EVENTS), is_full: false, follows: false };
    let mut found = logs::logs(app, &input, |_| true)?;
    let mut events: Vec<AgentEvent> = Vec::new();
    while let Some(event) = found.next()? {
        events.push(event);
    }
    Ok(Output::Value(json!(events)))
}
