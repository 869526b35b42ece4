//! Presents chains as tasks of a session. Everything is read from the store, because any process may run, answer or stop the
//! chain.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::app::App;
use crate::app::answer;
use crate::app::chains::run::RunSurroundings;
use crate::app::chains::{in_background, stop};
use crate::app::error::{AppError, Refusal};
use crate::app::fronts::dialog::{self, Dialog};
use crate::core::chain::frame_state::{Failure, FailureKind, FrameState};
use crate::core::chain::progress_lines;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::steering::stop_order::StopKind;
use crate::core::text::escape;
use crate::local_zone::local_zone;
use crate::runtime::activity::now::activity_of;
use crate::runtime::run::external_waits;
use crate::runtime::run::status::{self, ChainStatus};
use crate::store::{Driving, Question, Replies, StoreError};

/// The state of a chain for the client of its session.
#[derive(Debug, PartialEq)]
pub(crate) struct ChainTask {
    pub(crate) state: TaskState,
    /// The chain's activity, in the words of the live display.
    pub(crate) message: String,
    pub(crate) created: Timestamp,
    /// When the client should poll again.
    pub(crate) look_after: Duration,
}

#[derive(Debug, PartialEq)]
pub(crate) enum TaskState {
    Works,
    /// The chain needs answers. Each form has the id of its question.
    Asks(BTreeMap<String, Dialog>),
    Replied(String),
    /// Some of its agents have failed.
    PartlyFailed(String),
    /// The reason, and the next step.
    Failed(String),
    Stopped,
}

/// How often a client should poll.
const WHILE_IT_WORKS: Duration = Duration::from_secs(5);
const WHILE_IT_WAITS: Duration = Duration::from_secs(10);

/// How many agents a message names.
const NAMED: usize = 3;

/// Finds the chain of a task. Accepts only a chain's full id, because a client repeats the id that it was given.
pub(crate) fn chain_of(app: &App<'_>, task: &str) -> Result<FrameId, AppError> {
    let unknown = || Refusal::unknown(format!("there is no chain {}", escape::shortened(task)));
    let root: FrameId = task.parse().map_err(|_| unknown())?;
    match app.store.frame(root)? {
        Some(frame) if frame.root == root => Ok(root),
        _ => Err(unknown().hint("it may have been removed; agent-cli ls --all lists chains").into()),
    }
}

/// Reads the state of a chain. If the chain has not ended, this reads the records of its agents once.
pub(crate) fn read(app: &App<'_>, root: FrameId) -> Result<ChainTask, AppError> {
    let frame = app.store.frame(root)?.ok_or(StoreError::UnknownFrame(root))?;
    // A person may be retrying the chain.
    let is_driven = Driving::is_marked(app.store.dir(), root)?;
    let status = if frame.state.is_over() { status::poll(app.store, root)? } else { None };
    let of_group = |replies: Replies| replies.reply.filter(|_| !replies.members.is_empty());
    let (state, message) = match (status, &frame.state) {
        (Some(ChainStatus::Done(reply)), _) => (TaskState::Replied(reply), "done".to_owned()),
        (Some(ChainStatus::PartlyFailed { replies, errors }), _) => {
            (TaskState::PartlyFailed(replies), format!("{} agents failed", errors.len()))
        }
        (_, FrameState::Failed { failure: Failure { kind, message } }) if !is_driven => {
            let state = match (of_group(app.store.replies(root)?), kind) {
                (Some(replies), _) => TaskState::PartlyFailed(replies),
                (None, FailureKind::Stopped) => TaskState::Stopped,
                (None, _) => {
                    let short = root.short();
                    TaskState::Failed(format!("{}\nagent-cli resume {short} tries again", message.trim()))
                }
            };
            (state, message.clone())
        }
        (_, FrameState::Cancelled) if !is_driven => (TaskState::Stopped, "interrupted".to_owned()),
        _ => {
            let mut dialogs = BTreeMap::new();
            for question in app.store.questions(Some(root), true)? {
                let dialog = dialog::shown(app, &question)?.form(app.now);
                dialogs.insert(key(app, &question)?, dialog);
            }
            let state = if dialogs.is_empty() { TaskState::Works } else { TaskState::Asks(dialogs) };
            (state, message(app, root)?)
        }
    };
    let look_after = if state == TaskState::Works { WHILE_IT_WORKS } else { WHILE_IT_WAITS };
    Ok(ChainTask { state, message: escape::block(&message), created: frame.created, look_after })
}

/// The chain's activity, in the words of the live display.
fn message(app: &App<'_>, root: FrameId) -> Result<String, AppError> {
    let mut tree = app.store.tree(root)?;
    external_waits::as_of(app.store, &mut tree, app.now)?;
    let running = running(app, &tree)?;
    if !running.is_empty() {
        return Ok(running.join("\n"));
    }
    let waits = tree.leaves_up().into_iter().find(|node| !node.is_over() && !node.is_group);
    let zone = local_zone();
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

/// Records the person's answers. Each one is recorded or refused independently. Returns the first refusal.
pub(crate) fn update(
    app: &App<'_>,
    root: FrameId,
    responses: &BTreeMap<String, Value>,
    surroundings: &impl RunSurroundings,
) -> Result<(), AppError> {
    let mut refused = None;
    for (id, response) in responses {
        if let Err(error) = record(app, root, id, response) {
            refused.get_or_insert(error);
        }
    }
    if let Err(error) = in_background::after_answer(app, root, surroundings) {
        // The next look at the task tries again.
        tracing::warn!("{}: {error}", root.short());
    }
    refused.map_or(Ok(()), Err)
}

/// The key of a dialog: the question's id and a digest of what the dialog shows, which may have changed when the answer arrives.
fn key(app: &App<'_>, question: &Question) -> Result<String, AppError> {
    Ok(format!("{}.{}", question.id, answer::digest(app.store, question)?))
}

fn record(app: &App<'_>, root: FrameId, id: &str, response: &Value) -> Result<(), AppError> {
    let unknown = || Refusal::unknown(format!("there is no question {} in this chain", escape::shortened(id)));
    let (id, shown) = id.split_once('.').ok_or_else(unknown)?;
    let question = id.parse().map_err(|_| unknown())?;
    let asked = app.store.questions(question, false)?.pop().filter(|asked| asked.root == root).ok_or_else(unknown)?;
    if let Some(text) = dialog::shown(app, &asked)?.answer(response).map_err(Refusal::new)? {
        answer::answer(app, &answer::Input::entered(question, text, Some(shown.to_owned())))?;
    }
    Ok(())
}

/// Stops the chain. The task reports the stop once it has happened.
pub(crate) fn cancel(app: &App<'_>, root: FrameId) -> Result<(), AppError> {
    let reason = Some("cancelled in the session".to_owned());
    stop::stop(app, stop::Input { reason, ..stop::Input::new(root.to_string(), StopKind::Stop) })?;
    Ok(())
}
