//! When to check for a write after the system has reported it. It reports a write before the write is visible: the transaction
//! may still wait for the disk.

use std::time::{Duration, Instant};

/// The pauses before the checks that follow a report. Together they are longer than a disk takes.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(320),
    Duration::from_millis(1_280),
    Duration::from_millis(5_120),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recheck {
    /// The first one after a report. A transaction changes its files more than once, so it is not made at once.
    First,
    /// The same write may have been reported and found before.
    Late,
}

/// The checks that are still to be made.
#[derive(Debug, Default)]
pub(crate) struct Rechecks {
    next: Option<(Instant, usize)>,
}

impl Rechecks {
    /// The system has reported a write.
    pub(crate) fn report(&mut self, now: Instant) {
        let at = now + PAUSES[0];
        // Further reports do not put off a check.
        self.next = Some((self.next.map_or(at, |(due, _)| due.min(at)), 0));
    }

    /// When the next check is to be made.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// The check that is to be made now. Finding a write does not end the checks: it may not be the one that was reported last.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Recheck> {
        let (_, made) = self.next.filter(|(at, _)| *at <= now)?;
        self.next = PAUSES.get(made + 1).map(|pause| (now + *pause, made + 1));
        Some(if made == 0 { Recheck::First } else { Recheck::Late })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The milliseconds of the checks, if somebody looks every millisecond.
    fn checks(reports: &[u64], until: u64) -> Vec<(u64, Recheck)> {
        let start = Instant::now();
        let mut rechecks = Rechecks::default();
        let mut made = Vec::new();
        for millis in 0..until {
            let now = start + Duration::from_millis(millis);
            reports.iter().filter(|at| **at == millis).for_each(|_| rechecks.report(now));
            made.extend(rechecks.take_due(now).map(|check| (millis, check)));
            assert!(rechecks.next().is_none_or(|next| next > now));
        }
        made
    }

    #[test]
    fn a_reported_write_is_looked_for_again_and_again_but_not_forever() {
        use Recheck::{First, Late};
        let expected = [(20, First), (100, Late), (420, Late), (1_700, Late), (6_820, Late)];
        assert_eq!(checks(&[0], 20_000), expected);
        assert_eq!(checks(&[], 1_000), []);
        assert_eq!(checks(&[0, 10], 100), [(20, First)], "one check for both");
        assert_eq!(checks(&[0, 90], 130), [(20, First), (100, First)], "a new report begins anew");
    }

    proptest! {
        #[test]
        fn every_report_has_a_first_check_in_time_and_late_ones(reports in proptest::collection::vec(0..2_000u64, 1..40)) {
            let made = checks(&reports, 20_000);
            for report in &reports {
                prop_assert!(made.iter().any(|(at, check)| *check == Recheck::First && (*report..=report + 20).contains(at)));
                prop_assert!(made.iter().any(|(at, _)| (report + 5_000..=report + 9_000).contains(at)));
            }
        }
    }
}
