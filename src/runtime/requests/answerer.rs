//! What the records say about a process that wants to answer.

use crate::core::id::{FrameId, IdPrefix, SessionId};
use crate::store::{Attempts, Notifications, Scope, Store, StoreError, Target};

/// So many notifications are looked at. The command of an older one has long ended.
const NEWEST: usize = 1000;

/// The agent whose session this is. The session of a person that became a chain is theirs: its agent has another one.
///
/// # Errors
///
/// The database cannot be read.
pub(crate) fn agent_of(store: &Store, session: SessionId) -> Result<Option<FrameId>, StoreError> {
    let Ok(id) = session.to_string().parse::<IdPrefix>() else { return Ok(None) };
    let found = match store.lookup(Scope::All, &id) {
        Ok(Target::Frame(frame)) => frame,
        Ok(Target::Request(_)) | Err(StoreError::Unknown(_) | StoreError::Ambiguous { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let has_it = store.frame(found)?.is_some_and(|frame| frame.session == session)
        || store.attempts(Attempts::Of(found.into()))?.iter().any(|attempt| attempt.session == session);
    Ok(has_it.then_some(found))
}

/// Whether one of these is a notification whose command may be running.
///
/// # Errors
///
/// The database cannot be read.
pub(crate) fn is_of_notification(store: &Store, named: &[String]) -> Result<bool, StoreError> {
    if named.is_empty() {
        return Ok(false);
    }
    let known = store.outbox().list(Notifications::Newest(NEWEST))?;
    Ok(known.iter().any(|known| named.contains(&known.id.to_string())))
}
