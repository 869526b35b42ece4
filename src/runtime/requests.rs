//! What agents ask of this program. Nothing runs inside an agent's tool call: a request is recorded, and the runner of
//! the tree does the rest when the agent's turn is over.

use std::path::PathBuf;

use super::{RuntimeError, while_trying};
use crate::core::frame::{Frame, Task};
use crate::core::id::{FrameId, RequestId};
use crate::core::launch::{BadLaunch, Overrides};
use crate::core::prompt::{self, Telling};
use crate::core::request::{External, RequestResult, Wish};
use crate::core::state::FrameState;
use crate::store::{Caller, NewFrame, Store};

/// What came of a request so far, as the agent that made it may ask.
#[derive(Debug)]
pub enum Progress {
    /// It is over: the reply, the answer, or a sentence that the wait is over.
    Over(String),
    /// The child failed, and why.
    Failed(String),
    /// It is still open.
    Open,
}

/// Records that the calling agent wants another agent's reply. Returns the id of the child.
///
/// # Errors
///
/// [`RuntimeError`] when the tree is at its limit, the child would have wider permissions than its parent, or the
/// caller's attempt has ended.
pub fn spawn(
    store: &Store,
    caller: Caller,
    call: Option<&str>,
    task: Task,
    cwd: PathBuf,
    overrides: Overrides,
) -> Result<FrameId, RuntimeError> {
    let parent = frame_of(store, caller)?;
    let launch = parent.launch.child(overrides)?;
    if !launch.is_unrestricted() && !cwd.starts_with(&parent.cwd) {
        return Err(BadLaunch::Outside { own: parent.cwd, child: cwd }.into());
    }
    let title = match &task {
        Task::File(path) => path.display().to_string(),
        Task::Prompt(text) => text.clone(),
    };
    let (_, child) =
        store.request_child(caller, call, &NewFrame { task, cwd, launch, limits: parent.limits }, &title)?;
    Ok(child)
}

/// Records a question of the calling agent. Returns its id.
///
/// # Errors
///
/// [`RuntimeError`] when the caller's attempt has ended.
pub fn ask(store: &Store, caller: Caller, call: Option<&str>, question: String) -> Result<RequestId, RuntimeError> {
    frame_of(store, caller)?;
    Ok(store.request(caller, call, &Wish::Ask { question })?)
}

/// Records that the calling agent waits for something outside. Returns the request's id.
///
/// # Errors
///
/// [`RuntimeError`] when the caller's attempt has ended.
pub fn wait(store: &Store, caller: Caller, call: Option<&str>, wait: External) -> Result<RequestId, RuntimeError> {
    frame_of(store, caller)?;
    Ok(store.request(caller, call, &Wish::Wait(wait))?)
}

/// What came of a child so far.
///
/// # Errors
///
/// Those of the state directory.
fn progress_of_frame(store: &Store, frame: FrameId) -> Result<Progress, RuntimeError> {
    if let Some(reply) = store.reply(frame)? {
        return Ok(Progress::Over(reply));
    }
    Ok(match store.frame(frame)?.map(|frame| frame.state) {
        Some(FrameState::Failed { failure }) => Progress::Failed(failure.message),
        _ => Progress::Open,
    })
}

/// What came of a frame so far that the calling agent asks about. An agent that asks about a chain that was not started
/// in its name waits for it from then on: the runner of its tree drives that chain too.
///
/// # Errors
///
/// [`RuntimeError`] when the caller's attempt has ended.
pub fn progress_for(store: &Store, caller: Caller, frame: FrameId) -> Result<Progress, RuntimeError> {
    let progress = progress_of_frame(store, frame)?;
    if let Progress::Open = progress {
        store.join(caller, frame)?;
    }
    Ok(progress)
}

/// What came of the suspended call as which this program is run, if it is run as one. `is_meant` tells whether the caller
/// asks for that.
///
/// Where hooks have been switched off since a call was suspended, `claude` does not ask about it when it is resumed, but
/// runs it. It would make its request a second time.
///
/// # Errors
///
/// [`RuntimeError`] when the state directory cannot be used, or does not know the caller.
pub fn progress_of_resumed_call(
    store: &Store,
    caller: Caller,
    is_meant: impl Fn(&Wish) -> bool,
) -> Result<Option<Progress>, RuntimeError> {
    let frame = frame_of(store, caller)?;
    let Some(attempt) = store.running_attempt(frame.id)?.filter(|attempt| attempt.session == caller.attempt) else {
        return Ok(None);
    };
    let mut carried = store.deliveries(frame.id)?;
    carried.retain(|delivery| attempt.carried.contains(&delivery.request));
    if prompt::telling(&frame, &carried, true) != Telling::Call {
        return Ok(None);
    }
    let Some(delivery) = carried.pop().filter(|delivery| is_meant(&delivery.wish)) else { return Ok(None) };
    // Whoever gives the result to the call leaves this file, the hook too. The next call that looks like it is another.
    let file = store.dir().result(frame.id, delivery.request);
    if file.exists() {
        return Ok(None);
    }
    let (RequestResult::Text(text) | RequestResult::Failed(text)) = &delivery.result;
    store.dir().write(&file, text.as_bytes()).map_err(while_trying("write the result"))?;
    Ok(Some(Progress::from(delivery.result)))
}

/// What came of a request so far.
///
/// # Errors
///
/// Those of the state directory.
pub fn progress_of_request(store: &Store, request: RequestId) -> Result<Progress, RuntimeError> {
    Ok(store.result_of(request)?.map_or(Progress::Open, Progress::from))
}

impl From<RequestResult> for Progress {
    fn from(result: RequestResult) -> Self {
        match result {
            RequestResult::Text(text) => Self::Over(text),
            RequestResult::Failed(message) => Self::Failed(message),
        }
    }
}

fn frame_of(store: &Store, caller: Caller) -> Result<Frame, RuntimeError> {
    store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))
}
