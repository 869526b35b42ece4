//! Chains as tasks of a client. Everything is read from the store: any process may drive the chain, answer for it or stop it.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use rmcp::model::{
    CallToolResult, ContentBlock, DetailedTask, ErrorData, InputRequests, InputResponses, JsonObject, Task,
    TaskPayload, TaskStatus,
};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::app::answer;
use crate::app::chains::run::RunSurroundings;
use crate::app::chains::{in_background, stop};
use crate::app::error::{AppError, Refusal};
use crate::app::lists::whole_question;
use crate::core::chain::frame_state::{Failure, FailureKind, FrameState};
use crate::core::chain::progress_lines;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::StopKind;
use crate::core::text::escape;
use crate::mcp::forms::{self, Shown};
use crate::runtime::activity::now::activity_of;
use crate::runtime::run::external_waits;
use crate::runtime::run::status::{self, ChainStatus};
use crate::store::{Driving, Question, Replies, StoreError};

/// How often a client should look, in milliseconds.
const WHILE_IT_WORKS: u64 = 5_000;
const WHILE_IT_WAITS: u64 = 10_000;

/// The agents that a status message names.
const NAMED: usize = 3;

/// The chain that a task belongs to. Not an id of something else, and no abbreviation: a client repeats what it was given.
pub(super) fn chain_of(app: &App<'_>, task: &str) -> Result<FrameId, AppError> {
    let unknown = || Refusal::unknown(format!("there is no chain {}", escape::shortened(task)));
    let root: FrameId = task.parse().map_err(|_| unknown())?;
    match app.store.frame(root)? {
        Some(frame) if frame.root == root => Ok(root),
        _ => Err(unknown().hint("it may have been removed; agent-cli ls --all lists chains").into()),
    }
}

/// The state of a chain.
pub(super) fn task(app: &App<'_>, root: FrameId) -> Result<DetailedTask, AppError> {
    let frame = app.store.frame(root)?.ok_or(StoreError::UnknownFrame(root))?;
    let questions = app.store.questions(Some(root), true)?;
    // A person may be retrying it.
    let is_driven = Driving::is_marked(app.store.dir(), root)?;
    let Replies { reply, members } = app.store.replies(root)?;
    let of_group = reply.filter(|_| !members.is_empty());
    let (payload, message) = match (status::poll(app.store, root)?, &frame.state) {
        (Some(ChainStatus::Done(reply)), _) => (completed(reply, false), "done".to_owned()),
        (Some(ChainStatus::PartlyFailed { replies, errors }), _) => {
            (completed(replies, true), format!("{} agents failed", errors.len()))
        }
        (_, FrameState::Failed { failure }) if !is_driven && of_group.is_some() => {
            (completed(of_group.unwrap_or_default(), true), failure.message.clone())
        }
        (_, FrameState::Failed { failure: Failure { kind: FailureKind::Stopped, message } }) if !is_driven => {
            (TaskPayload::Cancelled, message.clone())
        }
        (_, FrameState::Failed { failure }) if !is_driven => {
            let hint = format!("{}\nagent-cli resume {} tries again", failure.message.trim(), root.short());
            (failed(&hint), failure.message.clone())
        }
        (_, FrameState::Cancelled) if !is_driven => (TaskPayload::Cancelled, "interrupted".to_owned()),
        _ => {
            let forms = forms_of(app, &questions)?;
            let payload = if forms.is_empty() {
                TaskPayload::Working
            } else {
                TaskPayload::InputRequired { input_requests: forms }
            };
            (payload, message(app, root)?)
        }
    };
    let runs = matches!(payload, TaskPayload::Working) && questions.is_empty();
    let task = Task::new(root.to_string(), TaskStatus::Working, frame.created.to_string(), app.now.to_string());
    let interval = if runs { WHILE_IT_WORKS } else { WHILE_IT_WAITS };
    Ok(DetailedTask::new(task.with_status_message(escape::block(&message)).with_poll_interval_ms(interval), payload))
}

