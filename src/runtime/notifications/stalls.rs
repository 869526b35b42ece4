//! Notices agents that have stalled.

use std::fs;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::core::events::activity::is_stalled;
use crate::store::{Attempt, Attempts, Store, StoreError};

/// Facts about silent agents that are kept from one check to the next.
#[derive(Debug, Default)]
pub(super) struct Silences {
    /// When the last check was, by the system clock and by one that stops while the machine sleeps.
    looked: Option<(Timestamp, Instant)>,
    /// Since when the machine has not slept, as far as known.
    awake: Option<Timestamp>,
}

/// The clocks differ by less while the machine is awake.
const DIFFERENCE: SignedDuration = SignedDuration::from_secs(5);

impl Silences {
    /// Records the running agents that have printed nothing for longer than their chain's limit. A file's modification time is
    /// sufficient. Time during which the machine slept does not count.
    pub(super) fn note(&mut self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        self.look(now, Instant::now());
        for Attempt { id: attempt, frame, began, .. } in store.attempts(Attempts::Running)? {
            let printed = fs::metadata(store.dir().printed(frame)).and_then(|file| file.modified());
            let printed = printed.ok().and_then(|time| Timestamp::try_from(time).ok());
            let last_event = printed.map_or(began, |printed| printed.max(began));
            let after = match store.chain_of(frame) {
                Ok(chain) => chain.limits.stall_after(),
                // It was removed in the meantime.
                Err(StoreError::UnknownFrame(_)) => continue,
                Err(error) => return Err(error),
            };
            if is_stalled(self.awake.map_or(last_event, |awake| last_event.max(awake)), now, after) {
                store.outbox().note_stall(frame, attempt, last_event)?;
            }
        }
        Ok(())
    }

    fn look(&mut self, now: Timestamp, ticks: Instant) {
        if let Some((then, before)) = self.looked.replace((now, ticks)) {
            let awake = SignedDuration::try_from(ticks.duration_since(before)).unwrap_or(SignedDuration::MAX);
            if now.duration_since(then) - awake > DIFFERENCE {
                self.awake = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn after_a_sleep_of_the_machine_silence_begins_anew() {
        let (start, ticks) = (Timestamp::UNIX_EPOCH, Instant::now());
        let mut silences = Silences::default();
        let mut look = |seconds: i64, ticked: u64| {
            silences.look(start + SignedDuration::from_secs(seconds), ticks + Duration::from_secs(ticked));
            silences.awake.map(Timestamp::as_second)
        };
        assert_eq!([look(0, 0), look(60, 60), look(120, 119)], [None; 3]);
        assert_eq!(look(28_920, 179), Some(28_920));
        assert_eq!(look(28_980, 239), Some(28_920));
    }
}
