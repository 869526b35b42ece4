//! Carries out a recorded decision. If this process dies before it is done, the next attempt does the rest.

use crate::core::attempt::decision::{Decision, Fate};
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::Ended;
use crate::core::id::AttemptId;
use crate::runtime::conclude::gather::Gathered;
use crate::runtime::recovery::restore;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;
use crate::store::files::checkpoint;

/// Removes what the attempt needed and what the decision has made unnecessary. `copies`: the attempts whose copies are needed, if a
/// copy of this one's conversation exists.
pub(super) fn apply(
    store: &Store,
    frame: &Frame,
    gathered: &Gathered,
    decision: &Decision,
    copies: Option<&[AttemptId]>,
) -> Result<(), RuntimeError> {
    store.dir().clear_attempt(frame.id).map_err(while_trying("remove what the attempt needed"))?;
    match (decision.session, copies) {
        (Fate::Discard | Fate::Lost, _) => restore::undo(store, frame, gathered.transcript.as_deref()),
        (Fate::Keep, Some(copies)) => {
            let pruned = checkpoint::prune(store.dir(), frame.id, copies);
            pruned.map_err(while_trying("remove older copies of transcripts"))
        }
        (Fate::Keep, None) => {
            if decision.frame != Ended::Done {
                let session = gathered.attempt.session.short();
                tracing::warn!("claude left no usable transcript of session {session}: it may not be resumable");
            }
            Ok(())
        }
    }
}
