//! Examines how much of an attempt's conversation can be continued from.

use std::collections::HashSet;
use std::path::Path;

use crate::claude::stream::digest::Digest;
use crate::claude::transcript::salvage::Remains;
use crate::core::attempt::salvage::{Contents, Salvage, Signs};
use crate::core::chain::frame::Frame;
use crate::core::housekeeping::fsck::Lines;
use crate::core::requests::request::Delivery;
use crate::runtime::conclude::printed::Printed;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;
use crate::store::files::checkpoint;

/// What can be continued from, and what it lacks.
pub(super) struct Salvaged {
    pub(super) salvage: Salvage,
    /// The call at which the session is suspended.
    pub(super) suspended: Option<String>,
    /// The tool calls whose outcome is missing from the conversation.
    pub(super) uncertain_calls: Vec<String>,
}

/// What can be continued from after the attempt of `frame` with this output. `deliveries`: the results that it was given when
/// it began.
pub(super) fn look(
    store: &Store,
    frame: &Frame,
    printed: &Printed,
    transcript: Option<&Path>,
    deliveries: &[Delivery],
) -> Result<Salvaged, RuntimeError> {
    let Printed { digest, was_killed, .. } = printed;
    let suspended = digest.suspended_call();
    let signs = Signs {
        has_result: digest.result.is_some(),
        was_killed: *was_killed,
        has_transcript: transcript.is_some(),
        is_cut: transcript.and_then(|file| checkpoint::lines(file).ok()).is_some_and(|lines| lines != Lines::Whole),
        is_suspended: suspended.is_some(),
    };
    let (salvage, remains) = match (signs.unread(), transcript) {
        (Some(salvage), _) => (salvage, None),
        (None, None) => (Salvage::Nothing, None),
        (None, Some(transcript)) => {
            let earlier = frame.continues().map(|kept| store.dir().checkpoint(kept.frame, kept.copy));
            let remains = Remains::of(transcript, earlier.as_deref()).map_err(while_trying("read the transcript"))?;
            let contents = Contents {
                continues: remains.continues,
                has_deliveries: deliveries.iter().all(|delivery| remains.tells(delivery)),
                marks_suspension: suspended.is_some_and(|call| remains.suspended.contains(call)),
            };
            (signs.salvage(contents), Some(remains))
        }
    };
    Ok(Salvaged::new(salvage, &remains.unwrap_or_default(), digest))
}

impl Salvaged {
    fn new(salvage: Salvage, remains: &Remains, digest: &Digest) -> Self {
        let suspended = digest.suspended_call();
        let (suspended, uncertain_calls) = match salvage {
            Salvage::Whole => (suspended, digest.unfinished_calls()),
            Salvage::Part => {
                let marked = suspended.filter(|call| remains.suspended.contains(*call));
                (marked, digest.uncertain_calls(&remains.answered))
            }
            Salvage::Nothing => (None, digest.uncertain_calls(&HashSet::new())),
        };
        Self { salvage, suspended: suspended.map(str::to_owned), uncertain_calls }
    }
}
