//! Continues every chain that can continue.

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::core::chain::pace::Pace;
use crate::core::id::FrameId;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::{scheduler, status};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::Store;

/// The roots of the chains that can continue without a person. Failed and interrupted ones are not among them.
pub(crate) fn to_continue(store: &Store) -> Result<Vec<FrameId>, RuntimeError> {
    let now = Timestamp::now();
    let due = Pace::default().plan(store.candidates(now)?, now, |path| path.exists()).due;
    let mut roots = Vec::new();
    for root in due {
        if status::can_continue(store, root)? {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// Drives these chains side by side until none of them can continue. What failed before is not tried again. `ended` is
/// called with each when it is over; one that cannot be driven keeps no other from it.
pub(crate) async fn drive(
    store: &Store,
    settings: &RunSettings,
    roots: Vec<FrameId>,
    stop: &watch::Receiver<u32>,
    mut ended: impl FnMut(FrameId, Result<Driven, RuntimeError>),
) {
    // Each chain has an agent that runs, or waits for a place.
    let at_once = settings.places.as_ref().map_or(usize::MAX, |places| places.most() as usize);
    let chains = stream::iter(roots).map(|root| async move {
        let is_stopped = *stop.borrow() > 0;
        match is_stopped {
            true => None,
            false => Some((root, scheduler::drive(store, settings, root, stop.clone()).await)),
        }
    });
    let mut chains = std::pin::pin!(chains.buffer_unordered(at_once));
    while let Some(over) = chains.next().await {
        if let Some((root, driven)) = over {
            ended(root, driven);
        }
    }
}