fn completed(reply: String, is_error: bool) -> TaskPayload {
    let content = vec![ContentBlock::text(reply)];
    let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    TaskPayload::Completed { result: object(&result) }
}

fn failed(message: &str) -> TaskPayload {
    TaskPayload::Failed { error: object(&ErrorData::internal_error(message.to_owned(), None)) }
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn forms_of(app: &App<'_>, questions: &[Question]) -> Result<InputRequests, AppError> {
    let mut forms = BTreeMap::new();
    for question in questions {
        let form = Shown::new(question, whole(app, question)?.as_deref()).form(app.now);
        forms.insert(question.id.to_string(), form);
    }
    Ok(forms)
}

/// All of a call or a plan; `None`: certainly more than a form shows. Agents could otherwise keep the server busy.
fn whole(app: &App<'_>, asked: &Question) -> Result<Option<String>, AppError> {
    let length = match &asked.kind {
        RequestKind::Permission { input, .. } => input.to_string().len(),
        RequestKind::Plan(plan) => plan.text.as_ref().map_or(0, String::len),
        _ => return Ok(None),
    };
    let shown = (length <= forms::LONGEST_INPUT).then(|| whole_question::body(app.store, asked, None));
    Ok(shown.transpose()?)
}

/// What the chain does, as the live display of a terminal says it.
fn message(app: &App<'_>, root: FrameId) -> Result<String, AppError> {
    let mut tree = app.store.tree(root)?;
    external_waits::observe(app.store, &mut tree, app.now)?;
    let running = running(app, &tree)?;
    if !running.is_empty() {
        return Ok(running.join("\n"));
    }
    let waits = tree.leaves_up().into_iter().find(|node| !node.is_over() && !node.is_group);
    let zone = TimeZone::system();
    let ended = |node: &Node| progress_lines::ended(&tree, node, app.now, &zone);
    let step = |node: &Node| progress_lines::step(node.id, &node.title, &ended(node));
    Ok(waits.map(step).unwrap_or_default())
}

fn running(app: &App<'_>, tree: &Tree) -> Result<Vec<String>, AppError> {
    let mut lines = Vec::new();
    for node in tree.leaves_up().into_iter().filter(|node| matches!(node.state, FrameState::Running { .. })) {
        if lines.len() == NAMED {
            break;
        }
        if let Some(doing) = activity_of(app.store, node.id, app.now)? {
            lines.push(progress_lines::step(node.id, &node.title, &escape::one_line(&doing.words(app.now))));
        }
    }
    Ok(lines)
}

/// Records what a person has entered. Each answer counts or is refused for itself; the first refusal is returned.
pub(super) fn update(
    app: &App<'_>,
    root: FrameId,
    responses: &InputResponses,
    surroundings: &impl RunSurroundings,
) -> Result<(), AppError> {
    let mut refused = None;
    for (id, response) in responses {
        if let Err(error) = record(app, root, id, response) {
            refused.get_or_insert(error);
        }
    }
    in_background::go_on(app, root, surroundings)?;
    refused.map_or(Ok(()), Err)
}

fn record(app: &App<'_>, root: FrameId, id: &str, response: &Value) -> Result<(), AppError> {
    let unknown = || Refusal::unknown(format!("there is no question {} in this chain", escape::shortened(id)));
    let question = id.parse().map_err(|_| unknown())?;
    let asked = app.store.questions(question, false)?.pop().filter(|asked| asked.root == root).ok_or_else(unknown)?;
    let whole = whole(app, &asked)?;
    let Some(text) = Shown::new(&asked, whole.as_deref()).answer(response).map_err(Refusal::new)? else {
        return Ok(());
    };
    answer::answer(app, &answer::Input { question, text, is_verbatim: true, mode: None, replace: false, shown: None })?;
    Ok(())
}

/// Stops the chain. The task reports it when it has happened.
pub(super) fn cancel(app: &App<'_>, root: FrameId) -> Result<(), AppError> {
    let reason = Some("cancelled in the session".to_owned());
    stop::stop(app, stop::Input { id: root.to_string(), kind: StopKind::Stop, now: false, reason, waits: None })?;
    Ok(())
}
