//! Limits how many agents may run at once, over all chains and processes.

use std::rc::Rc;

use tokio::sync::watch;

use crate::runtime::run::signals::Signals;

/// The limit, and the agents that this process runs. All chains that it runs share them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    most: u32,
    here: Rc<watch::Sender<OwnAgents>>,
}

/// The agents that this process runs.
#[derive(Clone, Copy, Debug, Default)]
struct OwnAgents {
    running: usize,
    ended: u64,
}

/// The place of a running agent. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct TakenPlace(Places);

impl Places {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, here: Rc::new(watch::Sender::new(OwnAgents::default())) }
    }

    /// The limit. It is checked in the transaction that would start an agent, for all processes alike.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    pub(crate) fn take(&self) -> TakenPlace {
        self.here.send_modify(|here| here.running += 1);
        TakenPlace(self.clone())
    }

    /// How many agents of this process have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.here.borrow().ended
    }

    /// Whether more than `own` agents of this process are running.
    pub(crate) fn has_more_than(&self, own: usize) -> bool {
        self.here.borrow().running > own
    }

    /// Returns when more than `ended` agents of this process have ended.
    async fn more_than(&self, ended: u64) {
        // The sender lives as long as this does.
        let _ = self.here.subscribe().wait_for(|here| here.ended > ended).await;
    }
}

/// Returns when more than `ended` agents of this process have ended, or a person stops it.
pub(crate) async fn freed(places: Option<&Places>, ended: u64, mut stop: watch::Receiver<Signals>) {
    let Some(places) = places else { return };
    tokio::select! {
        () = places.more_than(ended) => {}
        _ = stop.wait_for(|signals| signals.any()) => {}
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.0.here.send_modify(|here| *here = OwnAgents { running: here.running - 1, ended: here.ended + 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_that_became_free_is_noticed_even_if_nobody_waited_then() {
        let places = Places::new(2);
        let place = places.take();
        assert!(places.has_more_than(0) && !places.has_more_than(1));
        let seen = places.ended();
        drop(place);
        places.more_than(seen).await;
        assert!(!places.has_more_than(0));
    }
}
