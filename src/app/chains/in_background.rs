//! Continues chains in a process that outlives the one that starts it.

use crate::app::App;
use crate::app::chains::resume::{self, Input, Outcome};
use crate::app::chains::run::{self, NextRun, RunSurroundings};
use crate::app::error::{AppError, Refusal};
use crate::core::id::FrameId;
use crate::runtime::run::status;
use crate::runtime::steering::try_again;

/// Continues a chain if it can continue and no process runs it. Returns whether it did.
pub(crate) fn go_on(app: &App<'_>, root: FrameId, surroundings: &impl RunSurroundings) -> Result<bool, AppError> {
    let is_over = app.store.frame(root)?.is_none_or(|frame| frame.state.is_over());
    let goes_on = !is_over && status::can_continue(app.store, root)?;
    if goes_on {
        run::in_background(app.store, root, surroundings)?;
    }
    Ok(goes_on)
}

/// Continues a chain after an answer was recorded. If that fails, the answer remains, and the returned refusal says how the chain
/// continues.
pub(crate) fn after_answer(app: &App<'_>, root: FrameId, surroundings: &impl RunSurroundings) -> Result<(), Refusal> {
    let gone_on = go_on(app, root, surroundings).map(drop);
    gone_on.map_err(|error| {
        Refusal::failure(format!("the answer is recorded, but its chain does not continue: {error}"))
            .hint(format!("in a terminal: agent-cli resume {}", root.short()))
    })
}

/// Resumes a chain as a person's `resume` does. Returns the root.
pub(crate) fn resume(app: &App<'_>, input: Input, surroundings: &impl RunSurroundings) -> Result<FrameId, AppError> {
    let Outcome::Chain(resumed) = resume::resume(app, input, surroundings)? else {
        return Err(Refusal::new("agents read results with agent-cli resume").into());
    };
    let root = app.store.chain_of(resumed.top)?.root;
    if let NextRun::Run(_) = resumed.next {
        // Otherwise the new process would begin with a chain that has failed.
        try_again::all(app.store, resumed.top)?;
        run::in_background(app.store, root, surroundings)?;
    }
    Ok(root)
}
