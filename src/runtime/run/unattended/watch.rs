//! Stays, and continues every chain as soon as it can continue.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::core::chain::pace::{Look, Pace, Plan, Stir, TICK};
use crate::core::id::FrameId;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::unattended::changes::Changes;
use crate::runtime::run::{scheduler, status};
use crate::runtime::{RunSettings, RuntimeError, while_trying};
use crate::store::Store;

/// A transaction changes its files more than once.
const SETTLES: Duration = Duration::from_millis(20);

/// Continues chains until a person stops it. `ended` is called with each that was driven.
pub(crate) async fn watch(
    store: &Store,
    settings: &RunSettings,
    stop: watch::Receiver<u32>,
    mut ended: impl FnMut(FrameId, Result<Driven, RuntimeError>),
) -> Result<(), RuntimeError> {
    let changes = Changes::of(store.dir());
    let mut changes =
        changes.map_err(|error| while_trying("watch the state directory")(std::io::Error::other(error)))?;
    let at_once = settings.places.as_ref().map_or(usize::MAX, |places| places.most() as usize);
    let mut stopped = stop.clone();
    let (mut pace, mut driving, mut chains) =
        (Pace::default(), HashMap::<FrameId, Vec<Stir>>::new(), FuturesUnordered::new());
    loop {
        let now = Timestamp::now();
        let Plan { due, next, files } = pace.plan(store.candidates(now)?, now, |path| path.exists());
        changes.watch_for(store.dir(), &files);
        let is_stopped = *stop.borrow() > 0;
        for root in due {
            if is_stopped || driving.len() >= at_once {
                break;
            }
            if driving.contains_key(&root) {
                continue;
            }
            let stirs = pace.stirs(root);
            if !status::can_continue(store, root)? {
                pace.looked_at(root, stirs, now, Look::NotDriven);
                continue;
            }
            driving.insert(root, stirs);
            let stop = stop.clone();
            chains.push(async move { (root, scheduler::drive(store, settings, root, stop).await) });
        }
        if is_stopped && driving.is_empty() {
            return Ok(());
        }
        tokio::select! {
            Some((root, driven)) = chains.next(), if !chains.is_empty() => {
                let stirs = driving.remove(&root).unwrap_or_default();
                let got_on = driven.as_ref().is_ok_and(|driven| driven.worked && driven.errors.is_empty());
                pace.looked_at(root, stirs, Timestamp::now(), if got_on { Look::GotOn } else { Look::GotNowhere });
                ended(root, driven);
            }
            () = changes.next() => tokio::time::sleep(SETTLES).await,
            () = tokio::time::sleep(until(next, now)) => {}
            _ = stopped.wait_for(|signals| *signals > 0), if !is_stopped => {}
        }
    }
}

/// How long nothing needs to be looked at. A clock can be set, and a machine can sleep: it is never long.
fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = next.map_or(TICK, |next| next.duration_since(now).min(TICK));
    Duration::try_from(left).unwrap_or_default()
}
