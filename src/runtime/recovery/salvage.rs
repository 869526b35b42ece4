//! How much of its conversation an attempt has left to continue from. What `claude` has printed it has not always written:
//! it may have been killed in between, and on a full disk it goes on without a word.

use std::collections::HashSet;
use std::path::Path;

use crate::claude::stream::digest::Digest;
use crate::claude::transcript::salvage::Remains;
use crate::core::chain::frame::Frame;
use crate::core::housekeeping::fsck::Lines;
use crate::core::requests::request::Delivery;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;
use crate::store::files::checkpoint;

/// What is left.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// All, as far as can be told.
    All,
    /// All that it was told, and not all that it did.
    Part(Remains),
    /// Nothing that could be continued from.
    Nothing,
}

impl Left {
    /// What is left of the attempt of `frame` that printed `digest`. `killed`: whether its process may not have come to its
    /// end. `told`: the results that it was given.
    pub(crate) fn of(
        store: &Store,
        frame: &Frame,
        digest: &Digest,
        transcript: Option<&Path>,
        killed: bool,
        told: &[Delivery],
    ) -> Result<Self, RuntimeError> {
        let Some(transcript) = transcript else {
            // A process that came to its end has one, perhaps at a place that a newer version keeps them at.
            return Ok(if killed { Self::Nothing } else { Self::All });
        };
        let suspended = digest.suspended_call();
        let cut = checkpoint::lines(transcript).is_ok_and(|lines| lines != Lines::Whole);
        if !killed && !cut && suspended.is_none() {
            return Ok(Self::All);
        }
        let earlier = frame.continues().map(|kept| store.dir().checkpoint(kept.frame, kept.copy));
        let remains = Remains::of(transcript, earlier.as_deref()).map_err(while_trying("read the transcript"))?;
        let lacks_its_end = cut || suspended.is_some_and(|call| !remains.suspended.contains(call));
        let continues = remains.continues && told.iter().all(|told| remains.tells(told));
        Ok(match digest.result {
            _ if (killed || lacks_its_end) && !continues => Self::Nothing,
            Some(_) if !lacks_its_end => Self::All,
            _ => Self::Part(remains),
        })
    }

    /// Whether the session stands suspended at a call that it says it was suspended at.
    pub(crate) fn is_suspended_at(&self, call: &str) -> bool {
        match self {
            Self::All => true,
            Self::Part(remains) => remains.suspended.contains(call),
            Self::Nothing => false,
        }
    }

    /// The tool calls of which it does not tell what came of them.
    pub(crate) fn uncertain_calls(&self, digest: &Digest) -> Vec<String> {
        match self {
            Self::All => digest.unfinished_calls(),
            Self::Part(remains) => digest.uncertain_calls(&remains.answered),
            Self::Nothing => digest.uncertain_calls(&HashSet::new()),
        }
    }
}
