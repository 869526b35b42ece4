//! The views of denied calls, with the options that would have allowed them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;

use crate::claude::tools::remedies::remedies;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::denied_call::Denied;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::requests::adopt;
use crate::store::{Attempt, Attempts, Store};

/// A denied call.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeniedCallView {
    /// The agent that made it.
    pub(crate) agent: FrameId,
    pub(crate) task: String,
    #[serde(flatten)]
    pub(crate) denied: Denied,
    /// Arguments of `agent-cli spawn`, or of `agent-cli resume` for an adopted session. Each list would have allowed the call,
    /// or let a person decide.
    pub(crate) allowed_by: Vec<Vec<String>>,
    /// The session at the top of its chain, if it was adopted.
    #[serde(skip)]
    pub(crate) adopted: Option<Adopted>,
}

/// A person's session that agent-cli has continued.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    pub(crate) root: FrameId,
    pub(crate) is_done: bool,
    /// The original arguments. New arguments replace all of them.
    pub(crate) args: ClaudeArgs,
}

impl Adopted {
    fn find(store: &Store, frame: &Frame) -> Result<Option<Self>, RuntimeError> {
        let Some(root) = store.frame(frame.root)? else { return Ok(None) };
        let was_adopted = adopt::was_adopted(store, &root)?;
        let is_done = root.state == FrameState::Done;
        Ok(was_adopted.then_some(Self { root: root.id, is_done, args: root.launch.args }))
    }
}

/// Lists the denied calls of an agent and of all agents below it.
pub(crate) fn below(store: &Store, top: FrameId) -> Result<Vec<DeniedCallView>, RuntimeError> {
    let mut frames = HashMap::new();
    let mut all = Vec::new();
    let attempts = store.attempts(Attempts::WithDenied(top))?.into_iter();
    for (id, denied) in
        attempts.flat_map(|Attempt { frame, denied, .. }| denied.into_iter().map(move |call| (frame, call)))
    {
        if let Entry::Vacant(unknown) = frames.entry(id) {
            let frame = store.frame(id)?;
            let adopted = frame.as_ref().map(|frame| Adopted::find(store, frame)).transpose()?.flatten();
            unknown.insert(frame.map(|frame| (frame, adopted)));
        }
        let Some((frame, adopted)) = frames.get(&id).and_then(Option::as_ref) else { continue };
        let adopted = adopted.clone();
        let allowed_by = remedies(&denied, &frame.launch, &frame.cwd);
        all.push(DeniedCallView { agent: id, task: frame.task.title(), denied, allowed_by, adopted });
    }
    Ok(all)
}
