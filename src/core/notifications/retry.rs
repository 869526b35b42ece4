//! When a notification that could not be sent is sent again.

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::backoff::until_next_try;

/// After this many failures nobody tries again: about a quarter of an hour after the first.
pub(crate) const MOST_TRIES: u32 = 6;

/// A time further away than this was not written by the clock of now: nothing is put off for so long.
pub(crate) const NEVER_LATER: SignedDuration = SignedDuration::from_hours(1);

/// When to try again after this many failures; `None`: never.
pub(crate) fn next_try(failures: u32, now: Timestamp) -> Option<Timestamp> {
    (failures < MOST_TRIES).then(|| now.saturating_add(until_next_try(failures)).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_and_end() {
        let now = Timestamp::UNIX_EPOCH;
        let after: Vec<_> = (1..8).map(|failures| next_try(failures, now).map(Timestamp::as_second)).collect();
        assert_eq!(after, [Some(30), Some(60), Some(120), Some(240), Some(480), None, None]);
        assert!((1..MOST_TRIES).all(|tries| next_try(tries, now).unwrap().duration_since(now) < NEVER_LATER));
    }
}
