//! Waits that only time ends: a usage limit, and the backoff after a temporary API error or an attempt that failed to start.
//!
//! All of it is wall-clock time, and a clock can be set back. A pause therefore counts from its beginning: if the
//! current time is earlier than that, the clock is wrong and the pause has ended. No frame waits longer than its pause,
//! whatever the clock does.

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::frame_state::Wait;

/// The pause after the first failed try. Each further one doubles it.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);
/// The longest pause between two tries.
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

impl Wait {
    /// Whether only time ends this wait.
    pub(crate) fn is_pause(&self) -> bool {
        matches!(self, Self::UsageLimit { .. } | Self::Retry { .. } | Self::Restart { .. })
    }

    /// When a pause that began at `since` ends; `None` for other waits.
    pub(crate) fn pause_ends(&self, since: Timestamp) -> Option<Timestamp> {
        let backed_off = |tries| since.saturating_add(until_next_try(tries)).unwrap_or(since);
        match self {
            // According to this clock its time may be past although the limit is still in effect.
            Self::UsageLimit { resets_at, tries } => Some(backed_off(*tries).max(*resets_at)),
            Self::Retry { tries, .. } | Self::Restart { tries, .. } => Some(backed_off(*tries)),
            Self::Requests | Self::AgentDecides => None,
        }
    }

    /// When a pause that began at `since` ends, if it has not ended at `now`.
    pub(crate) fn paused_until(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.pause_ends(since).filter(|end| since <= now && now < *end)
    }
}

/// The pause after this many consecutive failed tries.
pub(crate) fn until_next_try(tries: u32) -> SignedDuration {
    let Some(doublings) = tries.checked_sub(1) else { return SignedDuration::ZERO };
    SHORTEST.saturating_mul(2_i32.saturating_pow(doublings)).min(LONGEST)
}

/// The most tries. The last one is about a quarter of an hour after the first.
pub(crate) const MOST_TRIES: u32 = 6;

/// A time further away than this was written by a different clock: nothing is put off for so long.
pub(crate) const NEVER_LATER: SignedDuration = SignedDuration::from_hours(1);

/// When to try again after this many failures; `None`: never.
pub(crate) fn next_try(failures: u32, now: Timestamp) -> Option<Timestamp> {
    (failures < MOST_TRIES).then(|| now.saturating_add(until_next_try(failures)).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn retry(tries: u32) -> Wait {
        Wait::Retry { tries, why: "overloaded".into() }
    }

    #[test]
    fn the_pause_between_tries_grows_up_to_an_hour() {
        let seconds = [0, 1, 2, 3, 7, 8, 9, 100, u32::MAX].map(|tries| until_next_try(tries).as_secs());
        assert_eq!(seconds, [0, 30, 60, 120, 1920, 3600, 3600, 3600, 3600]);
    }

    #[test]
    fn a_pause_is_over_when_its_time_has_come() {
        for wait in [Wait::UsageLimit { resets_at: at(1_030), tries: 0 }, retry(1)] {
            assert!(wait.is_pause());
            let until = |now| wait.paused_until(at(1_000), at(now));
            assert_eq!([1_000, 1_029, 1_030].map(until), [Some(at(1_030)), Some(at(1_030)), None]);
        }
        for wait in [Wait::Requests, Wait::AgentDecides] {
            assert_eq!((wait.is_pause(), wait.paused_until(at(0), at(0))), (false, None));
        }
    }

    #[test]
    fn a_usage_limit_that_is_met_again_after_its_time_backs_off() {
        let met = |tries| Wait::UsageLimit { resets_at: at(900), tries };
        let until = |tries, now| met(tries).paused_until(at(1_000), at(now));
        assert_eq!(
            [until(0, 1_000), until(1, 1_000), until(1, 1_029), until(1, 1_030)],
            [None, Some(at(1_030)), Some(at(1_030)), None]
        );
        assert_eq!(until(9, 1_000), Some(at(4_600)));
        let ahead = Wait::UsageLimit { resets_at: at(9_000), tries: 3 };
        assert_eq!(ahead.paused_until(at(1_000), at(1_000)), Some(at(9_000)), "its time is still to come");
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_pause() {
        for wait in [Wait::UsageLimit { resets_at: at(9_000_000), tries: 0 }, retry(8)] {
            assert!(wait.paused_until(at(8_000_000), at(8_000_000)).is_some());
            assert_eq!(wait.paused_until(at(8_000_000), at(7_999_999)), None);
            assert_eq!(wait.paused_until(at(8_000_000), at(0)), None);
        }
    }

    proptest! {
        #[test]
        fn a_retry_has_only_its_length_at_any_time(tries: u32, since in 0i64..4_000_000_000, now in 0i64..4_000_000_000) {
            if let Some(end) = retry(tries).paused_until(at(since), at(now)) {
                prop_assert!(end.duration_since(at(now)) <= LONGEST);
            }
        }
    }

    #[test]
    fn the_pauses_grow_and_end() {
        let now = Timestamp::UNIX_EPOCH;
        let after: Vec<_> = (1..8).map(|failures| next_try(failures, now).map(Timestamp::as_second)).collect();
        assert_eq!(after, [Some(30), Some(60), Some(120), Some(240), Some(480), None, None]);
        assert!((1..MOST_TRIES).all(|tries| next_try(tries, now).unwrap().duration_since(now) < NEVER_LATER));
    }
}
